//! The arguments, and the words of `--help`. What they do is under `commands`.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

mod acp;
mod activity;
mod breaker;
mod config;
mod context;
mod daemon;
mod generate;
mod home;
mod job;
mod job_values;
mod join;
mod lsp;
mod mcp;
mod plan;
mod plan_change;
mod position;
mod prompt;
mod quarantine;
#[cfg(test)]
mod reference;
mod sandboxed;
mod session;
mod workspace;

pub(crate) use acp::AcpArguments;
pub(crate) use activity::{ActivityArguments, ActivityOf};
pub(crate) use breaker::{
    BreakerCommand, CallOutcome, ForcedState, HistoryArguments, Reach, RecordArguments, ResetArguments,
};
pub(crate) use config::{SettingsArguments, SettingsCommand};
pub(crate) use context::{ContextArguments, IndexArguments, IndexCommand, Telling};
pub(crate) use daemon::{
    ArchiveArguments, BackupArguments, Depth, DoctorArguments, DownArguments, PurgeArguments, ServeArguments,
    WhyArguments,
};
pub(crate) use generate::{CompletionsArguments, ManArguments, ShellName};
pub(crate) use home::HomeCommand;
pub(crate) use job::{
    CancelArguments, GcArguments, Inherited, JobCommand, ListArguments, LogsArguments, Reads, RetryArguments,
    RunArguments, Stamps, Stay, Terminal, WaitArguments, WorkersArguments,
};
pub(crate) use job_values::{JobLimit, Variable};
pub(crate) use join::{JoinAction, JoinArguments, JoinClient, JoinScope, JoinWay};
pub(crate) use lsp::{
    ConfigArguments, Declaration, FileArguments, LspCommand, QueryOptions, RequestArguments,
    RestartArguments, StartArguments, StopArguments, TrustArguments, Waiting,
};
pub(crate) use mcp::{McpArguments, WhoApplies};
pub(crate) use plan::{
    ApplyArguments, CatArguments, CheckArguments, DiffArguments, DiffForm, DiscardArguments, ForgetArguments,
    LogArguments, NewArguments, OpenArguments, PlanCommand, PlanExecArguments, PlanGcArguments,
    PlanListArguments, UndoArguments,
};
pub(crate) use plan_change::{Operation, PlanRecordArguments};
pub(crate) use position::SourcePosition;
pub(crate) use prompt::{PromptArguments, TalkArguments};
pub(crate) use quarantine::QuarantineCommand;
pub(crate) use sandboxed::{Afterwards, ExecArguments, SandboxedArguments};
pub(crate) use session::{
    AgentCommand, AnswerArguments, ArchiveArguments as ArchiveSessionArguments, AttachArguments,
    ExportArguments, ForkArguments, QueueArguments, QueueCommand, RenameSessionArguments, SendArguments,
    SessionCancelArguments, SessionCommand, SessionListArguments,
};
pub(crate) use workspace::{
    ChecksArguments, RepairArguments, RescuedArguments, RescuedCommand, RestoreArguments, WorkspaceCommand,
};

use crate::environment;
use crate::output::Format;

const EXIT_CODES: &str = "\
Exit codes:
    0  success
    1  failure
    2  invalid arguments
    3  the daemon can't be reached or started
    4  refused: what you named doesn't exist, or has changed since you looked
  130  interrupted
`tidelock exec`, `tidelock plan exec`, `tidelock job run --wait` and `tidelock job wait` exit with
the command's own exit code. `tidelock run` and `tidelock session send` exit with 0 if the turn is
done, 1 if it failed or was interrupted, and 130 if it was cancelled.";

const EXAMPLES: &str = "\
Examples:
  tidelock run 'fix the test'   ask an agent; it works in a sandbox, and you get a diff to review
  tidelock up                   start the daemon if needed, and print a link to the page
  tidelock status --json        print one JSON object, for scripts
  tidelock lsp hover FILE:12:8  show what the language server knows about a position
  tidelock job run -- make      run a command that keeps running when you leave
  tidelock exec -- make fix     run a command in a sandbox, and get a diff to review
  tidelock plan apply @         apply its changes to the workspace
  tidelock context 'QUESTION'   find the code relevant to a question
  tidelock breaker list         show which circuit breakers are open
  tidelock down                 stop the daemon";

