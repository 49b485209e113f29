//! One question, from a path to an answer.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use kernel::{Deadline, Scope};
use lifecycle::{Patience, RunningServer as _};

use super::{
    choices::Choice,
    conversation::{Attempt, Talk},
    error::AskError,
    service::Languages,
};
use crate::{
    queries::{Answer, Query, merge_answers},
    servers::{Chosen, ConfigNote, Environment},
};

/// How long a server may take to start, unless the caller sets a timeout.
const START_PATIENCE: Duration = Duration::from_secs(150);
/// How long a server may take to read the workspace by default: enough for a small one. For a large one, the caller
/// gets its progress.
const BRIEF_READY_PATIENCE: Duration = Duration::from_secs(10);
/// How long a server may take to read the workspace if the caller wants to wait.
const READY_PATIENCE: Duration = Duration::from_secs(600);
/// How long a warm server may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// How often a question is repeated because the server reported that something changed meanwhile.
const MOST_REPEATS: u32 = 5;

/// Whether to wait until a server has read the workspace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhenIndexing {
    Wait,
    /// Wait for a moment, then fail.
    WaitBriefly,
    Refuse,
}

/// Whether to wait until a server is up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhenStarting {
    Wait,
    Refuse,
}

/// A question, and how to ask it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The path in it is replaced by the canonical form of `path`.
    pub query: Query,
    /// The file; for symbols of a workspace it may be a directory.
    pub path: PathBuf,
    /// The workspace, if it is not the repository around the file.
    pub workspace: Option<PathBuf>,
    /// Variables of the caller that affect where programs are found. They take precedence over the daemon's when
    /// servers are looked up and started. A running server is shared, no matter who started it.
    pub environment: Environment,
    pub server: Option<String>,
    pub when_starting: WhenStarting,
    /// What to do while a server reads the workspace.
    pub when_indexing: WhenIndexing,
    pub timeout: Option<Duration>,
}

#[derive(Debug)]
pub struct Answered {
    pub answer: Answer,
    /// Servers that should have answered and did not.
    pub not_answered: Vec<(Arc<str>, AskError)>,
    pub notes: Vec<ConfigNote>,
    /// What paths in the answer are relative to.
    pub workspace: Arc<Path>,
    /// The ids of the servers that answered, in the order of the answer's origins.
    pub ids: Vec<String>,
}

/// How much time there is for each part of a question.
#[derive(Clone, Debug)]
pub(super) struct Times {
    whole: Option<Deadline>,
}

impl Languages {
    /// Asks all servers that can answer a question.
    ///
    /// *Cancel safety*: may be dropped at any time; the requests are cancelled in the servers.
    pub async fn ask(&self, ask: Ask, scope: &Scope) -> Result<Answered, AskError> {
        let choice = self
            .choice(&ask.path, ask.workspace.as_deref(), &ask.query, &ask.environment)
            .await?;
        let asked = servers_to_ask(&choice, &ask)?;
        let times = Times {
            whole: ask
                .timeout
                .map(|timeout| Deadline::after(&self.shared.clock, timeout)),
        };
        let questions = asked
            .iter()
            .map(|chosen| self.ask_one(chosen, &choice, &ask, &times, scope));
        let outcomes = join_all(questions).await;
        let (mut answers, mut ids, mut not_answered) = (Vec::new(), Vec::new(), Vec::new());
        for (chosen, outcome) in asked.iter().zip(outcomes) {
            match outcome {
                Ok(answer) => {
                    ids.push(super::view::server_id(&chosen.name, &chosen.root));
                    answers.push(answer);
                }
                Err(error) => not_answered.push((Arc::clone(&chosen.name), error)),
            }
        }
        // A server that doesn't support the question isn't a failure if another one does.
        match merge_answers(answers, &self.shared.limits) {
            Some(answer) => {
                not_answered.retain(|(_, error)| !is_unsupported(error));
                Ok(Answered {
                    answer,
                    not_answered,
                    notes: choice.notes.clone(),
                    workspace: Arc::clone(&choice.workspace),
                    ids,
                })
            }
            None => Err(first_error(not_answered, &choice)),
        }
    }

