//! The strategies.

mod child;
mod command;
mod keyword;
mod language_server;
mod names;
mod recent;
mod repo_map;
mod symbols;

#[cfg(test)]
mod test_tree;

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Deadline, Scope};

use crate::executor::on_thread;
use crate::path::TreePath;
use crate::ports::{ForCommands, Ports};
use crate::settings::ContextSettings;
use crate::strategy::{Ask, Hit, SearchTree, Strategy, StrategyError, StrategyName};
use crate::view::Since;

/// The names of the built-in strategies, in the order in which they are reported.
pub const BUILT_IN: [&str; 5] = ["keyword", "symbols", "repo-map", "recent", "language-server"];

/// All strategies for a [`Pipeline`](crate::Pipeline), in the order in which they are reported: the built-in ones,
/// and then those that are commands.
#[must_use]
pub fn all(settings: &ContextSettings, ports: &Ports, commands: &ForCommands) -> Vec<Arc<dyn Strategy>> {
    let mut all: Vec<Arc<dyn Strategy>> = vec![
        Arc::new(Blocking {
            name: "keyword",
            look: |ask, scope, deadline| keyword::look(ask, ask.searched.index.as_deref(), scope, deadline),
        }),
        Arc::new(Blocking {
            name: "symbols",
            look: |ask, scope, deadline| symbols::look(ask, ask.searched.index.as_deref(), scope, deadline),
        }),
        Arc::new(Blocking {
            name: "repo-map",
            look: |ask, scope, deadline| repo_map::look(ask, ask.searched.index.as_deref(), scope, deadline),
        }),
        Arc::new(recent::Recent::new(commands.clone(), Arc::clone(&ports.plans))),
        Arc::new(language_server::LanguageServer::new(Arc::clone(&ports.languages))),
    ];
    all.extend(settings.commands.iter().map(|settings| {
        let command = command::CommandStrategy::new(settings.clone(), commands.clone());
        Arc::new(command) as Arc<dyn Strategy>
    }));
    all
}

/// A strategy that reads files and the index, on its own thread.
#[derive(Debug)]
struct Blocking {
    name: &'static str,
    look: fn(&Ask, &Scope, Deadline) -> Result<Vec<Hit>, StrategyError>,
}

#[async_trait]
impl Strategy for Blocking {
    fn name(&self) -> StrategyName {
        StrategyName::new(self.name)
    }

    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Result<Vec<Hit>, StrategyError> {
        let look = self.look;
        on_thread(scope, move |scope| look(&ask, scope, deadline)).await
    }
}

/// Files that differ between the disk and the view, in order: those that a plan has changed. Language servers and
/// commands see only the disk.
async fn not_as_on_disk(searched: &SearchTree, scope: &Scope) -> Result<Arc<[TreePath]>, StrategyError> {
    let view = Arc::clone(&searched.view);
    let since = on_thread(scope.clone(), move |_| Ok(view.since())).await?;
    if since == Since::default() {
        return Ok(Arc::default());
    }
    Ok(Arc::clone(&searched.beside_index))
}
