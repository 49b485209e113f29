//! The arguments of `tidelock session` and `tidelock agent`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::Reach;
use super::prompt::PromptArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List sessions, newest first
    #[command(after_help = "\
Without --all those that were put away are left out.

Examples:
  tidelock session list
  tidelock session list --in . --all
  tidelock session list --state asking --json")]
    List(SessionListArguments),
    /// Show everything about a session: what runs, what it asks, what waits, and its newest turns
    #[command(after_help = "\
A session is named by its id, by four or more letters of its beginning or its end that no other
session has, or by `@` for the newest session of this directory.

Examples:
  tidelock session show @
  tidelock session show G5FAV --json")]
    Show(SessionArguments),
    /// Watch the turn that runs, from its beginning on
    #[command(after_help = "\
Without SESSION it is the newest one of this directory in which a turn runs. If nothing runs, the
newest turn is told. Any number can watch at the same time; Ctrl-C ends the watching, not the turn.
It goes on when the daemon is started afresh in between: nothing is missed and nothing told twice.

Examples:
  tidelock session attach
  tidelock session attach @ --tail 50
  tidelock session attach G5FAV --follow")]
    Attach(AttachArguments),
    /// Send a prompt to a session, and watch what comes of it
    #[command(after_help = "\
While a turn runs the prompt waits for its end; with --refuse it is refused instead (exit code 4).
The exit code and Ctrl-C are as with `tidelock run`.

If several machines share a database, a prompt runs on the machine that has the session's directory.
With --here it runs on this one.

Examples:
  tidelock session send @ 'and now the tests'
  git diff | tidelock session send G5FAV -
  tidelock session send @ --detach 'then the documentation'")]
    Send(SendArguments),
    /// Stop the turn that runs, and wait until it has ended
    #[command(after_help = "\
What it has said and changed is kept. Prompts that wait go on; with --turn one of them is taken away.

Examples:
  tidelock session cancel @
  tidelock session cancel @ --why 'wrong branch'")]
    Cancel(SessionCancelArguments),
    /// Look at the prompts that wait, and change them before they run
    #[command(after_help = "\
Examples:
  tidelock session queue @
  tidelock session queue @ edit 9S1TX 'another wording'
  tidelock session queue @ move 9S1TX 1
  tidelock session queue @ rm 9S1TX
  tidelock session queue @ here")]
    Queue(QueueArguments),
    /// Answer what an agent asks
    #[command(
        allow_missing_positional = true,
        after_help = "\
The first answer counts, whoever gives it. `always` is for this session. PERMISSION is needed only if
several questions are open.

Examples:
  tidelock session answer @ allow
  tidelock session answer G5FAV permission_01ARZ3NDEKTSV4RRFFQ69G5FAV deny"
    )]
    Answer(AnswerArguments),
    /// Open another session that goes on from a turn of this one
    #[command(after_help = "\
Both share what was said up to there, and nothing after it.

Examples:
  tidelock session fork @
  tidelock session fork @ --at 9S1TX")]
    Fork(ForkArguments),
    /// Give a session another title
    #[command(after_help = "\
Examples:
  tidelock session rename @ 'the parser'")]
    Rename(RenameSessionArguments),
    /// Put a session away, so that lists leave it out and it takes no prompts
    #[command(after_help = "\
Examples:
  tidelock session archive @
  tidelock session archive G5FAV --undo")]
    Archive(ArchiveArguments),
    /// Write a whole session down, as JSON or Markdown
    #[command(after_help = "\
It goes to standard output unless --output names a file. A file that is there already is never
replaced.

Examples:
  tidelock session export @ --format md > talk.md
  tidelock session export @ --output talk.json")]
    Export(ExportArguments),
    /// Remove a session with all of its turns
    #[command(after_help = "\
It is refused while a turn runs or waits, and while there are forks of it. Its plans stay.

