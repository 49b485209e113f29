//! Runs a command in the sandbox of a plan: how it enters, and what is recorded when it leaves.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobs::{AttemptOutcome, AttemptVerdict};
use kernel::{Clock, Deadline, Scope};
use plans::{Attribution, Changeset, CommandRun, Entrance, PlanError, Plans};
use protocol::PlanId;
use serde_json::{Map, Value, json};

use super::outcome::{never_ran, with_causes};
use super::payload::PlanPlace;

/// The pause between attempts. The log itself waits longer while it can't connect.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Provides the sandboxes of plans.
#[async_trait]
pub(crate) trait Sandboxes: Send + Sync + std::fmt::Debug {
    /// Called before a command runs in the sandbox of a plan.
    async fn enter(&self, plan: PlanId, stay: Attribution) -> Result<CommandRun, PlanError>;

    /// Called when none of its processes are running. Returns the changeset with its changes, if it changed anything.
    async fn leave(&self, stay: &CommandRun) -> Result<Option<Changeset>, PlanError>;
}

#[async_trait]
impl Sandboxes for Plans {
    async fn enter(&self, plan: PlanId, stay: Attribution) -> Result<CommandRun, PlanError> {
        Self::begin_command(self, plan, stay).await
    }

    async fn leave(&self, stay: &CommandRun) -> Result<Option<Changeset>, PlanError> {
        Self::end_command(self, stay).await
    }
}

/// How long a command waits for a log that is unreachable: as long as the command is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) scope: &'a Scope,
}

impl Patience<'_> {
    /// Runs an operation, and repeats it while the log is unreachable.
    async fn wait_out<T, F>(self, act: impl Fn() -> F) -> Result<T, PlanError>
    where
        F: Future<Output = Result<T, PlanError>>,
    {
        loop {
            match act().await {
                Err(error) if error.is_outage() && !self.scope.is_cancelled() => {
                    tracing::debug!(%error, "a command waits until the log can be reached");
                }
                done => return done,
            }
            tokio::select! {
                _ = self.scope.wait() => {}
                () = Deadline::after(self.clock, TRY_AGAIN).passed() => {}
            }
        }
    }
}

/// The sandboxes, and the additional directories that commands in them may write to.
#[derive(Clone, Debug)]
pub(crate) struct SandboxAccess {
    pub(crate) sandboxes: Arc<dyn Sandboxes>,
    pub(crate) write_below: Vec<PathBuf>,
}

impl SandboxAccess {
    /// Prepares the sandbox for a command.
    pub(super) async fn enter(
        &self,
        place: &PlanPlace,
        stay: Attribution,
        patience: Patience<'_>,
    ) -> Result<CommandRun, AttemptOutcome> {
        let Ok(plan) = place.id.parse() else {
            let text = format!("`{}` is not the id of a plan", place.id);
            return Err(never_ran(AttemptVerdict::FailedPermanently, text));
        };
        let entered = patience
            .wait_out(|| self.sandboxes.enter(plan, stay.clone()))
            .await;
        entered.map_err(|error| {
            let text = with_causes(&error);
            never_ran(
                of_refusal(&error),
                format!("it did not get into its sandbox: {text}"),
            )
        })
    }

    /// Leaves the sandbox: records the changes of the command, and reports them in the outcome.
    pub(super) async fn leave(
        &self,
        stay: &CommandRun,
        outcome: AttemptOutcome,
        patience: Patience<'_>,
    ) -> AttemptOutcome {
        match patience.wait_out(|| self.sandboxes.leave(stay)).await {
            Ok(changeset) => with_changes(outcome, stay.plan, changeset.as_ref()),
            Err(PlanError::Closing) => {
                let why = "the daemon is stopping; the next one records it";
                not_recorded(with_changes(outcome, stay.plan, None), why)
            }
            Err(error) => {
                tracing::warn!(%error, plan = %stay.plan, "what a command changed could not be recorded");
                not_recorded(with_changes(outcome, stay.plan, None), &with_causes(&error))
            }
        }
    }

    /// All directories that a command with this environment may write to: those of the sandbox, those that it asked
    /// for, and those that the configuration allows for all commands.
    pub(super) async fn writable(
        &self,
        entrance: &Entrance,
        environment: &BTreeMap<OsString, OsString>,
        asked_for: Option<&[String]>,
    ) -> Result<Vec<PathBuf>, AttemptOutcome> {
        let mut writable = entrance.writable(environment).await.map_err(|error| {
            let text = with_causes(&error);
            never_ran(
                AttemptVerdict::Failed,
                format!("it did not get into its sandbox: {text}"),
            )
        })?;
        writable.extend(asked_for.unwrap_or_default().iter().map(PathBuf::from));
        writable.extend(self.write_below.iter().cloned());
        Ok(writable)
    }
}

/// The working directory of a command, as it sees it.
pub(super) fn directory(entrance: &Entrance, place: &PlanPlace) -> PathBuf {
    match place.below.as_str() {
        "" => entrance.root.clone(),
        below => entrance.root.join(Path::new(below)),
    }
}

/// An error that would recur on a retry is permanent.
fn of_refusal(error: &PlanError) -> AttemptVerdict {
    match error {
        PlanError::NotFound(_)
        | PlanError::WrongState { .. }
        | PlanError::SandboxGone(_)
        | PlanError::Elsewhere { .. }
        | PlanError::WorkspaceGone { .. } => AttemptVerdict::FailedPermanently,
        PlanError::Closing => AttemptVerdict::Stopped,
        _ => AttemptVerdict::Failed,
    }
}

fn with_changes(outcome: AttemptOutcome, plan: PlanId, changeset: Option<&Changeset>) -> AttemptOutcome {
    let mut result = match outcome.result {
        Value::Object(result) => result,
        // It didn't run.
        _ => Map::new(),
    };
    result.insert("plan".to_owned(), json!(plan.to_string()));
    if let Some(changeset) = changeset {
        result.insert("changeset".to_owned(), json!(changeset.id.to_string()));
        result.insert("files".to_owned(), json!(changeset.record.entries));
    }
    AttemptOutcome {
        result: Value::Object(result),
        ..outcome
    }
}

/// If a command's changes weren't recorded, it didn't succeed.
fn not_recorded(outcome: AttemptOutcome, why: &str) -> AttemptOutcome {
    let verdict = match outcome.verdict {
        AttemptVerdict::Succeeded => AttemptVerdict::Failed,
        verdict => verdict,
    };
    let before = match outcome.text.as_str() {
        "" => String::new(),
        text => format!("{text}; "),
    };
    AttemptOutcome {
        verdict,
        text: format!("{before}what it changed could not be recorded: {why}"),
        ..outcome
    }
}
