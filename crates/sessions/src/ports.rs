//! What sessions need from others, and do not know: how a command becomes a job, who answers for a language, and what in the
//! code belongs to a question.

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

/// What sessions need from others.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Runs commands.
    pub shell: Arc<dyn Shell>,
    /// Answers questions about code.
    pub languages: Arc<dyn Languages>,
    /// Finishes the plans of turns.
    pub finisher: Arc<dyn PlanFinisher>,
    /// Finds what in the code belongs to a question.
    pub context: Arc<dyn ContextFinder>,
}

/// Finishes the plans of turns, as jobs.
#[async_trait]
pub trait PlanFinisher: Send + Sync + fmt::Debug {
    /// The job that finishes a plan, and the write that submits it. That is part of the commit that ends the turn, so that
    /// the plan is finished exactly if the turn is done.
    fn submission(&self, order: &FinishOrder) -> Result<(JobId, Write), FinishError>;

    /// Starts a job when the commit that submits it may have been made. If it was not, nothing happens.
    ///
    /// *Cancel safety*: it can be called again. If it never is, the next daemon starts the job.
    async fn start(&self, job: JobId) -> Result<(), LogError>;
}

/// A plan that is to be finished.
#[derive(Clone, Debug)]
pub struct FinishOrder {
    /// The turn that is done.
    pub turn: TurnId,
    /// The plan that it worked in.
    pub plan: PlanId,
    /// What to do with it.
    pub finish: FinishPlan,
    /// What was asked, for the title of the job.
    pub title: String,
    /// Who asked.
    pub by: Actor,
}

/// A plan cannot be finished by a job.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct FinishError {
    /// Why.
    pub text: String,
}

/// Finishes no plan.
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
    /// Runs one command to its end. Its output is sent as it comes, standard output and error as one. When the scope is
    /// cancelled, or its time is over, the job is cancelled; when this returns, nothing of it runs any more, and what it
    /// changed is recorded in the plan. *Cancel safety*: dropped half-way, the job goes on.
    async fn run(&self, order: ShellOrder, output: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError>;
}

/// A command that is wanted.
#[derive(Clone, Debug)]
pub struct ShellOrder {
    /// The plan whose sandbox it runs in.
    pub plan: PlanId,
    /// A line for `sh -c`.
    pub line: String,
    /// The directory below the root of the workspace; the root if it is empty.
    pub directory: String,
    /// What is in its environment besides the usual.
    pub environment: Vec<(String, String)>,
    /// Whose it is.
    pub actor: Actor,
    /// How long it may take.
    pub timeout: Duration,
    /// Cancelled when it shall stop.
    pub scope: Scope,
}

/// How a command ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShellEnd {
    /// Its job, where all of its output is.
    pub job: JobId,
    /// The code that it ended with; none if it was killed.
    pub exit_code: Option<i32>,
    /// How it ended, in words: `exit 0`, `killed by SIGKILL`, `timed out after 2 min`, `cancelled`.
    pub text: String,
}

/// A command could not be run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct ShellError {
    /// Why, in words that help whoever asked for it.
    pub text: String,
}

/// Answers questions about code, by language servers.
#[async_trait]
pub trait Languages: Send + Sync + fmt::Debug {
    /// The questions that it answers, for example `hover`.
    fn verbs(&self) -> Vec<&'static str>;

    /// Asks, and answers in short lines for a model. Answers are of the workspace's files as they are on disk. *Cancel
    /// safety*: may be dropped at any time.
    async fn ask(&self, order: LanguageOrder) -> Result<String, LanguageError>;
}

/// A question about code.
#[derive(Clone, Debug)]
pub struct LanguageOrder {
    /// Which question.
    pub verb: String,
    /// The file, absolute, or the workspace's root for a question that has no file.
    pub path: PathBuf,
    /// The line, from 1, for a question about a place.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The name, for `workspace-symbols`; the new name, for `rename`.
    pub name: Option<String>,
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
    /// Cancelled when it shall stop.
    pub scope: Scope,
}

/// A question was not answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct LanguageError {
    /// A stable name, as the interface has it.
    pub code: String,
    /// Why, in words.
    pub text: String,
}

/// Finds what in the code belongs to a question.
#[async_trait]
pub trait ContextFinder: Send + Sync + fmt::Debug {
    /// Whether there is anybody who looks. If not, agents are not told of the tool.
    fn can_find(&self) -> bool {
        true
    }

    /// Looks. It ends soon after the scope is cancelled. *Cancel safety*: may be dropped at any time; what runs for it stops.
    ///
    /// # Errors
    /// The question cannot be answered. That nothing was found is no error.
    async fn find(&self, order: ContextOrder) -> Result<ContextFound, FinderError>;
}

/// A question about the code.
#[derive(Clone, Debug)]
pub struct ContextOrder {
    /// What is looked at.
    pub ground: ContextGround,
    /// The question: words, names, a sentence.
    pub query: String,
    /// Files that it is about, from the root of the workspace, with `/` between names.
    pub focus: Vec<String>,
    /// How many tokens the answer may have.
    pub budget_tokens: usize,
    /// How long it may take.
    pub timeout: Duration,
    /// Which files may be shown. The others are as if they were not there.
    pub readable: Readable,
    /// Cancelled when it shall stop.
    pub scope: Scope,
}

/// What is looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ContextGround {
    /// The sandbox of a plan, with everything that was changed there.
    Plan(PlanId),
    /// The workspace that this directory is in, as it is on disk: nothing was changed yet.
    Directory(PathBuf),
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ContextFound {
    /// The pieces as one text, with a line that says where each is from; empty if nothing was found.
    pub text: String,
    /// In one line: how much it is, and who did not answer: `5 pieces of 3 files, 1,930 tokens; recent timed out`.
    pub summary: String,
    /// The files that pieces are from, each once.
    pub files: Vec<String>,
}

/// A question about the code was not answered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct FinderError {
    /// Why, in words that help whoever asked.
    pub text: String,
}

/// Nobody looks.
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