Examples:
  tidelock session rm G5FAV")]
    Rm(SessionArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// The session: its id, a part of it, or `@`
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArguments {
    /// Those that were put away as well
    #[arg(long, conflicts_with = "state")]
    pub(crate) all: bool,
    /// Only those of this directory, and of what is below it
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Only those in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<SessionState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionState {
    /// Nothing runs
    Idle,
    /// Nothing runs, and prompts wait
    Waiting,
    /// A turn runs
    Running,
    /// A turn runs and waits for an answer
    Asking,
    /// A turn is being stopped
    Stopping,
    /// It was put away
    Archived,
}

impl SessionState {
    /// As the daemon calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SessionState::Idle => "idle",
            SessionState::Waiting => "waiting",
            SessionState::Running => "running",
            SessionState::Asking => "asking",
            SessionState::Stopping => "stopping",
            SessionState::Archived => "archived",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// The session: its id, a part of it, or `@`
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Begin with the last NUMBER events
    #[arg(long, value_name = "NUMBER")]
    pub(crate) tail: Option<u64>,
    /// Go on with the turns that come after it
    #[arg(short, long)]
    follow: bool,
}

impl AttachArguments {
    pub(crate) fn reach(&self) -> Reach {
        if self.follow { Reach::Follow } else { Reach::Past }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Be refused while a turn runs, in place of waiting for its end
    #[arg(long)]
    refuse: bool,
    /// Run it on this machine, if several share a database; the session moves here with what waits in it
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
}

impl SendArguments {
    pub(crate) fn if_busy(&self) -> api::IfBusy {
        if self.refuse {
            api::IfBusy::Refuse
        } else {
            api::IfBusy::Queue
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SessionCancelArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Only this turn: it runs, or it waits
    #[arg(long, value_name = "TURN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) turn: Option<String>,
    /// Why, for whoever looks at it later
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct QueueArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    #[command(subcommand)]
    pub(crate) command: Option<QueueCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List them, in their order
    #[command(after_help = "\
Examples:
  tidelock session queue @ list --json")]
    List,
    /// Change what is asked
    #[command(after_help = "\
Examples:
  tidelock session queue @ edit 9S1TX 'another wording'")]
    Edit {
        /// The turn: its id, or a part of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        turn: String,
        /// What is asked now
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        text: String,
    },
    /// Take one away; its turn is cancelled
    #[command(after_help = "\
Examples:
  tidelock session queue @ rm 9S1TX")]
    Rm {
        /// The turn: its id, or a part of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        turn: String,
    },
    /// Run them on this machine, if several share a database
    #[command(after_help = "\
The session moves here: its next prompts run here too. Its directory must be on this machine. Use it when
the machine that the prompts wait for is gone.

Examples:
  tidelock session queue @ here")]
    Here,
    /// Move one to another place
    #[command(after_help = "\
Examples:
  tidelock session queue @ move 9S1TX 1")]
    Move {
        /// The turn: its id, or a part of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        turn: String,
        /// Its place; 1 is the next one to run
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        place: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The question: its id, or a part of it; otherwise the one that is open
    #[arg(value_name = "PERMISSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) permission: Option<String>,
    /// The answer
    #[arg(value_name = "ANSWER", required = true)]
    pub(crate) answer: GivenAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GivenAnswer {
    /// Yes, this time
    Allow,
    /// Yes, and from now on in this session
    Always,
    /// No
    Deny,
}

impl From<GivenAnswer> for api::PermissionAnswer {
    fn from(answer: GivenAnswer) -> api::PermissionAnswer {
        match answer {
            GivenAnswer::Allow => api::PermissionAnswer::Allow,
            GivenAnswer::Always => api::PermissionAnswer::AllowAlways,
            GivenAnswer::Deny => api::PermissionAnswer::Deny,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ForkArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The last turn that both share; otherwise the newest that is over
    #[arg(long, value_name = "TURN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RenameSessionArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The new title
    #[arg(value_name = "TITLE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: String,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Take it back instead
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// In what form
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub(crate) format: ExportFormat,
    /// The file to write, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object
    Json,
    /// Markdown
    #[value(alias = "markdown")]
    Md,
}

impl ExportFormat {
    /// As the daemon calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ExportFormat::Json => "json",
            ExportFormat::Md => "markdown",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents that can be asked, and what is missing for those that cannot
    #[command(after_help = "\
Examples:
  tidelock agent list
  tidelock agent list --json")]
    List,
}
