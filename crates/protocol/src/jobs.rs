//! Jobs: commands that outlive the call that started them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

/// The body of `POST /v1/jobs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// What to run.
    pub command: JobCommand,
    /// What it is, in one line; the command itself if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Which of several goes first, from -10 to 10. Waiting counts too, so nothing waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// With which others it shares a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<JobLane>,
    /// Jobs that must have succeeded before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// How long to wait before the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// In what time from now the job must have ended, attempts and pauses included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// How many more attempts there are after one that failed; none if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u16>,
    /// The pause before the first of them; it doubles each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_pause_ms: Option<u64>,
    /// What happens when the daemon dies while it runs; `fail` if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_interrupted: Option<JobIfInterrupted>,
    /// A second submission with the same key is the same job. The header `Idempotency-Key` means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How much of its output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit_bytes: Option<u64>,
    /// Whether any daemon that shares the log may run it. If not, this one does: it has the directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anywhere: bool,
    /// Whether somebody works with it, as with an agent or a terminal. It takes no worker then, so that the jobs that it
    /// submits itself find one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreground: bool,
    /// What the daemon does with `command.plan` when the command has ended, whoever is there to see it. That is a job of
    /// its own, which `followed_by` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<crate::FinishPlan>,
    /// A plan to open for the command, which runs in it. Both are made, or neither. Not given together with `command.plan`. Its
    /// own idempotency key is not used: that of the job counts for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<crate::OpenPlan>,
}

/// A command. It has either `argv` or `shell`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobCommand {
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["cargo", "test"]))]
    pub argv: Vec<String>,
    /// A line for `sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The absolute path of the directory that it starts in.
    #[schema(example = "/home/me/project")]
    pub directory: String,
    /// Its whole environment; that of the daemon if it is not given. Values are never shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
    /// What it reads from its standard input; nothing if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The same in Base64, for what is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
    /// Its standard input is sent by a client while it runs, to `GET /v1/jobs/{id}/input`. If no client comes within 10
    /// seconds of its start, it reads the end of its input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attach_stdin: bool,
    /// If it is given, the command writes to a terminal of this size, and so may use colour. Both of its streams are one
    /// then, `stdout`, in the order in which they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<JobTerminal>,
    /// Directories that it may write below, and nowhere else, as far as the kernel can enforce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_below: Option<Vec<String>>,
    /// What each of its processes may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<JobLimits>,
    /// The plan in whose sandbox it runs. What it changes there is recorded for whoever submitted it. It can write to the
    /// sandbox, to temporary files, and below `write_below`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobTerminal {
    /// How wide.
    pub columns: u16,
    /// How high.
    pub rows: u16,
}

/// What each process of a command may use at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLimits {
    /// Address space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_space_bytes: Option<u64>,
    /// Open files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// The size of a file that it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Time on a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// How many processes its user may have. The superuser is not bound by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// Jobs of one lane run at most so many at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLane {
    /// The name that they share.
    #[schema(example = "cargo:/home/me/project")]
    pub name: String,
    /// A job starts while fewer than this run in its lane; 1 if it is not given.
    #[serde(default = "one")]
    pub limit: u16,
}

fn one() -> u16 {
    1
}

/// What happens to a job when the daemon dies while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobIfInterrupted {
    /// It fails: nobody knows how far it came.
    Fail,
    /// It is queued again, because doing it twice does no harm.
    Repeat,
}

/// A job as it was when the daemon looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id.
    #[schema(example = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub id: String,
    /// What it is doing.
    pub state: JobState,
    /// The machine that runs it, has to, or did so last. Nothing for one that may still run anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Changes with every change of the job.
    pub version: u64,
    /// What it is, in one line.
    pub title: String,
    /// What does the work.
    #[schema(example = "command")]
    pub handler: String,
    /// Which of several goes first.
    pub priority: i64,
    /// With which others it shares a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<JobLane>,
    /// Jobs that must have succeeded before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Who submitted it.
    pub submitted_by: String,
    /// When it was submitted, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub submitted_at: String,
    /// When the current or last attempt was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// How long the current or last attempt has taken so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// Not to be started before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub not_before: Option<String>,
    /// When it must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub deadline: Option<String>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// How many attempts were claimed.
    pub attempts: u32,
    /// How many more there are after one that failed.
    pub max_retries: u16,
    /// How often its worker died.
    pub interruptions: u32,
    /// What happens then.
    pub if_interrupted: JobIfInterrupted,
    /// Who wants it to be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JobCancelRequest>,
    /// Why it was given up, in one word: `attempt_failed`, `timed_out`, `deadline_passed`, `interrupted`,
    /// `dependency_failed` or `no_handler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is to be said of the last attempt that ended, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How the command of that attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<JobExit>,
    /// What had to be killed, because it did not end when it was told to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub killed: Vec<JobKilled>,
    /// How many processes had to be killed; more than are named if there were many.
    #[serde(default)]
    pub killed_count: u64,
    /// Whether the client that sent its input went away before the end of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input_cut: bool,
    /// How much of the confinement that was asked for was in force; nothing if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<crate::Confinement>,
    /// How far it is, if it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// How much it has written.
    pub output_bytes: u64,
    /// How much of that was not kept, because it was more than the job may keep.
    pub cut_bytes: u64,
    /// Why output is missing that should have been kept, for example because the disk was full; nothing if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_lost: Option<String>,
    /// The place of the last piece of output.
    pub output_sequence: u64,
    /// Whether it takes no worker, because somebody works with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreground: bool,
    /// The job that deals with its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_by: Option<String>,
    /// What became of the plan, of a job that deals with the end of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<crate::PlanFinish>,
    /// What it waits for before it can run, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The home of the worker that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The job that this one does again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The key that it was submitted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The plan in whose sandbox its last attempt ran, once that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The changeset with what that attempt changed there; nothing if it changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<String>,
    /// How many files that are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<u64>,
}

