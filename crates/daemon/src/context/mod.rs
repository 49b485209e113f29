//! Context, as this daemon finds and shows it.
//!
//! - `service` is how the rest of the daemon asks, including the HTTP API, the page and agents. It counts the
//!   questions.
//! - `tree` decides which tree to search, and with whose permissions; `focus` resolves the files that a question is
//!   about. `plan_view` presents a plan's sandbox as a tree, `shown` a tree without files that must not be shown.
//! - `open_plans` tells strategies what is being changed; language servers do so in their own module. `finder` is the
//!   interface for agents.
//! - `acts` has the functions that HTTP, MCP and the page call; `wire` converts answers for the wire.

pub(crate) mod acts;
mod finder;
mod focus;
mod open_plans;
mod plan_view;
mod service;
mod shown;
mod tree;
pub(crate) mod wire;

pub(crate) use service::{ContextService, FocusFrom, Question, QuestionError};
pub(crate) use tree::TreeRef;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use context::{Contexts, ContextsOptions, ForCommands, Ports};
use kernel::{CircuitBreaker, Clock};
use plans::Plans;
use process::{Processes, Tasks};

use crate::configuration::ContextSection;
use crate::home::Home;
use crate::language_servers::LanguageServers;
use crate::metrics::ContextMetrics;
use open_plans::SharedPlans;

#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) home: &'a Home,
    pub(crate) scratch: &'a Path,
    pub(crate) breakers: &'a CircuitBreaker,
    pub(crate) processes: &'a Processes,
    pub(crate) language_servers: &'a LanguageServers,
    pub(crate) plans: &'a Plans,
    pub(crate) for_commands: &'a [(OsString, OsString)],
    pub(crate) tasks: &'a Tasks,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

/// Starts the service. No index is open yet.
pub(crate) fn start(section: ContextSection, around: Around<'_>) -> ContextService {
    let contexts = Contexts::new(ContextsOptions {
        settings: section.settings(),
        directory: around.home.context(),
        scratch: around.scratch.to_owned(),
        breakers: around.breakers.clone(),
        ports: Ports {
            languages: Arc::new(around.language_servers.clone()),
            plans: Arc::new(SharedPlans(around.plans.clone())),
        },
        commands: ForCommands {
            processes: around.processes.clone(),
            environment: around.for_commands.iter().cloned().collect(),
        },
        tasks: around.tasks.clone(),
        clock: Arc::clone(around.clock),
    });
    ContextService {
        plans: around.plans.clone(),
        metrics: ContextMetrics::default(),
        clock: Arc::clone(around.clock),
        contexts,
    }
}
