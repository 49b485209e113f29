//! What sessions need from other crates without knowing them: running a command as a job, answering questions about
//! code, and finding the code relevant to a question.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::{LogError, Write};
use kernel::Scope;
use protocol::{FinishPlan, JobId, PlanId, TurnId};
use tokio::sync::mpsc;

use crate::permissions::Readable;
use crate::session::Actor;

/// The services that sessions need from other crates.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Runs commands.
    pub shell: Arc<dyn Shell>,
    /// Answers questions about code.
    pub languages: Arc<dyn Languages>,
    /// Finishes the plans of turns.
    pub finisher: Arc<dyn PlanFinisher>,
    /// Finds the code relevant to a question.
    pub context: Arc<dyn ContextFinder>,
}

/// Finishes the plans of turns, as jobs.
#[async_trait]
pub trait PlanFinisher: Send + Sync + fmt::Debug {
    /// The job that finishes a plan, and the write that submits it. The write is part of the commit that ends the turn,
    /// so that the plan is finished if and only if the turn is done.
    fn submission(&self, order: &FinishOrder) -> Result<(JobId, Write), FinishError>;

    /// Starts a job once the commit that submits it may have been made. If it wasn't, nothing happens.
    ///
    /// *Cancel safety*: it can be called again. If it never is, the next daemon starts the job.
    async fn start(&self, job: JobId) -> Result<(), LogError>;
}

/// A request to finish a plan.
#[derive(Clone, Debug)]
pub struct FinishOrder {
    /// The turn that is done.
    pub turn: TurnId,
    /// The plan that it worked in.
    pub plan: PlanId,
    /// What to do with it.
    pub finish: FinishPlan,
    /// The prompt, for the title of the job.
    pub title: String,
    /// Who asked.
    pub by: Actor,
}

/// Why a job can't finish a plan.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct FinishError {
    /// The reason.
    pub text: String,
}

/// Finishes no plans.
#[derive(Clone, Copy, Debug)]
pub struct NoPlanFinisher;

#[async_trait]
impl PlanFinisher for NoPlanFinisher {
    fn submission(&self, _order: &FinishOrder) -> Result<(JobId, Write), FinishError> {
        Err(FinishError {
            text: "plans are not finished here".to_owned(),
        })
    }

    async fn start(&self, _job: JobId) -> Result<(), LogError> {
        Ok(())
    }
}

/// Runs commands in the sandboxes of plans, as jobs.
#[async_trait]
pub trait Shell: Send + Sync + fmt::Debug {
    /// Runs one command to its end. Output is sent as it comes, with standard output and error combined. When the scope
    /// is cancelled or time is up, the job is cancelled. Once this returns, nothing of the command is running anymore,
    /// and its changes are recorded in the plan. *Cancel safety*: if dropped midway, the job goes on.
    async fn run(&self, order: ShellOrder, output: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError>;
}

/// A command to run.
#[derive(Clone, Debug)]
pub struct ShellOrder {
    /// The plan that provides the sandbox.
    pub plan: PlanId,
    /// A command line for `sh -c`.
    pub line: String,
    /// The directory below the root of the workspace; empty for the root.
    pub directory: String,
    /// Additional environment variables.
    pub environment: Vec<(String, String)>,
    /// The actor it runs for.
    pub actor: Actor,
    /// How long it may take.
    pub timeout: Duration,
    /// Cancelled when the command should stop.
    pub scope: Scope,
}

/// How a command ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShellEnd {
    /// Its job, which keeps the full output.
    pub job: JobId,
    /// The exit code; `None` if it was killed.
    pub exit_code: Option<i32>,
    /// How it ended, in words: `exit 0`, `killed by SIGKILL`, `timed out after 2 min`, `cancelled`.
    pub text: String,
}

/// Why a command couldn't be run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct ShellError {
    /// The reason, worded to help the caller.
    pub text: String,
}

/// Answers questions about code through language servers.
#[async_trait]
pub trait Languages: Send + Sync + fmt::Debug {
    /// The supported questions, for example `hover`.
    fn verbs(&self) -> Vec<&'static str>;

    /// Asks, and answers in short lines for a model. Answers describe the workspace's files as they are on disk.
    /// *Cancel safety*: may be dropped at any time.
    async fn ask(&self, order: LanguageOrder) -> Result<String, LanguageError>;
}

/// A question about code.
#[derive(Clone, Debug)]
pub struct LanguageOrder {
    /// The kind of question.
    pub verb: String,
    /// The absolute path of the file, or the workspace's root for a question without a file.
    pub path: PathBuf,
    /// The line, from 1, for a question about a position.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The name, for `workspace-symbols`; the new name, for `rename`.
    pub name: Option<String>,
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
    /// Cancelled when the question should stop.
    pub scope: Scope,
}

/// Why a question wasn't answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct LanguageError {
    /// A stable code, as in the API.
    pub code: String,
    /// The reason.
    pub text: String,
}

/// Finds the code relevant to a question.
#[async_trait]
pub trait ContextFinder: Send + Sync + fmt::Debug {
    /// Whether a finder is available. If not, agents don't get the tool.
    fn can_find(&self) -> bool {
        true
    }

    /// Searches. It ends soon after the scope is cancelled. *Cancel safety*: may be dropped at any time; its work
    /// stops.
    ///
    /// # Errors
    /// The question can't be answered. Finding nothing is not an error.
    async fn find(&self, order: ContextOrder) -> Result<ContextFound, FinderError>;
}

/// A question about the code.
#[derive(Clone, Debug)]
pub struct ContextOrder {
    /// Where to search.
    pub ground: ContextGround,
    /// The question: words, names, a sentence.
    pub query: String,
    /// Files to focus on, relative to the root of the workspace, separated by `/`.
    pub focus: Vec<String>,
    /// The token budget of the answer.
    pub budget_tokens: usize,
    /// How long it may take.
    pub timeout: Duration,
    /// Which files may be shown. The others are treated as if they didn't exist.
    pub readable: Readable,
    /// Cancelled when the search should stop.
    pub scope: Scope,
}

/// Where to search.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ContextGround {
    /// The sandbox of a plan, with all of its changes.
    Plan(PlanId),
    /// The workspace that contains this directory, as it is on disk: nothing has changed yet.
    Directory(PathBuf),
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ContextFound {
    /// The pieces as one text, each with a line that names its source; empty if nothing was found.
    pub text: String,
    /// In one line: how much was found, and which sources didn't answer: `5 pieces of 3 files, 1,930 tokens;
    /// recent timed out`.
    pub summary: String,
    /// The files that the pieces come from, without duplicates.
    pub files: Vec<String>,
}

/// Why a search failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct FinderError {
    /// The reason, worded to help the caller.
    pub text: String,
}

/// Finds nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoContextFinder;

#[async_trait]
impl ContextFinder for NoContextFinder {
    fn can_find(&self) -> bool {
        false
    }

    async fn find(&self, _order: ContextOrder) -> Result<ContextFound, FinderError> {
        Err(FinderError {
            text: "there is nobody who looks for context here".to_owned(),
        })
    }
}
