//! The settings.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenizer::TokenizerName;

/// The settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContextSettings {
    /// The default budget in tokens.
    pub budget_tokens: usize,
    /// The default deadline.
    pub patience: Duration,
    /// How to count tokens.
    pub tokenizer: TokenizerName,
    /// How many strategies run at once, for all questions together.
    pub workers: usize,
    /// The settings of strategies, by name.
    pub strategies: BTreeMap<String, StrategySettings>,
    /// Strategies that are commands.
    pub commands: Vec<CommandSettings>,
    /// The size limit of all indexes together. The least recently used one is deleted first.
    pub index_limit_bytes: u64,
}

/// The settings of a strategy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StrategySettings {
    /// Whether it is used if nobody asks for it by name.
    pub enabled: bool,
    /// Its time limit.
    pub timeout: Duration,
    /// The weight of its results, in percent.
    pub weight_percent: u32,
}

/// A strategy that is a command: it reads a question as JSON and writes locations as JSON.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandSettings {
    /// The name of the strategy.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its time limit.
    pub timeout: Duration,
    /// The weight of its results, in percent.
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
