//! Jobs: commands that outlive the call that started them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

/// The body of `POST /v1/jobs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// The command to run.
    pub command: JobCommand,
    /// A one-line title. Defaults to the command itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The priority, from -10 (last) to 10 (first). Defaults to 0. Waiting time counts too, so no job waits
    /// forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The lane, which limits how many jobs in it run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<JobLane>,
    /// Ids of jobs that must succeed before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// How long to wait before the first attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The time limit for the whole job, in milliseconds from now, including all attempts and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The time limit for each attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// How many times to retry after a failed attempt. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u16>,
    /// The pause before the first retry, in milliseconds. It doubles with each further retry. Defaults to
    /// 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_pause_ms: Option<u64>,
    /// What to do if the daemon dies while the job is running. Defaults to `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_interrupted: Option<JobIfInterrupted>,
    /// An idempotency key. Submitting again with the same key returns the same job. The `Idempotency-Key`
    /// header is equivalent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How much of the job's output to keep, in bytes. Defaults to 16 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit_bytes: Option<u64>,
    /// Whether any daemon that shares the log may run the job. Defaults to false: this daemon runs it,
    /// because it has the directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anywhere: bool,
    /// Whether someone is working with the job interactively, such as an agent or a terminal. A foreground
    /// job doesn't occupy a worker, so that jobs it submits can get one. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreground: bool,
    /// What the daemon does with the plan in `command.plan` when the command has ended, whether or not a
    /// client is connected. This runs as a separate job, which `followed_by` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<crate::FinishPlan>,
    /// A plan to open for the command to run in. Either both the plan and the job are created, or neither is.
    /// Can't be combined with `command.plan`. The plan's own idempotency key is ignored; the job's key covers
    /// both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<crate::OpenPlan>,
}

/// A command. Set either `argv` or `shell`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobCommand {
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["cargo", "test"]))]
    pub argv: Vec<String>,
    /// A command line for `sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The absolute path of the working directory.
    #[schema(example = "/home/me/project")]
    pub directory: String,
    /// The complete environment of the command. Defaults to the daemon's environment. The values are never
    /// returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
    /// The standard input, as text. Defaults to empty input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The standard input in Base64, for input that isn't text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
    /// Whether a client sends the standard input while the command runs, using `GET /v1/jobs/{id}/input`. If
    /// no client connects within 10 seconds of the start, the command reads end of input. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attach_stdin: bool,
    /// If given, the command writes to a terminal of this size, so it may use color. Both output streams are
    /// then merged into `stdout`, in the order they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<JobTerminal>,
    /// The only directories that the command may write below, as far as the kernel can enforce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_below: Option<Vec<String>>,
    /// Resource limits for each process of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<JobLimits>,
    /// The id of a plan. The command runs in its sandbox, and its changes there are recorded under the
    /// submitter's name. It can write to the sandbox, to temporary files, and below `write_below`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobTerminal {
    /// The width.
    pub columns: u16,
    /// The height.
    pub rows: u16,
}

/// Resource limits for each process of a command. Omitted limits aren't set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLimits {
    /// The maximum address space, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_space_bytes: Option<u64>,
    /// The maximum number of open files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// The maximum size of a file the process writes, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// The maximum CPU time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The maximum number of processes of the user. Doesn't apply to root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// A lane, which limits how many of its jobs run at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLane {
    /// The name of the lane. Jobs with the same name share it.
    #[schema(example = "cargo:/home/me/project")]
    pub name: String,
    /// A job starts only while fewer than this many are running in its lane. Defaults to 1.
    #[serde(default = "one")]
    pub limit: u16,
}

fn one() -> u16 {
    1
}

/// What happens to a job if the daemon dies while it is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobIfInterrupted {
    /// The job fails, because it's unknown how far it got.
    Fail,
    /// The job is queued again, because it is safe to run it twice.
    Repeat,
}

/// A snapshot of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// The id of the job.
    #[schema(example = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub id: String,
    /// The state of the job.
    pub state: JobState,
    /// The machine that runs the job, must run it, or ran it last. Absent while the job may still run on any
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Changes whenever the job changes.
    pub version: u64,
    /// The one-line title.
    pub title: String,
    /// The handler that runs the job.
    #[schema(example = "command")]
    pub handler: String,
    /// The priority, from -10 (last) to 10 (first).
    pub priority: i64,
    /// The lane that limits how many jobs run at once. Absent if the job has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<JobLane>,
    /// Ids of jobs that must succeed before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Who submitted the job.
    pub submitted_by: String,
    /// When the job was submitted, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub submitted_at: String,
    /// When the current or latest attempt started. Absent before the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When the job ended. Absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// How long the current or latest attempt has taken so far, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// The earliest time the job may start. Absent if it may start at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub not_before: Option<String>,
    /// When the job must have ended. Absent if it has no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub deadline: Option<String>,
    /// The time limit for each attempt, in milliseconds. Absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// The number of attempts that have been claimed.
    pub attempts: u32,
    /// How many times the job is retried after a failed attempt.
    pub max_retries: u16,
    /// How many times a worker died while running the job.
    pub interruptions: u32,
    /// What happens when the worker dies.
    pub if_interrupted: JobIfInterrupted,
    /// The request to cancel the job. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JobCancelRequest>,
    /// Why the job failed: `attempt_failed`, `timed_out`, `deadline_passed`, `interrupted`,
    /// `dependency_failed` or `no_handler`. Absent unless it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A one-line description of how the latest finished attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How the command of that attempt exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<JobExit>,
    /// Processes that had to be killed because they didn't stop when asked to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub killed: Vec<JobKilled>,
    /// The number of processes that had to be killed. `killed` may list fewer if there were many.
    #[serde(default)]
    pub killed_count: u64,
    /// Whether the client that sent the standard input disconnected before the end of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input_cut: bool,
    /// How much of the requested confinement was in force. Absent if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<crate::Confinement>,
    /// The progress of the job. Absent if it hasn't reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// The total size of the output, in bytes.
    pub output_bytes: u64,
    /// How much of the output was dropped because it exceeded the output limit, in bytes.
    pub cut_bytes: u64,
    /// Why output that should have been kept is missing, such as a full disk. Absent if nothing is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_lost: Option<String>,
    /// The sequence number of the latest piece of output.
    pub output_sequence: u64,
    /// Whether someone is working with the job interactively, so that it doesn't occupy a worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreground: bool,
    /// The id of the job that handles what happens after this one ends. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_by: Option<String>,
    /// What happened to the plan. Only present on a job that follows another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<crate::PlanFinish>,
    /// What the job is waiting for before it can run, in one line. Absent if it isn't waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The home of the worker that is running the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The id of the job that this one retries. Absent if it isn't a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The idempotency key that the job was submitted with. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The id of the plan that the latest attempt ran in. Absent until that attempt has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The id of the changeset with that attempt's changes. Absent if it changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<String>,
    /// The number of files that attempt changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<u64>,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is waiting to run.
    Queued,
    /// A worker is running it.
    Running,
    /// It completed successfully.
    Succeeded,
    /// It failed, and won't be retried.
    Failed,
    /// It was cancelled, and none of its processes are running.
    Cancelled,
}

