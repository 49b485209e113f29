//! Who gives way when all places of a listener are taken: the connection that has waited longest for its peer.
//!
//! A connection waits before its first request, also in the middle of its head, and after each answer. One that waits
//! costs a place and does nothing with it, so it never keeps away somebody who wants to ask: whoever comes gets its
//! place. A connection whose request is being answered is never sent away.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};
use kernel::{CancellationToken, Cause, Scope};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone, Debug)]
pub(super) struct Seats {
    places: Arc<Semaphore>,
    /// Guards who sits where; held to look one of them up.
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    sitting: HashMap<u64, Sitting>,
    waiting: BTreeMap<u64, u64>,
    /// Somebody is at the door, and nobody was waiting: the next who begins to wait gives way.
    is_wanted: bool,
}

#[derive(Debug)]
struct Sitting {
    /// None when the answer is a stream, which has a place of its own.
    place: Option<OwnedSemaphorePermit>,
    doing: Doing,
    give_way: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    New {
        since: u64,
    },
    Working,
    /// Waits for another request. The end of the last answer may still be on its way.
    Answered {
        since: u64,
    },
}

impl Seats {
    pub(super) fn new(number: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(number)),
            table: Arc::default(),
        }
    }

    /// A place for a connection that is there. If there is none, whoever has waited longest makes room.
    ///
    /// *Cancel safety*: may be dropped at any time; somebody may have given way for nothing then.
    pub(super) async fn take(&self) -> io::Result<Seat> {
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                self.lock().send_away_oldest();
                let place = Arc::clone(&self.places).acquire_owned().await;
                self.lock().is_wanted = false;
                place.map_err(io::Error::other)?
            }
        };
        let number = self.lock().sit(place);
        Ok(Seat {
            seats: self.clone(),
            number,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change is complete before anything can panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn sit(&mut self, place: OwnedSemaphorePermit) -> u64 {
        let number = self.count();
        self.waiting.insert(number, number);
        self.sitting.insert(
            number,
            Sitting {
                place: Some(place),
                doing: Doing::New { since: number },
                give_way: CancellationToken::new(),
            },
        );
        number
    }

    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn send_away_oldest(&mut self) {
        let oldest = self.waiting.pop_first().map(|(_, number)| number);
        match oldest.and_then(|number| self.sitting.get(&number)) {
            Some(sitting) => sitting.give_way(),
            None => self.is_wanted = true,
        }
    }

    fn work(&mut self, number: u64) {
        if let Some(sitting) = self.sitting.get_mut(&number) {
            if let Doing::New { since } | Doing::Answered { since } = sitting.doing {
                self.waiting.remove(&since);
            }
            sitting.doing = Doing::Working;
        }
    }

    fn wait_again(&mut self, number: u64) {
        let since = self.count();
        let Some(sitting) = self.sitting.get_mut(&number) else {
            return;
        };
        sitting.doing = Doing::Answered { since };
        // One without a place has nothing to give.
        if sitting.place.is_none() {
            return;
        }
        if self.is_wanted {
            self.is_wanted = false;
            sitting.give_way();
        } else {
            self.waiting.insert(since, number);
        }
    }

    fn give_back(&mut self, number: u64) -> Option<OwnedSemaphorePermit> {
        let sitting = self.sitting.get_mut(&number)?;
        if let Doing::New { since } | Doing::Answered { since } = sitting.doing {
            self.waiting.remove(&since);
        }
        sitting.place.take()
    }

    fn leave(&mut self, number: u64) {
        self.work(number);
        self.sitting.remove(&number);
    }
}

impl Sitting {
    fn give_way(&self) {
        self.give_way
            .cancel(Cause::new("the daemon", "somebody else wants to ask"));
    }
}

/// The place of one connection. Dropping it gives the place back.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Seats,
    number: u64,
}

impl Seat {
    pub(super) fn give_way(&self) -> Scope {
        let table = self.seats.lock();
        let sitting = table.sitting.get(&self.number);
        sitting.map_or_else(
            || CancellationToken::new().scope(),
            |sitting| sitting.give_way.scope(),
        )
    }

    pub(super) fn doing(&self) -> Doing {
        let table = self.seats.lock();
        let sitting = table.sitting.get(&self.number);
        sitting.map_or(Doing::Working, |sitting| sitting.doing)
    }

    pub(super) fn work(&self) {
        self.seats.lock().work(self.number);
    }

    /// The answer is a stream, or the connection goes on as something else: the place is for somebody else.
    pub(super) fn give_back(&self) {
        let place = self.seats.lock().give_back(self.number);
        drop(place);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().leave(self.number);
    }
}

/// The body of an answer. When it ends, its connection waits for the next request.
#[derive(Debug)]
pub(super) struct Answering<B> {
    body: B,
    seat: Arc<Seat>,
}

impl<B> Answering<B> {
    pub(super) fn new(body: B, seat: Arc<Seat>) -> Self {
        Self { body, seat }
    }
}

impl<B> Drop for Answering<B> {
    fn drop(&mut self) {
        self.seat.seats.lock().wait_again(self.seat.number);
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    fn take_now(seats: &Seats) -> Arc<Seat> {
        match pin!(seats.take()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(seat) => Arc::new(seat.unwrap()),
            Poll::Pending => panic!("there is no place"),
        }
    }

    /// Has somebody at the door once, and returns who is told to give way by then.
    fn sent_away(seats: &Seats, all: &[&Arc<Seat>]) -> Vec<bool> {
        let mut take = pin!(seats.take());
        let polled = take.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "there was a place");
        all.iter().map(|seat| seat.give_way().is_cancelled()).collect()
    }

    #[test]
    fn whoever_has_waited_longest_gives_way() {
        let seats = Seats::new(3);
        let [first, second, third] = [(); 3].map(|()| take_now(&seats));
        first.work();
        drop(Answering::new((), Arc::clone(&first)));
        assert!(matches!(first.doing(), Doing::Answered { .. }));
        let all = [&first, &second, &third];
        assert_eq!(sent_away(&seats, &all), [false, true, false]);
        assert_eq!(sent_away(&seats, &all), [false, true, true]);
        assert_eq!(sent_away(&seats, &all), [true, true, true]);
    }

    #[test]
    fn nobody_who_works_gives_way_until_it_has_answered() {
        let seats = Seats::new(1);
        let only = take_now(&seats);
        only.work();
        let mut take = pin!(seats.take());
        let mut context = Context::from_waker(Waker::noop());
        assert!(take.as_mut().poll(&mut context).is_pending());
        assert!(!only.give_way().is_cancelled());
        drop(Answering::new((), Arc::clone(&only)));
        assert!(only.give_way().is_cancelled(), "somebody is still at the door");
        drop(only);
        assert!(take.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn a_stream_gives_its_place_back_and_is_not_sent_away() {
        let seats = Seats::new(1);
        let stream = take_now(&seats);
        stream.work();
        stream.give_back();
        let other = take_now(&seats);
        drop(Answering::new((), Arc::clone(&stream)));
        assert_eq!(sent_away(&seats, &[&stream, &other]), [false, true]);
        // One that gives its place back while it waits has nothing to give any more.
        other.give_back();
        let waiting = take_now(&seats);
        waiting.give_back();
        let last = take_now(&seats);
        assert_eq!(sent_away(&seats, &[&waiting, &last]), [false, true]);
        drop((waiting, last));
        drop((stream, other));
        assert_eq!(seats.lock().sitting.len(), 0);
        assert_eq!(seats.lock().waiting.len(), 0);
    }
}