/// The text below the help of the whole program.
fn closing_words() -> String {
    format!("{EXIT_CODES}\n\n{}\n{EXAMPLES}", environment::help())
}

/// Run many coding agents on one machine and one repository without races.
#[derive(Debug, Parser)]
#[command(name = "tidelock", version, after_help = closing_words(), max_term_width = 100)]
pub(crate) struct Cli {
    /// Print exactly one JSON object to standard output, also for errors
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Human }
    }
}

/// The format that was asked for in arguments that could not be understood as a whole.
pub(crate) fn requested_format(arguments: impl Iterator<Item = OsString>) -> Format {
    let mut options = arguments.skip(1).take_while(|argument| argument != "--");
    if options.any(|argument| argument == "--json") {
        Format::Json
    } else {
        Format::Human
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the daemon in the background if it isn't running, and print a link to its page
    #[command(after_help = "\
The link opens the page in a browser and works once. Run `up` again to get another one.

Examples:
  tidelock up
  TIDELOCK_LISTEN=127.0.0.1:8800 tidelock up
  tidelock up --json")]
    Up,
    /// Stop the daemon and wait until it has exited
    #[command(after_help = "\
The daemon first finishes in-flight requests. If no daemon is running, the command succeeds anyway.

Examples:
  tidelock down
  tidelock down && tidelock up
  tidelock down --timeout 2m")]
    Down(DownArguments),
    /// Stop the daemon and delete all of its data: plans, sessions, jobs and their history
    #[command(after_help = "\
Your workspaces aren't touched. Sandboxes can contain directories that `rm -r` can't remove without
root; this command can. Without --yes, nothing is deleted and the exit code is 4.

Examples:
  tidelock export before.archive && tidelock purge --yes")]
    Purge(PurgeArguments),
    /// Show whether the daemon is running, and what it is doing
    #[command(after_help = "\
This never starts a daemon. If none is running, the exit code is 3 and the state is `stopped`.

Examples:
  tidelock status
  tidelock status --json")]
    Status,
    /// Check that this machine has what the daemon needs, and suggest how to fix problems
    #[command(after_help = "\
This works with or without a daemon, and changes nothing. The exit code is 1 if a check fails.

Examples:
  tidelock doctor
  tidelock doctor --deep        also read the whole log, which can take a while
  tidelock doctor --json")]
    Doctor(DoctorArguments),
    /// List the processes that the daemon owns
    #[command(after_help = "\
Each row is a command that the daemon started, with the memory of its whole process tree. These
processes end with the daemon, however it ends.

Examples:
  tidelock ps
  tidelock ps --json")]
    Ps,
    /// Show what needs you: questions from agents, plans to review, and problems
    #[command(after_help = "\
The most urgent items come first, each with the next command to run. The page shows the same list as
`What needs you`.

Examples:
  tidelock needs
  tidelock needs --json")]
    Needs,
    /// Show recent activity: sessions, plans, jobs, servers, breakers and the daemon
    #[command(after_help = "\
Events of all clients are listed, newest first. Repeated events in a row are shown once. For the
history of one item, use `tidelock plan log`, `tidelock job show` or `tidelock session show`. The
page shows this list live.

Examples:
  tidelock activity
  tidelock activity --of plans
  tidelock activity --limit 200 --json")]
    Activity(ActivityArguments),
    /// Show which job, agent or server started a process
    #[command(after_help = "\
The process can be one that the daemon started, its keeper, or any descendant. The exit code is 4 if
it is none of these.

Examples:
  tidelock why 4242
  tidelock why $(pgrep -n rust-analyzer) --json")]
    Why(WhyArguments),
    /// Inspect circuit breakers, and change them manually
    #[command(
        subcommand,
        after_help = "\
A breaker opens after several failures in a row, and lets one call through after a cooldown.

Examples:
  tidelock breaker list
  tidelock breaker reset lsp/rust-analyzer
  tidelock breaker record model/api failure --retry-after 30s"
    )]
    Breaker(BreakerCommand),
    /// Query language servers about code, and manage them
    #[command(
        subcommand,
        after_help = "\
Each workspace has one warm server that all clients share. A query starts it if needed, and waits
while it restarts. Lines and columns count from 1, columns in characters. Paths in answers are
relative to the workspace.

