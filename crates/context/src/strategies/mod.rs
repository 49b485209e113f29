//! The ways to find something.

mod child;
mod command;
mod keyword;
mod language_server;
mod names;
mod on_disk;
mod recent;
mod repo_map;
mod symbols;

#[cfg(test)]
mod test_tree;

use std::sync::Arc;

use crate::ports::{ForCommands, Ports};
use crate::settings::ContextSettings;
use crate::strategy::Strategy;

/// The names of the strategies that are always there, in the order in which they are reported.
pub const BUILT_IN: [&str; 5] = ["keyword", "symbols", "repo-map", "recent", "language-server"];

/// All strategies for a [`Pipeline`](crate::Pipeline), in the order in which they are reported: those that are always there
/// ([`BUILT_IN`]), and then those that are commands.
#[must_use]
pub fn all(settings: &ContextSettings, ports: &Ports, commands: &ForCommands) -> Vec<Arc<dyn Strategy>> {
    let mut all: Vec<Arc<dyn Strategy>> = vec![
        Arc::new(keyword::Keyword),
        Arc::new(symbols::Symbols),
        Arc::new(repo_map::RepoMap),
        Arc::new(recent::Recent::new(commands.clone(), Arc::clone(&ports.plans))),
        Arc::new(language_server::LanguageServer::new(Arc::clone(&ports.languages))),
    ];
    all.extend(settings.commands.iter().map(|settings| {
        let command = command::CommandStrategy::new(settings.clone(), commands.clone());
        Arc::new(command) as Arc<dyn Strategy>
    }));
    all
}
