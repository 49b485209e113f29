//! Time as a parameter.
//!
//! 1. A waker passed to [`Clock::alarm`] is woken once the clock has reached that time, unless the [`Alarm`] was
//!    dropped before.
//! 2. Wakers are woken and dropped while no lock of this module is held.
//! 3. A dropped alarm leaves nothing behind.
//!
//! The locks here are `std`'s even in the models: time doesn't pass in a model, so nothing there waits on them.

use std::{
    collections::BTreeMap,
    fmt, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    task::Waker,
    thread,
    time::{Duration, Instant},
};

/// A source of time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The current time.
    fn now(&self) -> Instant;

    /// Wakes a waker at the given time, or at once if that has passed.
    fn alarm(&self, at: Instant, waker: Waker) -> Alarm;
}

/// A pending wake-up. Dropping it cancels the wake-up.
#[derive(Debug)]
#[must_use = "dropping an alarm cancels it"]
pub struct Alarm {
    alarms: Arc<Alarms>,
    key: AlarmKey,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let waker = self.alarms.lock().wakers.remove(&self.key);
        drop(waker);
    }
}

type AlarmKey = (Instant, u64);

#[derive(Debug, Default)]
struct Alarms {
    /// The pending alarms, and whether the timer thread must be woken for a new one.
    pending: Mutex<Pending>,
    earlier: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    /// Earliest first. The number in the key distinguishes alarms for the same instant.
    wakers: BTreeMap<AlarmKey, Waker>,
    thread: TimerThread,
}

/// What the timer thread is doing. Most alarms are dropped long before they are due, and a new one is usually
/// later than the time until which the thread sleeps anyway. So the thread is woken only if it would oversleep.
#[derive(Clone, Copy, Debug, Default)]
enum TimerThread {
    /// It will look at the alarms before it sleeps, or it hasn't been started.
    #[default]
    Awake,
    SleepsUntil(Instant),
    SleepsUntilNotified,
}

impl TimerThread {
    fn oversleeps(self, at: Instant) -> bool {
        match self {
            Self::Awake => false,
            Self::SleepsUntil(end) => at < end,
            Self::SleepsUntilNotified => true,
        }
    }
}

impl Alarms {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, at: Instant, waker: Waker) -> Alarm {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let key = (at, NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let mut pending = self.lock();
        pending.wakers.insert(key, waker);
        let oversleeps = pending.thread.oversleeps(at);
        if oversleeps {
            // The thread is notified below and then looks at all alarms.
            pending.thread = TimerThread::Awake;
        }
        drop(pending);
        if oversleeps {
            self.earlier.notify_one();
        }
        Alarm {
            alarms: Arc::clone(self),
            key,
        }
    }

    /// Removes the alarms that are due, so that the caller can wake them after releasing the lock.
    fn take_due(pending: &mut BTreeMap<AlarmKey, Waker>, now: Instant) -> BTreeMap<AlarmKey, Waker> {
        let later = pending.split_off(&(now, u64::MAX));
        mem::replace(pending, later)
    }

    fn wake_due(&self, now: Instant) {
        let due = Self::take_due(&mut self.lock().wakers, now);
        due.into_values().for_each(Waker::wake);
    }

    /// The loop of the timer thread. It sleeps until the earliest alarm is due or an earlier one is added. If
    /// that alarm is dropped, the thread wakes up once for nothing.
    fn run(&self) -> ! {
        loop {
            let mut pending = self.lock();
            let due = loop {
                let now = Instant::now();
                let due = Self::take_due(&mut pending.wakers, now);
                if !due.is_empty() {
                    break due;
                }
                let first = pending.wakers.first_key_value().map(|(&(at, _), _)| at);
                pending.thread = first.map_or(TimerThread::SleepsUntilNotified, TimerThread::SleepsUntil);
                pending = match first {
                    None => self.earlier.wait(pending).unwrap_or_else(PoisonError::into_inner),
                    Some(at) => {
                        let rest = at.saturating_duration_since(now);
                        self.earlier
                            .wait_timeout(pending, rest)
                            .unwrap_or_else(PoisonError::into_inner)
                            .0
                    }
                };
                pending.thread = TimerThread::Awake;
            };
            drop(pending);
            due.into_values().for_each(Waker::wake);
        }
    }
}

/// The monotonic time of the machine. One thread serves all alarms. It starts with the first alarm and sleeps
/// while none is pending.
#[derive(Debug)]
pub struct SystemClock {
    alarms: Arc<Alarms>,
}

impl SystemClock {
    /// The clock of this process.
    pub fn shared() -> Arc<dyn Clock> {
        static SHARED: OnceLock<Arc<SystemClock>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| {
            Arc::new(Self {
                alarms: Arc::default(),
            })
        })) as Arc<dyn Clock>
    }

    fn start_thread(&self) {
        static STARTED: OnceLock<()> = OnceLock::new();
        STARTED.get_or_init(|| {
            let alarms = Arc::clone(&self.alarms);
            let thread = thread::Builder::new()
                .name("tidelock-clock".into())
                .spawn(move || alarms.run());
            assert!(thread.is_ok(), "cannot start the clock thread: {thread:?}");
        });
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn alarm(&self, at: Instant, waker: Waker) -> Alarm {
        self.start_thread();
        self.alarms.add(at, waker)
    }
}

/// A clock that tests advance by hand.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Instant>,
    alarms: Arc<Alarms>,
}

impl ManualClock {
    /// A clock at an arbitrary time.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: Mutex::new(Instant::now()),
            alarms: Arc::default(),
        })
    }

    /// Advances the clock and wakes the alarms that are due.
    pub fn advance(&self, by: Duration) {
        let now = {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            *now += by;
            *now
        };
        self.alarms.wake_due(now);
    }

    /// How many alarms are pending.
    pub fn pending_alarms(&self) -> usize {
        self.alarms.lock().wakers.len()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alarm(&self, at: Instant, waker: Waker) -> Alarm {
        let alarm = self.alarms.add(at, waker);
        // The clock may have been advanced past that time before the alarm was added.
        self.alarms.wake_due(self.now());
        alarm
    }
}
