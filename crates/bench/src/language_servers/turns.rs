//! Requests in turns: what takes a tenth of a millisecond or a second is asked a few times by each in each round.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::measure::Measured;
use crate::statistics::{Figure, nanoseconds};

/// How often each asks in its turn, unless it takes longer than a turn.
const REQUESTS: usize = 25;
/// How long a turn lasts at most; the request that is under way is finished.
const TURN: Duration = Duration::from_millis(60);
/// Rounds at the beginning that do not count.
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

/// Lets all ask in turns. A sample is the median of one turn, in nanoseconds; the results are in the order of the askers.
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
        // In the second round the order is turned round, so that two turns of one follow each other.
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
