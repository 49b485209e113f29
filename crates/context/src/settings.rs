//! What can be set.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenizer::TokenizerName;

/// What can be set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContextSettings {
    /// The tokens of an answer if nobody says how many.
    pub budget_tokens: usize,
    /// How long an answer may take if nobody says so.
    pub patience: Duration,
    /// How tokens are counted.
    pub tokenizer: TokenizerName,
    /// How many strategies run at once, for all questions together.
    pub workers: usize,
    /// What is set for a strategy, by its name.
    pub strategies: BTreeMap<String, StrategySettings>,
    /// Strategies that are commands.
    pub commands: Vec<CommandSettings>,
    /// The most bytes that all indexes together may have. The one that was not asked for longest goes first.
    pub index_limit_bytes: u64,
}

/// What is set for a strategy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StrategySettings {
    /// Whether it is asked if nobody asks for it by name.
    pub enabled: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// How much what it finds counts, in hundredths.
    pub weight_percent: u32,
}

/// A strategy that is a command: it reads a question as JSON and writes places as JSON.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandSettings {
    /// The name of the strategy.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// How much what it finds counts, in hundredths.
    pub weight_percent: u32,
}

impl Default for StrategySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            timeout: Duration::from_millis(2000),
            weight_percent: 100,
        }
    }
}

impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            budget_tokens: 8000,
            patience: Duration::from_millis(3000),
            tokenizer: TokenizerName::O200k,
            workers: 4,
            strategies: BTreeMap::new(),
            commands: Vec::new(),
            index_limit_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}
