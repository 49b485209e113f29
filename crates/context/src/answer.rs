//! The answer to a question.

use std::time::Duration;

use crate::lines::Lines;
use crate::path::TreePath;
use crate::strategy::StrategyName;

/// The fragments that were found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The fragments, in reading order.
    pub fragments: Vec<Fragment>,
    /// All of them as one text for a model, with a line that tells where each is from.
    pub text: String,
    /// The tokens of that text. Never more than the budget.
    pub tokens: usize,
    /// The budget.
    pub budget_tokens: usize,
    /// What each strategy did, in the configured order.
    pub strategies: Vec<StrategyReport>,
    /// What was found but isn't shown, best first, up to a limit.
    pub left_out: Vec<LeftOut>,
    /// How many results were left out in total.
    pub left_out_total: usize,
    /// How long it took.
    pub took: Duration,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// The file.
    pub path: TreePath,
    /// The lines.
    pub lines: Lines,
    /// How much of these lines is shown.
    pub depth: Depth,
    /// The definition that it is, if it is one: its kind and name.
    pub symbol: Option<String>,
    /// The text that is shown.
    pub text: String,
    /// The tokens of this text, including the line that tells where it is from.
    pub tokens: usize,
    /// How well it fits. Only comparable within an answer.
    pub score: f64,
    /// Which strategies found it, and how much each has added to the score.
    pub parts: Vec<ScorePart>,
}

/// How much of some lines is shown, from least to most.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Depth {
    /// The names of what is defined there.
    Name,
    /// The lines that declare what is defined there.
    Signature,
    /// All of the lines.
    Body,
}

/// What a strategy has added to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// The strategy.
    pub strategy: StrategyName,
    /// The rank in that strategy's list, from 1.
    pub rank: usize,
    /// How much it has added.
    pub adds: f64,
    /// Why the strategy found it: `defines ParseConfig`, `3 of 4 words`.
    pub why: String,
}

/// What a strategy did.
#[derive(Clone, Debug, PartialEq)]
pub struct StrategyReport {
    /// The strategy.
    pub strategy: StrategyName,
    /// The outcome.
    pub outcome: Outcome,
    /// How long it took; zero if it didn't run.
    pub took: Duration,
}

/// The outcome of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It found this many locations.
    Ran {
        /// The number of locations.
        hits: usize,
    },
    /// It doesn't apply: no repository, no language server. Neither a success nor a failure.
    NotApplicable {
        /// Why.
        why: String,
    },
    /// Its own time limit passed.
    TimedOut {
        /// The time limit.
        after: Duration,
    },
    /// The deadline of the whole question passed while it ran, or before a worker was free for it.
    OutOfTime,
    /// It has failed too often and isn't asked.
    Open {
        /// When it is tried again; `None` if somebody has opened its circuit by hand.
        retry_after: Option<Duration>,
    },
    /// It failed.
    Failed {
        /// Why.
        why: String,
    },
    /// The caller or a setting excluded it.
    LeftOut,
}

/// Something that was found but isn't shown.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The file.
    pub path: TreePath,
    /// The lines.
    pub lines: Lines,
    /// How well it fits.
    pub score: f64,
    /// How many tokens it would have taken.
    pub tokens: usize,
}
