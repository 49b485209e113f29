//! Select: chooses the strategies.

use std::sync::Arc;

use crate::request::{ContextError, Request};
use crate::settings::{CommandSettings, ContextSettings, StrategySettings};
use crate::strategy::{Strategy, StrategyName};

/// The indexes of the chosen strategies, in order: those that the request names, or else the enabled ones, without
/// those that it excludes. Fails if the request names an unknown strategy.
pub(super) fn select(
    request: &Request,
    settings: &ContextSettings,
    strategies: &[Arc<dyn Strategy>],
) -> Result<Vec<usize>, ContextError> {
    let names: Vec<StrategyName> = strategies.iter().map(|strategy| strategy.name()).collect();
    let mut named = request.only.iter().chain(&request.without);
    if let Some(unknown) = named.find(|name| !names.contains(name)) {
        let known: Vec<&str> = names.iter().map(StrategyName::as_str).collect();
        return Err(ContextError::NoSuchStrategy {
            name: unknown.to_string(),
            known: known.join(", "),
        });
    }
    let is_wanted = |name: &StrategyName| {
        let is_asked = if request.only.is_empty() {
            settings_of(settings, name).enabled
        } else {
            request.only.contains(name)
        };
        is_asked && !request.without.contains(name)
    };
    let wanted = names.iter().enumerate().filter(|(_, name)| is_wanted(name));
    Ok(wanted.map(|(place, _)| place).collect())
}

/// The settings of a strategy: by its name, by its command, or the default.
pub(super) fn settings_of(settings: &ContextSettings, name: &StrategyName) -> StrategySettings {
    let by_name = settings.strategies.get(name.as_str()).cloned();
    let command = |command: &&CommandSettings| command.name == name.as_str();
    let by_command = || {
        let command = settings.commands.iter().find(command)?;
        Some(StrategySettings {
            enabled: true,
            timeout: command.timeout,
            weight_percent: command.weight_percent,
        })
    };
    by_name.or_else(by_command).unwrap_or_default()
}
