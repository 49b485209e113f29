//! The one loop through which every short operation is measured.
//!
//! A contender prepares an operation per thread; the harness repeats it often enough for the clock, in rounds in
//! which every contender has its turn. The first contender changes from round to round, so that none always follows
//! the same neighbor. All threads of a turn start together, and a turn in which they did not run at the same time is
//! repeated.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::statistics::nanoseconds;

/// The minimum length of a turn: long compared with the clock and the start, short compared with a time slice, so
/// that most turns are not interrupted even on a busy machine.
const TURN: Duration = Duration::from_millis(1);
/// How many turns each contender has.
const ROUNDS: usize = 201;
/// The first turns, which don't count.
const WARM_UP_ROUNDS: usize = 5;
/// How many turns to try before a number of repetitions counts as enough.
const CALIBRATION_TURNS: usize = 5;
/// The share of a turn in which all threads must run. It is no higher because an unfair lock lets one thread finish
/// early.
const ENOUGH_OVERLAP: f64 = 0.5;
/// How often to repeat a turn that lacks overlap.
const ATTEMPTS: usize = 10;
/// Where the search for the number of repetitions ends, should an operation be optimised away.
const MOST_REPETITIONS: u64 = 1 << 32;

/// Repeats an operation the given number of times on the calling thread, and returns the start and end.
type Turn<'a> = dyn Fn(u64, &StartingLine) -> Span + Sync + 'a;

/// Where the threads of a turn wait for each other.
struct StartingLine {
    threads: usize,
    arrived: AtomicUsize,
}

impl StartingLine {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
        }
    }

    fn wait(&self) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < self.threads {
            spin_loop();
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    began: Instant,
    ended: Instant,
}

struct Taken {
    nanoseconds_per_operation: f64,
    /// The share of the turn during which all threads ran.
    overlap: f64,
}

fn overlap(spans: &[Span]) -> f64 {
    let began = || spans.iter().map(|span| span.began);
    let ended = || spans.iter().map(|span| span.ended);
    let (Some(first), Some(last_to_begin)) = (began().min(), began().max()) else {
        return 0.0;
    };
    let (Some(first_to_end), Some(last)) = (ended().min(), ended().max()) else {
        return 0.0;
    };
    let together = first_to_end.saturating_duration_since(last_to_begin);
    nanoseconds(together) / nanoseconds(last - first).max(1.0)
}

pub(crate) struct Contender<'a> {
    pub(crate) name: &'static str,
    turn: Box<Turn<'a>>,
}

/// The measurement: nanoseconds per operation, one sample per round.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) samples: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `prepare` runs once per thread and turn, off the clock; the operation it returns is timed.
    pub(crate) fn new<P, O>(name: &'static str, prepare: P) -> Self
    where
        P: Fn() -> O + Sync + 'a,
        O: FnMut(),
    {
        let turn = move |repetitions: u64, start: &StartingLine| {
            let mut operation = prepare();
            start.wait();
            let began = Instant::now();
            for _ in 0..repetitions {
                operation();
            }
            Span {
                began,
                ended: Instant::now(),
            }
        };
        Self {
            name,
            turn: Box::new(turn),
        }
    }

    /// The mean time per operation, as one thread sees it.
    ///
    /// On a busy machine the threads of a turn often run one after another, without any contention. Such a turn is
    /// repeated a few times; after that the best of them counts.
    fn sample(&self, threads: usize, repetitions: u64) -> f64 {
        let mut best = self.turn(threads, repetitions);
        for _ in 1..ATTEMPTS {
            if best.overlap >= ENOUGH_OVERLAP {
                break;
            }
            let next = self.turn(threads, repetitions);
            if next.overlap > best.overlap {
                best = next;
            }
        }
        best.nanoseconds_per_operation
    }

    fn turn(&self, threads: usize, repetitions: u64) -> Taken {
        let start = StartingLine::new(threads);
        let spans: Vec<Span> = thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|_| scope.spawn(|| (self.turn)(repetitions, &start)))
                .collect();
            let own = (self.turn)(repetitions, &start);
            let joined = others.into_iter().map(|other| other.join().unwrap_or(own));
            joined.chain([own]).collect()
        });
        let in_all: f64 = spans
            .iter()
            .map(|span| nanoseconds(span.ended - span.began))
            .sum();
        Taken {
            nanoseconds_per_operation: in_all / (threads as f64 * repetitions as f64),
            overlap: overlap(&spans),
        }
    }

    fn calibrate(&self, threads: usize) -> u64 {
        let mut repetitions = 64;
        while repetitions < MOST_REPETITIONS {
            // The shortest of a few: an interrupted turn must not pass for a long one.
            let shortest = (0..CALIBRATION_TURNS)
                .map(|_| self.sample(threads, repetitions))
                .fold(f64::INFINITY, f64::min);
            if shortest * repetitions as f64 >= nanoseconds(TURN) {
                break;
            }
            repetitions *= 2;
        }
        repetitions
    }
}

/// Measures all contenders in turns. The results are in the order of the contenders.
pub(crate) fn in_turns(contenders: &[Contender<'_>], threads: usize) -> Vec<Measured> {
    let repetitions: Vec<u64> = contenders
        .iter()
        .map(|contender| contender.calibrate(threads))
        .collect();
    let mut measured: Vec<Measured> = contenders
        .iter()
        .map(|contender| Measured {
            name: contender.name,
            samples: Vec::with_capacity(ROUNDS),
        })
        .collect();
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        for turn in 0..contenders.len() {
            let chosen = (round + turn) % contenders.len();
            let sample = contenders[chosen].sample(threads, repetitions[chosen]);
            if round >= WARM_UP_ROUNDS {
                measured[chosen].samples.push(sample);
            }
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn every_thread_does_every_repetition() {
        let done = AtomicU64::new(0);
        let contender = Contender::new("count", || {
            || {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        let taken = contender.turn(2, 1000);
        assert_eq!(done.load(Ordering::Relaxed), 2000);
        assert!(taken.nanoseconds_per_operation > 0.0);
    }

    #[test]
    fn calibration_fills_a_turn() {
        let contender = Contender::new("sleep", || || thread::sleep(Duration::from_micros(100)));
        let repetitions = contender.calibrate(1);
        assert_eq!(
            repetitions, 64,
            "64 naps of a tenth of a millisecond are longer than a turn"
        );
    }
    #[test]
    fn overlap_is_the_share_in_which_all_worked() {
        let origin = Instant::now();
        let span = |began, ended| Span {
            began: origin + Duration::from_millis(began),
            ended: origin + Duration::from_millis(ended),
        };
        let cases = [
            (vec![span(0, 10)], 1.0),
            (vec![span(0, 10), span(0, 10)], 1.0),
            (vec![span(0, 8), span(4, 16)], 0.25),
            (vec![span(0, 10), span(10, 20)], 0.0),
            (vec![span(0, 10), span(15, 20)], 0.0),
        ];
        for (spans, expected) in cases {
            assert_eq!(overlap(&spans), expected, "{spans:?}");
        }
    }
}
