//! Requests in turns, for requests that take between a tenth of a millisecond and a second: in each round, each asker
//! asks a few times.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::measure::Measured;
use crate::statistics::{Figure, nanoseconds};

/// How often each one asks in its turn, unless that takes longer than a turn.
const REQUESTS: usize = 25;
/// The maximum length of a turn; the current request is finished.
const TURN: Duration = Duration::from_millis(60);
/// The first rounds, which don't count.
const WARM_UP_ROUNDS: usize = 3;

pub(crate) struct Asker<'a> {
    name: &'static str,
    ask: Box<dyn FnMut() -> Result<()> + 'a>,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(name: &'static str, ask: impl FnMut() -> Result<()> + 'a) -> Self {
        Self {
            name,
            ask: Box::new(ask),
        }
    }
}

/// Lets all ask in turns. A sample is the median of one turn, in nanoseconds; results are in the order of the askers.
pub(crate) fn ask_in_turns(askers: &mut [Asker<'_>], rounds: usize) -> Result<Vec<Measured>> {
    let mut measured: Vec<Measured> = askers
        .iter()
        .map(|asker| Measured {
            name: asker.name,
            samples: Vec::with_capacity(rounds),
        })
        .collect();
    for round in 0..WARM_UP_ROUNDS + rounds {
        for turn in 0..askers.len() {
            let chosen = (round + turn) % askers.len();
            let asker = &mut askers[chosen];
            let sample = take_turn(asker).with_context(|| format!("`{}` got no answer", asker.name))?;
            if round >= WARM_UP_ROUNDS {
                measured[chosen].samples.push(sample);
            }
        }
    }
    Ok(measured)
}

fn take_turn(asker: &mut Asker<'_>) -> Result<f64> {
    let turn = Instant::now();
    let mut took = Vec::with_capacity(REQUESTS);
    while took.is_empty() || (took.len() < REQUESTS && turn.elapsed() < TURN) {
        let began = Instant::now();
        (asker.ask)()?;
        took.push(nanoseconds(began.elapsed()));
    }
    Ok(Figure::of(&took).median)
}

pub(super) fn added(direct: &Measured, shared: &Measured) -> Vec<f64> {
    let pairs = shared.samples.iter().zip(&direct.samples);
    pairs.map(|(shared, direct)| shared - direct).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn askers_take_turns_and_the_warm_up_does_not_count() {
        let order = RefCell::new(Vec::new());
        let asker = |name| {
            let order = &order;
            Asker::new(name, move || {
                if order.borrow().last() != Some(&name) {
                    order.borrow_mut().push(name);
                }
                Ok(())
            })
        };
        let measured = ask_in_turns(&mut [asker("a"), asker("b")], 1).unwrap();
        // The second round reverses the order, so two turns of one follow each other.
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "a"]);
        let counts: Vec<_> = measured
            .iter()
            .map(|measured| (measured.name, measured.samples.len()))
            .collect();
        assert_eq!(counts, [("a", 1), ("b", 1)]);
    }

    #[test]
    fn what_was_added_is_a_difference_within_a_round() {
        let measured = |samples: &[f64]| Measured {
            name: "",
            samples: samples.to_vec(),
        };
        assert_eq!(
            added(&measured(&[10.0, 100.0]), &measured(&[12.0, 105.0])),
            [2.0, 5.0]
        );
    }
}
