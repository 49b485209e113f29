//! Time, deadlines, and threads that wait for futures.

use std::{
    sync::{Arc, mpsc},
    task::{Poll, Wake, Waker},
    thread,
    time::Duration,
};

use kernel::{Clock, Deadline, PastDeadline, SystemClock, block_on};

use crate::support::{Counter, manual_clock, poll};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn alarms_go_off_when_they_are_due_and_not_after_they_were_dropped() {
    let (clock, _) = manual_clock();
    let start = clock.now();
    let (early, early_waker) = Counter::new();
    let (late, late_waker) = Counter::new();
    let (dropped, dropped_waker) = Counter::new();
    let _alarms = [
        clock.alarm(start + SECOND, early_waker.clone()),
        clock.alarm(start + SECOND, early_waker),
        clock.alarm(start + 2 * SECOND, late_waker),
    ];
    drop(clock.alarm(start + SECOND, dropped_waker));
    assert_eq!(clock.pending_alarms(), 3);
    clock.advance(SECOND);
    assert_eq!((early.count(), late.count(), dropped.count()), (2, 0, 0));
    clock.advance(SECOND);
    assert_eq!((early.count(), late.count(), clock.pending_alarms()), (2, 1, 0));
}

/// The thread of the system clock serves an alarm that comes before the one it sleeps for.
#[test]
fn the_system_clock_serves_the_earliest_first() {
    struct Send(&'static str, mpsc::Sender<&'static str>);
    impl Wake for Send {
        fn wake(self: Arc<Self>) {
            self.1.send(self.0).unwrap();
        }
    }
    let clock = SystemClock::shared();
    let (sender, receiver) = mpsc::channel();
    let alarm = |name, after: Duration| {
        clock.alarm(
            clock.now() + after,
            Waker::from(Arc::new(Send(name, sender.clone()))),
        )
    };
    let _alarms = [
        alarm("third", Duration::from_millis(60)),
        alarm("second", Duration::from_millis(30)),
        alarm("first", Duration::ZERO),
    ];
    drop(alarm("never", Duration::from_millis(10)));
    let order: Vec<_> = (0..3)
        .map(|_| receiver.recv_timeout(10 * SECOND).unwrap())
        .collect();
    assert_eq!(order, ["first", "second", "third"]);
}

/// The thread sleeps on when the alarm that it sleeps for is dropped, and is not told of one that is due later.
#[test]
fn an_alarm_behind_a_dropped_one_goes_off() {
    struct Send(mpsc::Sender<()>);
    impl Wake for Send {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }
    let clock = SystemClock::shared();
    let (sender, receiver) = mpsc::channel();
    let alarm = |after_ms| {
        let at = clock.now() + Duration::from_millis(after_ms);
        clock.alarm(at, Waker::from(Arc::new(Send(sender.clone()))))
    };
    for (dropped_ms, kept_ms) in [(20, 40), (40, 20), (10, 10), (60_000, 20), (0, 20), (20, 0)] {
        let dropped = alarm(dropped_ms);
        // The thread may or may not sleep by now; both must do.
        thread::yield_now();
        drop(dropped);
        // One that was due at once may have gone off before it was dropped.
        while receiver.try_recv().is_ok() {}
        let _kept = alarm(kept_ms);
        let went_off = receiver.recv_timeout(10 * SECOND);
        assert_eq!(went_off, Ok(()), "{dropped_ms} ms dropped, {kept_ms} ms kept");
    }
}

#[test]
fn a_deadline_in_the_past_is_a_clear_error() {
    let (clock, shared) = manual_clock();
    let start = clock.now();
    clock.advance(2 * SECOND);
    let error = Deadline::at(&shared, start).unwrap_err();
    assert_eq!(error, PastDeadline { by: 2 * SECOND });
    assert_eq!(
        error.to_string(),
        "the deadline passed 2000 ms ago, before anything could be done"
    );
    assert!(
        Deadline::at(&shared, clock.now()).unwrap().has_passed(),
        "now is not the past"
    );
}

#[test]
fn a_deadline_knows_what_is_left() {
    let (clock, shared) = manual_clock();
    let deadline = Deadline::at(&shared, clock.now() + 2 * SECOND).unwrap();
    clock.advance(SECOND);
    assert_eq!(
        (deadline.remaining(), deadline.has_passed()),
        (Some(SECOND), false)
    );
    assert_eq!(format!("{deadline:?}"), "Deadline(1s left)");
    clock.advance(5 * SECOND);
    assert_eq!(
        (deadline.remaining(), deadline.has_passed()),
        (Some(Duration::ZERO), true)
    );

    for endless in [Deadline::never(), Deadline::after(&shared, Duration::MAX)] {
        assert_eq!((endless.remaining(), endless.has_passed()), (None, false));
        assert_eq!(format!("{endless:?}"), "Deadline(never)");
    }
}

#[test]
fn the_wait_for_a_deadline_wakes_whoever_polled_last() {
    let (clock, shared) = manual_clock();
    let mut passed = Deadline::after(&shared, SECOND).passed();
    let ((old, old_waker), (new, new_waker)) = (Counter::new(), Counter::new());
    for waker in [&old_waker, &new_waker, &new_waker] {
        assert_eq!(poll(&mut passed, waker), Poll::Pending);
        assert_eq!(clock.pending_alarms(), 1);
    }
    clock.advance(SECOND);
    assert_eq!((old.count(), new.count()), (0, 1));
    assert_eq!(poll(&mut passed, &new_waker), Poll::Ready(()));
}

#[test]
fn a_thread_sleeps_until_its_future_is_woken() {
    let (sender, receiver) = mpsc::channel::<Waker>();
    let waking = thread::spawn(move || receiver.recv().unwrap().wake_by_ref());
    let mut polls = 0;
    let answer = block_on(std::future::poll_fn(|context| {
        polls += 1;
        if polls == 2 {
            return Poll::Ready("done");
        }
        sender.send(context.waker().clone()).unwrap();
        Poll::Pending
    }));
    waking.join().unwrap();
    assert_eq!((answer, polls), ("done", 2));
}

#[test]
fn a_sooner_deadline_passes_earlier() {
    let (clock, shared) = manual_clock();
    let deadline = Deadline::after(&shared, 3 * SECOND);
    let cases = [
        (Duration::ZERO, Some(3 * SECOND)),
        (SECOND, Some(2 * SECOND)),
        (5 * SECOND, Some(Duration::ZERO)),
        (Duration::MAX, Some(Duration::ZERO)),
    ];
    for (by, left) in cases {
        let sooner = deadline.sooner(by);
        assert_eq!(sooner.remaining(), left, "{by:?}");
        assert_eq!(sooner.has_passed(), left == Some(Duration::ZERO), "{by:?}");
    }
    assert_eq!(Deadline::never().sooner(SECOND).remaining(), None);
    let sooner = deadline.sooner(SECOND);
    clock.advance(2 * SECOND);
    assert_eq!((sooner.has_passed(), deadline.has_passed()), (true, false));
}
