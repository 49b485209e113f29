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
Without --all, archived sessions are not listed.

Examples:
  tidelock session list
  tidelock session list --in . --all
  tidelock session list --state asking --json")]
    List(SessionListArguments),
    /// Show the details of a session: the running turn, open questions, queued prompts and newest turns
    #[command(after_help = "\
To name a session, use its id, a unique beginning or end of the id (at least four characters), or
`@` for the newest session of the current directory.

Examples:
  tidelock session show @
  tidelock session show G5FAV --json")]
    Show(SessionArguments),
    /// Watch the running turn, from its beginning
    #[command(after_help = "\
Without SESSION, this watches the newest session of the current directory with a running turn. If
no turn is running, it shows the newest turn. Any number of clients can watch at the same time,
and Ctrl-C stops watching, not the turn. Watching survives daemon restarts: no event is missed or
repeated.

Examples:
  tidelock session attach
  tidelock session attach @ --tail 50
  tidelock session attach G5FAV --follow")]
    Attach(AttachArguments),
    /// Send a prompt to a session, and watch the turn
    #[command(after_help = "\
If a turn is running, the prompt waits until it ends; with --refuse, it is refused (exit code 4).
The exit code and Ctrl-C work as with `tidelock run`.

If several machines share a database, a prompt runs on the machine that has the session's directory.
With --here, it runs on this machine.

Examples:
  tidelock session send @ 'and now the tests'
  git diff | tidelock session send G5FAV -
  tidelock session send @ --detach 'then the documentation'")]
    Send(SendArguments),
    /// Stop the running turn, and wait until it has ended
    #[command(after_help = "\
What the turn has said and changed so far is kept. Queued prompts still run; use --turn to remove
one of them.

Examples:
  tidelock session cancel @
  tidelock session cancel @ --why 'wrong branch'")]
    Cancel(SessionCancelArguments),
    /// Show the queued prompts, and change them before they run
    #[command(after_help = "\
Examples:
  tidelock session queue @
  tidelock session queue @ edit 9S1TX 'another wording'
  tidelock session queue @ move 9S1TX 1
  tidelock session queue @ rm 9S1TX
  tidelock session queue @ here")]
    Queue(QueueArguments),
    /// Answer an agent's question
    #[command(
        allow_missing_positional = true,
        after_help = "\
The first answer counts, whoever gives it. `always` applies to this session. PERMISSION is needed
only if several questions are open.

Examples:
  tidelock session answer @ allow
  tidelock session answer G5FAV permission_01ARZ3NDEKTSV4RRFFQ69G5FAV deny"
    )]
    Answer(AnswerArguments),
    /// Open a new session that continues from a turn of this one
    #[command(after_help = "\
Both sessions share the conversation up to that turn, and nothing after it.

Examples:
  tidelock session fork @
  tidelock session fork @ --at 9S1TX")]
    Fork(ForkArguments),
    /// Change the title of a session
    #[command(after_help = "\
Examples:
  tidelock session rename @ 'the parser'")]
    Rename(RenameSessionArguments),
    /// Archive a session, so that lists omit it and it accepts no prompts
    #[command(after_help = "\
Examples:
  tidelock session archive @
  tidelock session archive G5FAV --undo")]
    Archive(ArchiveArguments),
    /// Export a whole session as JSON or Markdown
    #[command(after_help = "\
The export goes to standard output unless --output names a file. An existing file is never
overwritten.

Examples:
  tidelock session export @ --format md > talk.md
  tidelock session export @ --output talk.json")]
    Export(ExportArguments),
    /// Delete a session and all of its turns
    #[command(after_help = "\
This is refused while the session has a running or queued turn, or has forks. Its plans are kept.

Examples:
  tidelock session rm G5FAV")]
    Rm(SessionArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// The session: its id, a unique part of it, or `@`
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArguments {
    /// Also list archived sessions
    #[arg(long, conflicts_with = "state")]
    pub(crate) all: bool,
    /// Only list sessions of this directory and the directories below it
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Only list sessions in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<SessionState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionState {
    /// No turn is running
    Idle,
    /// No turn is running, and prompts are queued
    Waiting,
    /// A turn is running
    Running,
    /// A running turn is waiting for an answer
    Asking,
    /// A turn is being stopped
    Stopping,
    /// The session is archived
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
    /// The session: its id, a unique part of it, or `@`
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Start with the last NUMBER events
    #[arg(long, value_name = "NUMBER")]
    pub(crate) tail: Option<u64>,
    /// Keep watching the turns that follow
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
    /// Refuse the prompt if a turn is running, instead of queueing it
    #[arg(long)]
    refuse: bool,
    /// Run on this machine, if several share a database; the session moves here with its queued prompts
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
}

impl SendArguments {
    pub(crate) fn if_busy(&self) -> protocol::IfBusy {
        if self.refuse {
            protocol::IfBusy::Refuse
        } else {
            protocol::IfBusy::Queue
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SessionCancelArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Cancel only this turn, whether running or queued
    #[arg(long, value_name = "TURN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) turn: Option<String>,
    /// The reason, recorded with the turn
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
    /// List the queued prompts in order
    #[command(after_help = "\
Examples:
  tidelock session queue @ list --json")]
    List,
    /// Change the text of a queued prompt
    #[command(after_help = "\
Examples:
  tidelock session queue @ edit 9S1TX 'another wording'")]
    Edit {
        /// The turn: its id or a unique part of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        turn: String,
        /// The new text of the prompt
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        text: String,
    },
    /// Remove a queued prompt; its turn is cancelled
    #[command(after_help = "\
Examples:
  tidelock session queue @ rm 9S1TX")]
    Rm {
        /// The turn: its id or a unique part of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        turn: String,
    },
    /// Run the queued prompts on this machine, if several share a database
    #[command(after_help = "\
The session moves here, so its next prompts run here too. Its directory must exist on this
machine. Use this when the machine that the prompts are waiting for is gone.

Examples:
  tidelock session queue @ here")]
    Here,
    /// Move a queued prompt to another position
    #[command(after_help = "\
Examples:
  tidelock session queue @ move 9S1TX 1")]
    Move {
        /// The turn: its id or a unique part of it
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        turn: String,
        /// The new position; 1 is the next to run
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        place: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The question: its id or a unique part of it; defaults to the one that is open
    #[arg(value_name = "PERMISSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) permission: Option<String>,
    /// The answer
    #[arg(value_name = "ANSWER", required = true)]
    pub(crate) answer: GivenAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GivenAnswer {
    /// Allow it this time
    Allow,
    /// Allow it from now on in this session
    Always,
    /// Deny it
    Deny,
}

impl From<GivenAnswer> for protocol::PermissionAnswer {
    fn from(answer: GivenAnswer) -> protocol::PermissionAnswer {
        match answer {
            GivenAnswer::Allow => protocol::PermissionAnswer::Allow,
            GivenAnswer::Always => protocol::PermissionAnswer::AllowAlways,
            GivenAnswer::Deny => protocol::PermissionAnswer::Deny,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ForkArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The last turn that both sessions share; defaults to the newest that has ended
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
    /// Unarchive the session instead
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The format of the export
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub(crate) format: ExportFormat,
    /// The file to write instead of standard output
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
    /// List the agents, and what is missing for those that aren't ready
    #[command(after_help = "\
Examples:
  tidelock agent list
  tidelock agent list --json")]
    List,
}