    /// Asks one server. If it exits meanwhile, the next process is asked, as long as there is time and the manager
    /// hasn't given up. Questions change nothing, so they can be repeated.
    async fn ask_one(
        &self,
        chosen: &Arc<Chosen>,
        choice: &Choice,
        ask: &Ask,
        times: &Times,
        scope: &Scope,
    ) -> Result<Answer, AskError> {
        let site = self.note_site(chosen);
        let server = &site.key.server;
        let lost = |source| AskError::Lifecycle {
            server: Arc::clone(server),
            source,
        };
        let deadline = self.until(times, START_PATIENCE);
        let patience = match ask.when_starting {
            WhenStarting::Wait => Patience::Wait(deadline.clone()),
            WhenStarting::Refuse => Patience::NoWait,
        };
        let lease = self
            .shared
            .manager
            .get_client(&site.key, &patience, scope)
            .await
            .map_err(lost)?;
        let mut repeats = 0;
        loop {
            let current = lease.server(&patience, scope).await.map_err(lost)?;
            let talk = Talk {
                languages: self,
                site: &site,
                chosen,
                choice,
                server: &current.server,
                scope,
            };
            match talk.ask(ask, times).await {
                Ok(answer) => return Ok(answer),
                Err(Attempt::Failed(error)) => return Err(error),
                // Asking before the end of this process has been noticed would only lead back to it.
                Err(Attempt::WentAway) => tokio::select! {
                    biased;
                    _ = scope.wait() => {}
                    () = deadline.clone().passed() => {
                        return Err(AskError::WentAway {
                            server: Arc::clone(server),
                            generation: current.generation.get(),
                        });
                    }
                    _ = current.server.ended() => {}
                },
                Err(Attempt::Again(_)) if repeats < MOST_REPEATS => repeats += 1,
                Err(Attempt::Again(error)) => return Err(error),
            }
        }
    }

    fn until(&self, times: &Times, usual: Duration) -> Deadline {
        times
            .whole
            .clone()
            .unwrap_or_else(|| Deadline::after(&self.shared.clock, usual))
    }

    pub(super) fn ready_deadline(&self, times: &Times, when: WhenIndexing) -> Deadline {
        match when {
            WhenIndexing::Wait => self.until(times, READY_PATIENCE),
            WhenIndexing::WaitBriefly => {
                let briefly = Deadline::after(&self.shared.clock, BRIEF_READY_PATIENCE);
                let whole = times.whole.as_ref().and_then(Deadline::remaining);
                match whole {
                    Some(whole) if whole < BRIEF_READY_PATIENCE => Deadline::after(&self.shared.clock, whole),
                    _ => briefly,
                }
            }
            WhenIndexing::Refuse => Deadline::after(&self.shared.clock, Duration::ZERO),
        }
    }

    pub(super) fn answer_deadline(&self, times: &Times, chosen: &Chosen) -> Deadline {
        self.until(times, chosen.limits.request.unwrap_or(ANSWER_PATIENCE))
    }
}

fn servers_to_ask(choice: &Choice, ask: &Ask) -> Result<Vec<Arc<Chosen>>, AskError> {
    if let Some(server) = &ask.server {
        let named: Vec<_> = choice
            .all()
            .filter(|chosen| *chosen.name == **server)
            .cloned()
            .collect();
        if named.is_empty() {
            let missing = choice.missing.iter().any(|missing| *missing.name == **server);
            return Err(if missing {
                none_here(choice)
            } else {
                AskError::OtherServer {
                    server: server.clone(),
                    path: choice.path.to_path_buf(),
                }
            });
        }
        return Ok(named);
    }
    let several = matches!(
        ask.query,
        Query::Diagnostics { .. } | Query::CodeActions { .. } | Query::Format { .. }
    );
    let asked: Vec<_> = if several {
        choice.all().cloned().collect()
    } else {
        choice.primary.iter().cloned().collect()
    };
    if asked.is_empty() {
        Err(none_here(choice))
    } else {
        Ok(asked)
    }
}

pub(super) fn none_here(choice: &Choice) -> AskError {
    let (path, notes) = (choice.path.to_path_buf(), choice.notes.clone());
    if choice.missing.is_empty() {
        AskError::NoServer { path, notes }
    } else {
        let missing = choice.missing.clone();
        AskError::NotInstalled { path, missing, notes }
    }
}

fn is_unsupported(error: &AskError) -> bool {
    matches!(
        error,
        AskError::Query(crate::queries::QueryError::Unsupported { .. })
    )
}

/// The first error. "Unsupported" counts only if all servers report it.
fn first_error(errors: Vec<(Arc<str>, AskError)>, choice: &Choice) -> AskError {
    let mut errors: Vec<AskError> = errors.into_iter().map(|(_, error)| error).collect();
    match errors.iter().position(|error| !is_unsupported(error)) {
        Some(position) => errors.swap_remove(position),
        None => errors.pop().unwrap_or_else(|| none_here(choice)),
    }
}
