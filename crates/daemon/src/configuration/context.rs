//! The configuration of context.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use context::{
    BUDGET_LIMIT_TOKENS, BUILT_IN_STRATEGIES as BUILT_IN, CommandSettings, ContextSettings, DEADLINE_LIMIT,
    StrategySettings, TokenizerName,
};
use serde::Deserialize;

use crate::app::whole_ms;

/// The most strategies that run at once. Each takes a thread and reads from disk; more would only slow each other down.
pub(super) const MOST_WORKERS: usize = 64;
/// The most strategies that are commands. Each starts a process for every question.
const MOST_COMMANDS: usize = 16;
/// The largest weight. At a hundred times the default, a strategy already decides alone.
pub(super) const LARGEST_WEIGHT: f64 = 100.0;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextSection {
    pub(crate) budget_tokens: Option<usize>,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) tokenizer: Option<TokenizerWord>,
    pub(crate) workers: Option<usize>,
    pub(crate) index_limit_mb: Option<u64>,
    /// Settings for built-in strategies, by name.
    pub(crate) strategies: BTreeMap<String, StrategySection>,
    pub(crate) commands: Vec<CommandSection>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenizerWord {
    O200k,
    Cl100k,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StrategySection {
    pub(crate) enabled: Option<bool>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) weight: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandSection {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) weight: Option<f64>,
}

impl ContextSection {
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(tokens) = self.budget_tokens.filter(|tokens| *tokens > BUDGET_LIMIT_TOKENS) {
            return Err(format!(
                "`context.budget_tokens` is {tokens}; the limit is {BUDGET_LIMIT_TOKENS}"
            ));
        }
        check_time("context.deadline_ms", self.deadline_ms)?;
        check_range("context.workers", self.workers, MOST_WORKERS)?;
        if self.index_limit_mb == Some(0) {
            return Err("`context.index_limit_mb` must be at least 1".to_owned());
        }
        for (name, strategy) in &self.strategies {
            let key = format!("context.strategies.{name}");
            if !BUILT_IN.contains(&name.as_str()) {
                let known = BUILT_IN.join(", ");
                return Err(format!(
                    "`{key}`: there is no strategy of this name, only: {known}"
                ));
            }
            check_time(&format!("{key}.timeout_ms"), strategy.timeout_ms)?;
            check_weight(&format!("{key}.weight"), strategy.weight)?;
        }
        if self.commands.len() > MOST_COMMANDS {
            return Err(format!(
                "`context.commands`: there may be at most {MOST_COMMANDS}"
            ));
        }
        let mut names: BTreeSet<&str> = BUILT_IN.into();
        self.commands
            .iter()
            .try_for_each(|command| command.check(&mut names))
    }

    pub(crate) fn settings(self) -> ContextSettings {
        let usual = ContextSettings::default();
        let strategies = self.strategies.into_iter();
        let commands = self.commands.into_iter();
        ContextSettings {
            budget_tokens: self.budget_tokens.unwrap_or(usual.budget_tokens),
            patience: self.deadline_ms.map_or(usual.patience, Duration::from_millis),
            tokenizer: match self.tokenizer {
                None => usual.tokenizer,
                Some(TokenizerWord::O200k) => TokenizerName::O200k,
                Some(TokenizerWord::Cl100k) => TokenizerName::Cl100k,
            },
            workers: self.workers.unwrap_or(usual.workers),
            strategies: strategies
                .map(|(name, section)| (name, section.settings()))
                .collect(),
            commands: commands.map(CommandSection::settings).collect(),
            index_limit_bytes: self
                .index_limit_mb
                .map_or(usual.index_limit_bytes, |mb| mb.saturating_mul(1024 * 1024)),
        }
    }
}

impl StrategySection {
    fn settings(self) -> StrategySettings {
        let usual = StrategySettings::default();
        StrategySettings {
            enabled: self.enabled.unwrap_or(usual.enabled),
            timeout: self.timeout_ms.map_or(usual.timeout, Duration::from_millis),
            weight_percent: self.weight.map_or(usual.weight_percent, percent),
        }
    }
}

impl CommandSection {
    fn check<'a>(&'a self, names: &mut BTreeSet<&'a str>) -> Result<(), String> {
        let name = self.name.as_str();
        let key = format!("context.commands.{name}");
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            return Err(format!(
                "`{key}`: a name has up to 64 letters, digits, dots and dashes"
            ));
        }
        if !names.insert(name) {
            return Err(format!("`{key}`: there is a strategy of this name already"));
        }
        if self.command.first().is_none_or(String::is_empty) {
            return Err(format!("`{key}.command` names no program"));
        }
        check_time(&format!("{key}.timeout_ms"), self.timeout_ms)?;
        check_weight(&format!("{key}.weight"), self.weight)
    }

    fn settings(self) -> CommandSettings {
        let usual = StrategySettings::default();
        CommandSettings {
            name: self.name,
            command: self.command,
            timeout: self.timeout_ms.map_or(usual.timeout, Duration::from_millis),
            weight_percent: self.weight.map_or(usual.weight_percent, percent),
        }
    }
}

fn check_time(key: &str, given_ms: Option<u64>) -> Result<(), String> {
    check_range(key, given_ms, whole_ms(DEADLINE_LIMIT))
}

fn check_range<N: Ord + From<u8> + std::fmt::Display>(
    key: &str,
    given: Option<N>,
    most: N,
) -> Result<(), String> {
    match given {
        Some(given) if given < N::from(1) || given > most => {
            Err(format!("`{key}` is {given}, and must lie between 1 and {most}"))
        }
        _ => Ok(()),
    }
}

fn check_weight(key: &str, given: Option<f64>) -> Result<(), String> {
    match given {
        Some(weight) if !(0.0..=LARGEST_WEIGHT).contains(&weight) => Err(format!(
            "`{key}` is {weight}, and must lie between 0 and {LARGEST_WEIGHT}"
        )),
        _ => Ok(()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "weights are checked to lie between 0 and a hundred"
)]
fn percent(weight: f64) -> u32 {
    (weight * 100.0).round() as u32
}
