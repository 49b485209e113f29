//! The arguments of `tidelock job`.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::job_values::{JobLimit, Lane, Variable, parse_lane, parse_limit, parse_variable};
use crate::units;

const RUN_USAGE: &str = "\
tidelock job run [OPTIONS] -- <COMMAND>...
       tidelock job run [OPTIONS] --shell <LINE>";

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Run a command as a job that keeps running when you leave
    #[command(override_usage = RUN_USAGE, after_help = "\
The command runs in the current directory with the current environment. With --wait, its output is
shown as it arrives, and the exit code is the command's own, or 128 + N if signal N ended it. The
exit code is 1, with a message, if something else ended the command (a time limit, a deadline, an
interruption, a cancellation by someone else) or if some of its output was lost. The first Ctrl-C
cancels the job and waits for it to end (exit code 130). Press Ctrl-C again to detach without
waiting.

Examples:
  tidelock job run -- cargo build --release
  tidelock job run --wait -- cargo test
  tidelock job run --wait --timeout 10m --retries 2 -- ./flaky.sh
  tidelock job run --lane cargo:$PWD -- cargo test     one at a time in this lane
  tidelock job run --after last --shell 'make | tee log'")]
    Run(Box<RunArguments>),
    /// List jobs, newest first
    #[command(after_help = "\
Examples:
  tidelock job list
  tidelock job list --state failed --limit 100
  tidelock job list --all --json")]
    List(ListArguments),
    /// Show a job and its history
    #[command(after_help = "\
To name a job, use its id, a unique beginning or end of the id, or `last` for the newest job.

Examples:
  tidelock job show last
  tidelock job show 9S1TX --json")]
    Show(JobArguments),
    /// Show the output of a job, or follow it live
    #[command(after_help = "\
The job's standard output and standard error are printed to standard output and standard error.
Colors are kept only on a terminal, and only if NO_COLOR is not set. With --follow, output
continues until the job ends. With --json, each line is one JSON object.

Examples:
  tidelock job logs last -f
  tidelock job logs 9S1TX --channel stderr --timestamps")]
    Logs(LogsArguments),
    /// Wait for a job to end
    #[command(after_help = "\
The exit code is the command's own, as with `tidelock job run --wait`. If --timeout expires, the
exit code is 1 and the job keeps running.

Examples:
  tidelock job wait last
  tidelock job wait last --timeout 5m && echo done")]
    Wait(WaitArguments),
    /// Cancel a job
    #[command(after_help = "\
A queued job is cancelled immediately. A running job is asked to stop, and killed after two
seconds. It is cancelled once none of its processes are left; use --wait to wait for that.

Examples:
  tidelock job cancel last
  tidelock job cancel 9S1TX --why 'wrong branch' --wait")]
    Cancel(CancelArguments),
    /// Rerun a job that has ended, as a new job
    #[command(after_help = "\
Examples:
  tidelock job retry last
  tidelock job retry 9S1TX --wait")]
    Retry(RetryArguments),
    /// Delete jobs that have ended, and their output
    #[command(after_help = "\
A job that other jobs are still waiting for is kept.

Examples:
  tidelock job gc
  tidelock job gc --older-than 1h --keep 20")]
    Gc(GcArguments),
    /// Show or change how many jobs run at once
    #[command(after_help = "\
Running jobs aren't affected. With 0, no job starts until you choose another number. The setting
survives a restart of the daemon.

Examples:
  tidelock job workers
  tidelock job workers 8")]
    Workers(WorkersArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Wait for the job, show its output as it arrives, and exit with its exit code
    #[arg(long)]
    wait: bool,
    /// The time limit for one attempt (500ms, 30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    pub(crate) timeout: Option<Duration>,
    /// The time limit for the whole job, including retries and pauses
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    pub(crate) deadline: Option<Duration>,
    /// How many times to retry after a failed attempt
    #[arg(long, value_name = "NUMBER")]
    pub(crate) retries: Option<u16>,
    /// How long to wait before the first retry; doubles with each retry
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) retry_pause: Option<Duration>,
    /// Idempotency key: submitting again with the same key returns the same job
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// The working directory of the command; defaults to the current one
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Run at most LIMIT jobs at once in the lane NAME, or one if LIMIT is left out; only a number after the last
    /// colon is read as a limit
    #[arg(long, value_name = "NAME[:LIMIT]", value_parser = parse_lane)]
    pub(crate) lane: Option<Lane>,
    /// Start only after this job has succeeded (may be repeated)
    #[arg(long, value_name = "JOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) after: Vec<String>,
    /// How long to wait before the first attempt
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) delay: Option<Duration>,
    /// The priority among queued jobs, from -10 (last) to 10 (first); it rises while a job waits
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i64).range(-10..=10)
    )]
    pub(crate) priority: Option<i64>,
    /// Run the command again if the daemon dies while it runs; use this if running it twice is harmless
    #[arg(long)]
    repeat: bool,
    /// A title to show in lists; defaults to the command itself
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: Option<String>,
    /// The command's input: a file, or `-` for standard input, which is read to the end first
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Give the command no input. By default, --wait passes standard input on if it is not a terminal
    #[arg(long, conflicts_with = "stdin")]
    no_input: bool,
    /// Set an environment variable, or with --clean-env, keep one that is set here (may be repeated)
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    pub(crate) variables: Vec<Variable>,
    /// Clear the environment except for PATH, HOME, USER, LOGNAME, SHELL, LANG, TERM and TMPDIR
    #[arg(long)]
    clean_env: bool,
    /// Allow writes only below this directory (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub(crate) write_below: Vec<PathBuf>,
    /// Limit what each process of the job may use: address-space, file-size (16M), open-files, processes or
    /// cpu-seconds (may be repeated)
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = parse_limit)]
    pub(crate) limits: Vec<JobLimit>,
    /// How much of the output to keep, such as 64M
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub(crate) output_limit: Option<u64>,
    /// Let any daemon that shares the log run the job, not only the one of this home. The command gets the
    /// environment that `--clean-env` leaves, plus what you name with `--env`
    #[arg(long)]
    anywhere: bool,
    /// Don't give the command a terminal to write to, so that most commands use no color
    #[arg(long)]
    no_color: bool,
    /// A shell command line to run instead of a command
    #[arg(long, value_name = "LINE", conflicts_with = "command", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) shell: Option<String>,
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        required_unless_present = "shell"
    )]
    pub(crate) command: Vec<String>,
}

