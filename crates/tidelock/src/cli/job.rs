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
    /// Run a command as a job, which goes on whether you stay or not
    #[command(override_usage = RUN_USAGE, after_help = "\
The command runs in this directory and with this environment. With --wait its output is shown as
it comes, and the exit code is the command's own: 128 + N after the signal N, and 1 with a message
if it was not the command that decided (a time limit, a deadline, an interruption, a cancellation
by somebody else), or if some of its output was lost. The first Ctrl-C cancels the job and waits
for its end (exit code 130), the second one leaves it to itself.

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
    /// Show a job, and what has happened to it
    #[command(after_help = "\
A job is named by its id, by a beginning or an end of it that no other job has, or by `last` for
the newest one.

Examples:
  tidelock job show last
  tidelock job show 9S1TX --json")]
    Show(JobArguments),
    /// Show what a job has written, and follow it
    #[command(after_help = "\
Standard output and standard error go where they belong. Colours are kept on a terminal only, and
not when NO_COLOR is set. With --follow it goes on until the job has ended. With --json it is one
object a line.

Examples:
  tidelock job logs last -f
  tidelock job logs 9S1TX --channel stderr --timestamps")]
    Logs(LogsArguments),
    /// Wait until a job has ended
    #[command(after_help = "\
The exit code is that of the command, as with `tidelock job run --wait`. When the time is over it
is 1, and the job goes on.

Examples:
  tidelock job wait last
  tidelock job wait last --timeout 5m && echo done")]
    Wait(WaitArguments),
    /// Cancel a job
    #[command(after_help = "\
A job that waits is cancelled at once. One that runs is told to stop, and made to after two
seconds; it is cancelled when nothing of it runs any more, which --wait waits for.

Examples:
  tidelock job cancel last
  tidelock job cancel 9S1TX --why 'wrong branch' --wait")]
    Cancel(CancelArguments),
    /// Submit a job that has ended once more, as a new one
    #[command(after_help = "\
Examples:
  tidelock job retry last
  tidelock job retry 9S1TX --wait")]
    Retry(RetryArguments),
    /// Forget jobs that have ended, with their output
    #[command(after_help = "\
A job that others still wait for is kept.

Examples:
  tidelock job gc
  tidelock job gc --older-than 1h --keep 20")]
    Gc(GcArguments),
    /// Show or change how many jobs run at once
    #[command(after_help = "\
What runs goes on. With 0 nothing new is begun until you choose another number. The choice is kept
when the daemon is started again.

Examples:
  tidelock job workers
  tidelock job workers 8")]
    Workers(WorkersArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Show what it writes as it comes, and end as it ends
    #[arg(long)]
    wait: bool,
    /// How long one attempt may take (500ms, 30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    pub(crate) timeout: Option<Duration>,
    /// In what time the job must have ended, attempts and pauses included
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    pub(crate) deadline: Option<Duration>,
    /// How many more attempts there are after one that failed
    #[arg(long, value_name = "NUMBER")]
    pub(crate) retries: Option<u16>,
    /// The pause before the first of them; it doubles each time
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) retry_pause: Option<Duration>,
    /// A second submission with the same key is the same job
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// The directory that it starts in, in place of this one
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Run at most LIMIT jobs of this name at once, or one; the limit is what stands behind the last colon, if it is
    /// a number
    #[arg(long, value_name = "NAME[:LIMIT]", value_parser = parse_lane)]
    pub(crate) lane: Option<Lane>,
    /// Start only when this job has succeeded (may be repeated)
    #[arg(long, value_name = "JOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) after: Vec<String>,
    /// How long to wait before the first attempt
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) delay: Option<Duration>,
    /// Which of several goes first, from -10 (last) to 10 (first); waiting counts too
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i64).range(-10..=10)
    )]
    pub(crate) priority: Option<i64>,
    /// Run it again if the daemon dies while it runs, because doing it twice does no harm
    #[arg(long)]
    repeat: bool,
    /// What it is, for lists; otherwise the command itself
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: Option<String>,
    /// What it reads: a file, or `-` for standard input, which is read to its end first
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Let it read nothing. Otherwise it reads standard input with --wait, if that is not a terminal
    #[arg(long, conflicts_with = "stdin")]
    no_input: bool,
    /// Set a variable, or with --clean-env keep one that is set here (may be repeated)
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    pub(crate) variables: Vec<Variable>,
    /// Keep nothing of the environment but PATH, HOME, USER, LOGNAME, SHELL, LANG, TERM and TMPDIR
    #[arg(long)]
    clean_env: bool,
    /// Let it write below this directory, and nowhere else (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub(crate) write_below: Vec<PathBuf>,
    /// What each of its processes may use at most: address-space, file-size (16M), open-files, processes or
    /// cpu-seconds (may be repeated)
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = parse_limit)]
    pub(crate) limits: Vec<JobLimit>,
    /// How much of its output is kept, such as 64M
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub(crate) output_limit: Option<u64>,
    /// Let any daemon that shares the log run it, not only the one of this home. Of the environment it gets what
    /// `--clean-env` leaves, and what you name with `--env`
    #[arg(long)]
    anywhere: bool,
    /// Do not let it write to a terminal, so that most commands use no colour
    #[arg(long)]
    no_color: bool,
    /// A line for the shell, in place of a command
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

    pub(crate) fn if_interrupted(&self) -> Option<api::JobIfInterrupted> {
        self.repeat.then_some(api::JobIfInterrupted::Repeat)
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
    /// Only those that are doing this
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,
    /// How many at most
    #[arg(long, value_name = "NUMBER", default_value = "20", conflicts_with = "all")]
    limit: NonZeroU16,
    /// All of them
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
    /// It waits for its turn
    Queued,
    /// A worker has it
    Running,
    /// It was done
    Succeeded,
    /// It was given up
    Failed,
    /// It was cancelled
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
    /// The job: its id, a part of it, or `last`
    #[arg(value_name = "JOB", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) job: String,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// Go on until the job has ended
    #[arg(short, long)]
    follow: bool,
    /// Only what came after this number, as --json shows it
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    /// Only what came this way
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<Channel>,
    /// Put the time before each line
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
    /// Remarks of the daemon
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
    /// How long to wait; otherwise until it has ended
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// Why, for whoever wonders
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) why: String,
    /// Wait until nothing of it runs any more
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
    /// Show what it writes as it comes, and end as it ends
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
    /// Those that ended longer ago than this
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = units::parse_duration)]
    pub(crate) older_than: Duration,
    /// But never the newest so many
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) keep: u64,
}

#[derive(Debug, Args)]
pub(crate) struct WorkersArguments {
    /// How many jobs may run at once, from 0 to 256
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
