//! What is answered.

use std::time::Duration;

use crate::lines::Lines;
use crate::path::TreePath;
use crate::strategy::StrategyName;

/// The pieces that were found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The pieces, in the order in which they should be read.
    pub fragments: Vec<Fragment>,
    /// All of them as one text, as a model gets it, with a line that says where each is from.
    pub text: String,
    /// The tokens of that text. Never more than the budget.
    pub tokens: usize,
    /// How many it might have had.
    pub budget_tokens: usize,
    /// What each strategy did, in the order in which they are configured.
    pub strategies: Vec<StrategyReport>,
    /// What was found and is not shown, the best first, up to a number.
    pub left_out: Vec<LeftOut>,
    /// How much was left out altogether.
    pub left_out_total: usize,
    /// How long it took.
    pub took: Duration,
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// The file.
    pub path: TreePath,
    /// Where in it.
    pub lines: Lines,
    /// How much of these lines is shown.
    pub depth: Depth,
    /// The definition that it is, if it is one: its kind and name.
    pub symbol: Option<String>,
    /// What is shown.
    pub text: String,
    /// The tokens of this text, with the line that says where it is from.
    pub tokens: usize,
    /// How well it fits. Only to be compared within an answer.
    pub score: f64,
    /// Which strategies found it, and how much each has added to the score.
    pub parts: Vec<ScorePart>,
}

/// How much of some lines is shown. The larger, the more.
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
    /// Which.
    pub strategy: StrategyName,
    /// Its place in the list of that strategy, from 1.
    pub rank: usize,
    /// How much it has added.
    pub adds: f64,
    /// Why it found it, in words: `defines ParseConfig`, `3 of 4 words`.
    pub why: String,
}

/// What a strategy did.
#[derive(Clone, Debug, PartialEq)]
pub struct StrategyReport {
    /// Which.
    pub strategy: StrategyName,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took; nothing if it did not run.
    pub took: Duration,
}

/// What became of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It found so many places.
    Ran {
        /// How many.
        hits: usize,
    },
    /// It has nothing to say here: no repository, no language server. Neither a success nor a failure.
    NotApplicable {
        /// Why.
        why: String,
    },
    /// Its time was over.
    TimedOut {
        /// How much it had.
        after: Duration,
    },
    /// The deadline of the whole question came while it ran, or before a worker was free for it.
    OutOfTime,
    /// It has failed too often, and is not asked.
    Open {
        /// When it is tried again; `None` if somebody has opened its circuit by hand.
        retry_after: Option<Duration>,
    },
    /// It failed.
    Failed {
        /// Why.
        why: String,
    },
    /// It was left out by whoever asked, or by a setting.
    LeftOut,
}

/// Something that was found and is not shown.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The file.
    pub path: TreePath,
    /// Where in it.
    pub lines: Lines,
    /// How well it fits.
    pub score: f64,
    /// How many tokens it would have taken.
    pub tokens: usize,
}