impl JobState {
    /// The name on the wire.
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

    /// Whether the state is final.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A request to cancel a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCancelRequest {
    /// Who requested it.
    pub by: String,
    /// The reason. May be empty.
    pub why: String,
    /// When it was requested.
    #[schema(format = "date-time")]
    pub at: String,
}

/// How a command exited: with a code or because of a signal. Both are absent if the exit wasn't observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobExit {
    /// The exit code. Absent if a signal ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The number of the signal that ended the command. Absent if it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// A process that had to be killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobKilled {
    /// The process id.
    pub pid: u32,
    /// The name of the program.
    pub name: String,
}

/// What a job is waiting for before it can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobWaiting {
    /// A one-line description that can follow "waiting for".
    #[schema(example = "a place: 4 of 4 jobs are running")]
    pub waiting_for: String,
}

/// The progress of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// The amount of work done so far.
    pub done: u64,
    /// The total amount of work. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What the job is doing now. Absent if the job doesn't report it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The response of `GET /v1/jobs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs, newest first.
    pub jobs: Vec<Job>,
    /// The value of `before` for the next page of older jobs. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<String>,
    /// The number of jobs by state.
    pub counts: JobCounts,
}

/// The number of queued and running jobs, as this daemon knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// The number of queued jobs.
    pub queued: u64,
    /// The number of jobs running here that occupy a worker.
    pub running: u64,
    /// The number of workers.
    pub max_workers: u64,
    /// The number of foreground jobs running here. They don't occupy a worker.
    #[serde(default)]
    pub foreground: u64,
}

/// The body of `POST /v1/jobs/{id}/retry`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryJob {
    /// The complete environment of the command. Defaults to the daemon's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BTreeMap<String, String>>,
}

/// The response of `POST /v1/jobs` and `POST /v1/jobs/{id}/retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSubmitted {
    /// The job.
    pub job: Job,
    /// Whether the job already existed, from an earlier submission with the same idempotency key.
    pub known: bool,
    /// The plan that was opened for the job. Absent if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<crate::Plan>>,
}

/// The optional body of `POST /v1/jobs/{id}/cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    /// The reason. Defaults to empty.
    #[serde(default)]
    pub why: String,
}

/// The body of `PUT /v1/jobs/workers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetJobWorkers {
    /// How many jobs may run on this machine at once.
    pub max_workers: u64,
}

/// The body of `POST /v1/jobs/gc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectJobs {
    /// Remove jobs that ended longer ago than this, in milliseconds. Defaults to 7 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// Always keep this many of the newest jobs. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_newest: Option<u64>,
}

/// The response of `POST /v1/jobs/gc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobsCollected {
    /// The number of jobs that were removed.
    pub jobs: u64,
    /// The total size of their output, in bytes.
    pub output_bytes: u64,
    /// The number of jobs that were kept because other jobs depend on them.
    pub in_use: u64,
}

/// One event in the history of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobMoment {
    /// The position in the job's history.
    pub sequence: u64,
    /// When it happened.
    #[schema(format = "date-time")]
    pub at: String,
    /// What happened: `submitted`, `claimed`, `released`, `cancel_requested`, `retrying`, `interrupted`, `succeeded`,
    /// `failed` or `cancelled`.
    pub event: String,
    /// A one-line description. May be empty.
    pub text: String,
}

/// The response of `GET /v1/jobs/{id}/history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobHistory {
    /// The events, oldest first.
    pub moments: Vec<JobMoment>,
}

/// A piece of output: the data of an event of `GET /v1/jobs/{id}/logs`, or a line of its response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobOutput {
    /// The sequence number. Pass it to continue reading after this piece.
    pub sequence: u64,
    /// When the output was received.
    #[schema(format = "date-time")]
    pub at: String,
    /// The channel that the output was written to.
    pub channel: JobChannel,
    /// The output, if it is text. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The output in Base64, if it isn't text. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// The channel of a piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobChannel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A note from the daemon.
    Note,
}

impl JobChannel {
    /// All channels.
    pub const ALL: [Self; 3] = [Self::Stdout, Self::Stderr, Self::Note];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Note => "note",
        }
    }
}