/// What a job is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits for its turn.
    Queued,
    /// A worker has it.
    Running,
    /// It was done.
    Succeeded,
    /// It was given up.
    Failed,
    /// It was cancelled, and nothing of it runs.
    Cancelled,
}

impl JobState {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the job has ended for good.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A wish that a job be cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCancelRequest {
    /// Who.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
}

/// How a command ended: by a code or by a signal; neither if nobody saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobExit {
    /// By itself, with this code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// By this signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// A process that had to be killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobKilled {
    /// Its process id.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// What a job waits for before it can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobWaiting {
    /// In one line, so that it can be said behind 'waiting for'.
    #[schema(example = "a place: 4 of 4 jobs are running")]
    pub waiting_for: String,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// How much is done.
    pub done: u64,
    /// Of how much, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What it is doing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The answer of `GET /v1/jobs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs, newest first.
    pub jobs: Vec<Job>,
    /// To get older ones, ask for those before this one. Nothing if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<String>,
    /// How many there are.
    pub counts: JobCounts,
}

/// How many jobs wait and run, as this daemon knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// How many wait.
    pub queued: u64,
    /// How many run here that take a worker.
    pub running: u64,
    /// How many workers there are.
    pub max_workers: u64,
    /// How many run here without one, because somebody works with them.
    #[serde(default)]
    pub foreground: u64,
}

/// The body of `POST /v1/jobs/{id}/retry`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryJob {
    /// The whole environment of the command; that of the daemon if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
}

/// The answer of `POST /v1/jobs` and `POST /v1/jobs/{id}/retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSubmitted {
    /// The job.
    pub job: Job,
    /// Whether it was submitted before with the same idempotency key.
    pub known: bool,
    /// The plan that was opened for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<crate::Plan>>,
}

/// The optional body of `POST /v1/jobs/{id}/cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// The body of `PUT /v1/jobs/workers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetJobWorkers {
    /// How many jobs may run here at once.
    pub max_workers: u64,
}

/// The body of `POST /v1/jobs/gc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectJobs {
    /// Jobs that ended longer ago than this; seven days if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// But never the newest so many; none if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_newest: Option<u64>,
}

/// The answer of `POST /v1/jobs/gc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobsCollected {
    /// How many jobs were forgotten.
    pub jobs: u64,
    /// How much output they had.
    pub output_bytes: u64,
    /// How many were kept because others wait for them.
    pub in_use: u64,
}

/// A moment in the life of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobMoment {
    /// Its place in the job's history.
    pub sequence: u64,
    /// When it was.
    #[schema(format = "date-time")]
    pub at: String,
    /// What happened: `submitted`, `claimed`, `released`, `cancel_requested`, `retrying`, `interrupted`, `succeeded`,
    /// `failed` or `cancelled`.
    pub event: String,
    /// What is to be said of it, in one line; may be empty.
    pub text: String,
}

/// The answer of `GET /v1/jobs/{id}/history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobHistory {
    /// What happened, oldest first.
    pub moments: Vec<JobMoment>,
}

/// A piece of output, as the data of an event of `GET /v1/jobs/{id}/logs` or a line of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobOutput {
    /// Its place; to go on after it, name it.
    pub sequence: u64,
    /// When it came.
    #[schema(format = "date-time")]
    pub at: String,
    /// Which way it came.
    pub channel: JobChannel,
    /// What it is, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it is in Base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Which way a piece of output came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobChannel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A remark of the daemon.
    Note,
}

impl JobChannel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stdout, Self::Stderr, Self::Note];

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Note => "note",
        }
    }
}
