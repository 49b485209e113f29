//! Long turns: a fixed amount of work in a fresh directory.
//!
//! Work that goes to disk does not fit the loop of `measure.rs`: it can't be repeated a million times, and it leaves
//! files behind. Here a contender gets an empty directory, does all of its work there, and returns its own
//! measurements. The order of turns changes from round to round, as everywhere, and every directory is removed before
//! the next turn begins.
//!
//! # A peer in a separate process
//!
//! A turn is anything that takes a directory and returns numbers, so a peer that can't be linked into this program
//! can still take turns: its contender starts a program with the directory as its argument, and reads the numbers
//! from its standard output, one per line. The clock then runs in that program, and its start is not counted.
//! `apalis-sqlite`, the peer for jobs, has to be included like this, from a separate workspace: its `sqlx` brings its
//! own libsqlite3, and cargo lets only one package of a dependency tree link a library (`links`).

use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::measure::Measured;

/// How many turns each contender has, and how many of the first ones don't count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) counted: usize,
    pub(crate) warm_up: usize,
}

/// Does the work in an empty directory, and returns one sample for each of `N` questions.
type Turn<'a, const N: usize> = dyn FnMut(&Path) -> Result<[f64; N]> + 'a;

pub(crate) struct LongContender<'a, const N: usize> {
    name: &'static str,
    turn: Box<Turn<'a, N>>,
}

impl<'a, const N: usize> LongContender<'a, N> {
    pub(crate) fn new(name: &'static str, turn: impl FnMut(&Path) -> Result<[f64; N]> + 'a) -> Self {
        Self {
            name,
            turn: Box::new(turn),
        }
    }
}

/// A directory for the measured files. It is next to this program, since a directory for temporary files may be in
/// memory, where a sync costs nothing.
pub(crate) fn scratch() -> Result<TempDir> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let beside = program.parent().context("this program is in no directory")?;
    tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(beside)
        .with_context(|| format!("cannot make a directory in {}", beside.display()))
}

/// Measures all contenders in turns. The results are in the order of the contenders, one for each question.
pub(crate) fn in_long_turns<const N: usize, const CONTENDERS: usize>(
    rounds: Rounds,
    mut contenders: [LongContender<'_, N>; CONTENDERS],
) -> Result<[[Measured; N]; CONTENDERS]> {
    let scratch = scratch()?;
    let mut measured = contenders.each_ref().map(|contender| {
        std::array::from_fn(|_| Measured {
            name: contender.name,
            samples: Vec::with_capacity(rounds.counted),
        })
    });
    for round in 0..rounds.warm_up + rounds.counted {
        for turn in 0..CONTENDERS {
            let chosen = (round + turn) % CONTENDERS;
            let contender = &mut contenders[chosen];
            let directory = TempDir::new_in(&scratch)?;
            let samples = (contender.turn)(directory.path())
                .with_context(|| format!("a turn of `{}` failed", contender.name))?;
            directory.close()?;
            if round >= rounds.warm_up {
                for (measured, sample) in measured[chosen].iter_mut().zip(samples) {
                    measured.samples.push(sample);
                }
            }
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, fs};

    use super::*;

    #[test]
    fn contenders_take_turns_in_empty_directories_and_the_warm_up_does_not_count() {
        let order = RefCell::new(Vec::new());
        let contender = |name| {
            let order = &order;
            LongContender::new(name, move |directory: &Path| {
                assert_eq!(fs::read_dir(directory)?.count(), 0);
                fs::write(directory.join("left behind"), "")?;
                order.borrow_mut().push(name);
                let turns = order.borrow().len() as f64;
                Ok([turns, -turns])
            })
        };
        let rounds = Rounds {
            counted: 2,
            warm_up: 1,
        };
        let measured = in_long_turns(rounds, [contender("a"), contender("b")]).unwrap();
        assert_eq!(*order.borrow(), ["a", "b", "b", "a", "a", "b"]);
        let samples = measured.map(|questions| questions.map(|measured| (measured.name, measured.samples)));
        let expected = [
            [("a", vec![4.0, 5.0]), ("a", vec![-4.0, -5.0])],
            [("b", vec![3.0, 6.0]), ("b", vec![-3.0, -6.0])],
        ];
        assert_eq!(samples, expected);
    }

    #[test]
    fn a_turn_that_fails_is_named() {
        let failing = LongContender::new("broken", |_: &Path| -> Result<[f64; 1]> {
            anyhow::bail!("no disk")
        });
        let rounds = Rounds {
            counted: 1,
            warm_up: 0,
        };
        let error = in_long_turns(rounds, [failing]).unwrap_err();
        assert_eq!(format!("{error:#}"), "a turn of `broken` failed: no disk");
    }
}