Examples:
  tidelock lsp references src/main.rs:12:8
  tidelock lsp diagnostics app.py
  tidelock lsp rename src/main.rs:12:8 new_name
  tidelock lsp list"
    )]
    Lsp(Box<LspCommand>),
    /// Give an agent a task in a sandbox, watch it work, and get a diff to review
    #[command(
        override_usage = "tidelock run [OPTIONS] <PROMPT>",
        after_help = "\
This opens a session for the current directory, and the agent works in the sandbox of a plan. What
it says goes to standard output, everything else to standard error. Its changes are shown at the
end, and reach the workspace only with `tidelock plan apply` or --apply. If no model is
configured, the built-in rehearsal agent answers. The turn keeps running if this process ends;
`tidelock session attach` returns to it, and with --apply the daemon still applies the changes when
the turn is done. The first Ctrl-C cancels the turn and keeps its work so
far (exit code 130). Press Ctrl-C again to detach without waiting. The exit code is 0 if the turn
is done, and 1 if it failed or was interrupted. With --apply, it is also 1 if the changes were not
applied.

Examples:
  tidelock run 'fix the failing test'
  tidelock run --agent model --model gpt-5 --apply 'add a changelog entry'
  tidelock run --session @ 'and now the documentation'
  tidelock run --script rehearsal.yaml --json 'try it out'
  git diff | tidelock run -"
    )]
    Run(Box<TalkArguments>),
    /// Return to conversations with agents: watch, prompt, stop, answer, fork, export
    #[command(
        subcommand,
        after_help = "\
A session is a conversation with an agent. Each prompt, with everything that follows from it, is a
turn. At most one turn runs at a time; others wait. To name a session, use its id, a unique
beginning or end of the id (at least four characters), or `@` for the newest session of the
current directory.

Examples:
  tidelock session list
  tidelock session attach
  tidelock session send @ 'and now the tests'
  tidelock session answer @ allow
  tidelock session cancel @"
    )]
    Session(Box<SessionCommand>),
    /// Show the available agents
    #[command(
        subcommand,
        after_help = "\
Examples:
  tidelock agent list"
    )]
    Agent(AgentCommand),
    /// Act as an agent for an editor, over the Agent Client Protocol on standard input and output
    #[command(after_help = "\
An editor such as Zed starts this. The agent works in a sandbox; `/diff`, `/apply` and `/undo` in
the editor act on its changes. Turns keep running if the editor exits, and are there when it
returns. Standard output carries only the protocol.

Examples:
  tidelock acp
  tidelock acp --agent model --model gpt-5")]
    Acp(AcpArguments),
    /// Run commands that outlive the terminal, and manage them
    #[command(
        subcommand,
        after_help = "\
A job is on disk before you get its id. It keeps running when you leave, and cancelling it ends
all of its processes. To name a job, use its id, a unique part of the id, or `last` for the newest
job.

Examples:
  tidelock job run -- cargo test
  tidelock job run --wait --timeout 10m -- cargo test
  tidelock job list
  tidelock job logs last -f
  tidelock job cancel last"
    )]
    Job(JobCommand),
    /// Run any command in its own sandbox, and get a diff to review
    #[command(
        override_usage = "tidelock exec [OPTIONS] -- <COMMAND>...",
        after_help = "\
This opens a plan for the workspace of the current directory, and runs the command in its sandbox
as a job. Its changes are shown, and reach the workspace only with `tidelock plan apply` or
--apply. The exit code is the command's own; with --apply, it is 1 if the command succeeded but
the changes were not applied. The first Ctrl-C cancels the command and keeps its changes in the
plan (exit code 130). Press Ctrl-C again to detach: the daemon seals or applies the plan when the
command ends, as it does with --detach and when the terminal is closed. The command reads standard
input if that is not a terminal.