/// How long a command stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Until the job is on disk.
    Submitted,
    /// Until it has ended.
    Ended,
}

impl Stay {
    fn of(wait: bool) -> Stay {
        if wait { Stay::Ended } else { Stay::Submitted }
    }
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// What this process reads.
    StandardInput,
    Nothing,
}

impl Reads {
    pub(super) fn of(is_wanted: bool) -> Reads {
        if is_wanted {
            Reads::StandardInput
        } else {
            Reads::Nothing
        }
    }
}

/// What of this environment the command gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inherited {
    /// All of it.
    Everything,
    /// What commands cannot do without.
    Little,
}

/// Whether a command may be given a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminal {
    /// If there is one here.
    AsHere,
    /// No.
    Never,
}

impl RunArguments {
    pub(crate) fn anywhere(&self) -> bool {
        self.anywhere
    }

    pub(crate) fn stay(&self) -> Stay {
        Stay::of(self.wait)
    }

    /// Whether standard input is sent to the command. What may run twice would find it read.
    pub(crate) fn reads(&self) -> super::Reads {
        let is_once = self.retries.is_none_or(|retries| retries == 0) && !self.repeat && self.key.is_none();
        let is_wanted = self.wait && !self.no_input && self.stdin.is_none();
        super::Reads::of(is_wanted && is_once && !self.anywhere)
    }

    pub(crate) fn if_interrupted(&self) -> Option<protocol::JobIfInterrupted> {
        self.repeat.then_some(protocol::JobIfInterrupted::Repeat)
    }

    pub(crate) fn inherited(&self) -> Inherited {
        // What goes to another machine stands in the log, where the variables of here have no business.
        if self.clean_env || self.anywhere {
            Inherited::Little
        } else {
            Inherited::Everything
        }
    }

    pub(crate) fn terminal(&self) -> Terminal {
        if self.no_color {
            Terminal::Never
        } else {
            Terminal::AsHere
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only list jobs in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,
    /// The maximum number of jobs to list
    #[arg(long, value_name = "NUMBER", default_value = "20", conflicts_with = "all")]
    limit: NonZeroU16,
    /// List all jobs
    #[arg(long)]
    all: bool,
}

impl ListArguments {
    /// How many to show at most.
    pub(crate) fn most(&self) -> Option<usize> {
        (!self.all).then(|| usize::from(self.limit.get()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Waiting to run
    Queued,
    /// Running on a worker
    Running,
    /// Finished successfully
    Succeeded,
    /// Failed
    Failed,
    /// Cancelled
    Cancelled,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct JobArguments {
    /// The job: its id, a unique part of it, or `last`
    #[arg(value_name = "JOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) job: String,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// Keep printing output until the job ends
    #[arg(short, long)]
    follow: bool,
    /// Only show output after this number, as shown by --json
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    /// Only show this channel
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<Channel>,
    /// Prefix each line with its local time
    #[arg(long)]
    timestamps: bool,
}

/// What stands before a line of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// Nothing.
    None,
    /// When it came.
    Time,
}

impl LogsArguments {
    pub(crate) fn reach(&self) -> super::Reach {
        if self.follow {
            super::Reach::Follow
        } else {
            super::Reach::Past
        }
    }

    pub(crate) fn stamps(&self) -> Stamps {
        if self.timestamps {
            Stamps::Time
        } else {
            Stamps::None
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Channel {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
    /// Notes from the daemon
    Note,
}

impl Channel {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
            Channel::Note => "note",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// How long to wait; by default, until the job ends
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// The reason, shown with the job
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) why: String,
    /// Wait until none of its processes are left
    #[arg(long)]
    wait: bool,
}

impl CancelArguments {
    pub(crate) fn stay(&self) -> Stay {
        Stay::of(self.wait)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// Wait for the job, show its output as it arrives, and exit with its exit code
    #[arg(long)]
    wait: bool,
}

impl RetryArguments {
    pub(crate) fn stay(&self) -> Stay {
        Stay::of(self.wait)
    }
}

#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// Delete jobs that ended longer ago than this
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = units::parse_duration)]
    pub(crate) older_than: Duration,
    /// Always keep this many of the newest ended jobs
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) keep: u64,
}

#[derive(Debug, Args)]
pub(crate) struct WorkersArguments {
    /// The number of jobs that may run at once, from 0 to 256
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(0..=256))]
    pub(crate) max_workers: Option<u64>,
}

pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = units::parse_duration(text)?;
    if duration.is_zero() {
        return Err("it must be more than nothing".to_owned());
    }
    Ok(duration)
}
