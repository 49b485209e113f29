//! The answer to a question.

use std::time::Duration;

use crate::lines::Lines;
use crate::path::TreePath;
use crate::strategy::StrategyName;

/// The fragments that were found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub fragments: Vec<Fragment>,
    /// All of them as one text for a model, each with a line that says where it is from.
    pub text: String,
    /// The tokens of that text. Never more than the budget.
    pub tokens: usize,
    pub budget_tokens: usize,
    /// What each strategy did, in the configured order.
    pub strategies: Vec<StrategyReport>,
    /// What was found but isn't shown, best first, up to a limit.
    pub left_out: Vec<LeftOut>,
    /// How many results were left out in total.
    pub left_out_total: usize,
    pub took: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    pub path: TreePath,
    pub lines: Lines,
    pub depth: Depth,
    /// Its kind and name, if it is a definition.
    pub symbol: Option<String>,
    pub text: String,
    /// The tokens of this text, including the line that says where it is from.
    pub tokens: usize,
    /// How well it fits. Only comparable within an answer.
    pub score: f64,
    /// Which strategies found it, and how much each added to the score.
    pub parts: Vec<ScorePart>,
}

/// How much of some lines is shown, from least to most.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Depth {
    Name,
    Signature,
    Body,
}

/// What a strategy added to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    pub strategy: StrategyName,
    /// The rank in that strategy's list, from 1.
    pub rank: usize,
    pub adds: f64,
    /// Why the strategy found it: `defines ParseConfig`, `3 of 4 words`.
    pub why: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StrategyReport {
    pub strategy: StrategyName,
    pub outcome: StrategyOutcome,
    /// How long it took; zero if it didn't run.
    pub took: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StrategyOutcome {
    Ran {
        hits: usize,
    },
    /// It doesn't apply: no repository, no language server. Neither a success nor a failure.
    NotApplicable {
        why: String,
    },
    TimedOut {
        after: Duration,
    },
    /// The deadline of the whole question passed while it ran, or before a worker was free for it.
    OutOfTime,
    Open {
        /// When it is tried again; `None` if somebody opened its circuit by hand.
        retry_after: Option<Duration>,
    },
    Failed {
        why: String,
    },
    LeftOut,
}

/// Something that was found but isn't shown.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    pub path: TreePath,
    pub lines: Lines,
    pub score: f64,
    pub tokens: usize,
}