Examples:
  tidelock exec -- ./codemod.sh
  tidelock exec --title 'fix the parser' --check 'cargo test' -- claude -p 'fix the parser'
  tidelock exec --apply --check 'cargo test' -- cargo fmt
  tidelock exec --plan @ -- sh -c 'echo more >> notes.txt'"
    )]
    Exec(Box<ExecArguments>),
    /// Review isolated work, and apply it all or not at all
    #[command(
        subcommand,
        after_help = "\
A plan has a sandbox that starts as a snapshot of the workspace. Changes in the sandbox are
recorded, and reach the workspace when you apply the plan, all or nothing. To name a plan, use its
id, a unique beginning or end of the id (at least four characters), or `@` for the newest plan of
the current workspace.

Examples:
  tidelock plan new --title 'fix the parser'
  tidelock plan exec @ -- cargo fmt
  tidelock plan diff @
  tidelock plan apply @
  tidelock plan undo @"
    )]
    Plan(PlanCommand),
    /// Manage the directories that plans have been opened for
    #[command(
        subcommand,
        after_help = "\
A git repository is one workspace; any other directory is a workspace of its own. It is registered
when you open the first plan for it.

Examples:
  tidelock workspace list
  tidelock workspace checks . 'cargo test'"
    )]
    Workspace(WorkspaceCommand),
    /// Find the code relevant to a question, within a token budget
    #[command(
        override_usage = "tidelock context [OPTIONS] [QUERY]",
        after_help = "\
Several strategies search in parallel: words, definitions, the repository map, recent changes and
language servers. Their results are combined, and as much as fits the budget is printed, exactly
as a model gets it. The number of pieces and tokens goes to standard error, and so does the name
of every strategy that failed or was too slow. If nothing matches, nothing is printed and the exit
code is 1, as with grep. With --focus, the query is optional. A strategy that keeps failing is
skipped for a while; `tidelock breaker list` shows it. The first question about a workspace builds
an index, which makes later ones faster.

Examples:
  tidelock context 'where is the retry policy decided'
  tidelock context --focus src/retry.rs --budget 4000 'back-off and jitter'
  tidelock context --explain parse_config
  tidelock context --only keyword,symbols --deadline 500ms parse_config
  tidelock context --plan @ 'back-off and jitter'
  git log -1 --format=%B | tidelock context - > context.md"
    )]
    Context(Box<ContextArguments>),
    /// Manage the indexes that speed up `tidelock context`
    #[command(
        subcommand,
        after_help = "\
Each workspace that you have asked about has an index. It is a cache: it follows changes to the
files on its own, and a removed index is rebuilt with the next question.

Examples:
  tidelock index list
  tidelock index rebuild
  tidelock index rm ~/old-project"
    )]
    Index(IndexCommand),
    /// Connect an agent over the Model Context Protocol, on standard input and output
    #[command(after_help = "\
An agent that speaks the protocol starts this command, as named in its configuration. The daemon is
started if it isn't running, and can be restarted in the meantime; the agent continues with the same
plan. Before a plan is applied or undone, the user is asked, through the agent if it can ask. With
--allow-apply, this agent doesn't have to ask.

Examples:
  tidelock mcp
  tidelock mcp --directory ~/project
  tidelock mcp --allow-apply")]
    Mcp(McpArguments),
    /// Connect an agent or editor to Tidelock, in its own configuration
    #[command(after_help = "\
Without a client, this lists all clients: which are on this machine, and which are connected. With
a client, it shows the configuration entry and where it belongs. With --write, it adds the entry
there: everything else in the file stays as it is, including comments, and a backup of the old
file is kept next to it. A different entry with the same name is not replaced (exit code 4) unless
you pass --replace.

