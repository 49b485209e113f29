//! The settings.

use std::collections::BTreeMap;
use std::time::Duration;

use tokenizer::TokenizerName;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContextSettings {
    pub budget_tokens: usize,
    pub patience: Duration,
    pub tokenizer: TokenizerName,
    /// How many strategies run at once, for all questions together.
    pub workers: usize,
    pub strategies: BTreeMap<String, StrategySettings>,
    pub commands: Vec<CommandSettings>,
    /// The size limit of all indexes together. The least recently used one is deleted first.
    pub index_limit_bytes: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StrategySettings {
    /// Whether it is used if the request doesn't name it.
    pub enabled: bool,
    pub timeout: Duration,
    pub weight_percent: u32,
}

/// A strategy that is a command: it reads a question as JSON and writes locations as JSON.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandSettings {
    pub name: String,
    pub command: Vec<String>,
    pub timeout: Duration,
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