Examples:
  tidelock join
  tidelock join claude
  tidelock join claude --write
  tidelock join codex --write --allow-apply
  tidelock join vscode --write --scope project
  tidelock join zed --acp --write
  tidelock join cursor --remove")]
    Join(JoinArguments),
    /// List, show or remove records in the log that can't be read
    #[command(
        subcommand,
        after_help = "\
If the record of a plan, session, job or anything else is damaged, it is quarantined: it stays in
the log as it is, lists omit it, and everything else works. `tidelock doctor` reports quarantined
records; `tidelock doctor --deep` reads the whole log.

Examples:
  tidelock quarantine list
  tidelock quarantine show plan/plan_01KXYZ
  tidelock quarantine drop plan/plan_01KXYZ"
    )]
    Quarantine(QuarantineCommand),
    /// Copy the log to a new file, while the daemon keeps running
    #[command(after_help = "\
The copy is itself a log. To restore it, replace `log.sqlite3` with it while no daemon is running.
An existing file is never overwritten. If the log is in PostgreSQL, back it up with the server's
own tools.

Examples:
  tidelock backup ~/tidelock-backup.sqlite3
  tidelock backup /mnt/disk/tidelock-$(date +%F).sqlite3 --json")]
    Backup(BackupArguments),
    /// Export everything in the log to an archive that doesn't depend on any database
    #[command(after_help = "\
With `-`, the archive goes to standard output, and messages go to standard error. An existing file
is never overwritten.

Examples:
  tidelock export tidelock.archive
  tidelock export - | ssh other-machine tidelock import -")]
    Export(ArchiveArguments),
    /// Import an archive into an empty log, while no daemon is running
    #[command(after_help = "\
The archive is imported completely or not at all. This home continues where the exported one left
off: breakers that were forced are forced again. With `-`, the archive is read from standard
input.

Examples:
  tidelock import tidelock.archive
  TIDELOCK_DATABASE_URL=postgres://me@db/work tidelock import tidelock.archive")]
    Import(ArchiveArguments),
    /// Resolve the identity of a home that was copied or moved, when the log is shared
    #[command(
        subcommand,
        after_help = "\
Use this when `tidelock up` reports `home_copied`.

Examples:
  tidelock home renew       if the original home is still in use
  tidelock home adopt       if the original home is gone"
    )]
    Home(HomeCommand),
    /// Run the daemon in the foreground
    #[command(after_help = "\
Ctrl-C or SIGTERM stops it after in-flight requests have finished. Log messages go to standard
error.

Examples:
  tidelock serve
  tidelock serve --listen 127.0.0.1:8800
  TIDELOCK_LOG=debug tidelock serve")]
    Serve(ServeArguments),
    /// Show every setting, its value and where the value comes from
    #[command(after_help = "\
This works without a daemon: it shows the settings that a daemon started from here would use. If a
running daemon uses different ones, they are shown too. Secrets are never shown.

Examples:
  tidelock config
  tidelock config --json
  tidelock config check")]
    Config(SettingsArguments),
    /// Print a shell completion script
    #[command(after_help = "\
Examples:
  tidelock completions bash > ~/.local/share/bash-completion/completions/tidelock
  tidelock completions zsh > ~/.zfunc/_tidelock
  tidelock completions fish > ~/.config/fish/completions/tidelock.fish")]
    Completions(CompletionsArguments),
    /// Print the manual page, or write one for every command
    #[command(after_help = "\
Examples:
  tidelock man | man -l -
  tidelock man --out ~/.local/share/man/man1")]
    Man(ManArguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_format_is_found_in_arguments_that_are_wrong() {
        for (line, expected) in [
            ("tidelock nonsense --json", Format::Json),
            ("tidelock --json nonsense", Format::Json),
            ("tidelock nonsense", Format::Human),
            ("tidelock nonsense -- --json", Format::Human),
        ] {
            assert_eq!(
                requested_format(line.split(' ').map(OsString::from)),
                expected,
                "{line}"
            );
        }
    }
}
