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
mod place;
mod plan;
mod plan_change;
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
    BreakerCommand, ForcedState, HistoryArguments, Outcome, Reach, RecordArguments, ResetArguments,
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
    CallsArguments, CodeActionsArguments, ConfigArguments, Declaration, FileArguments, LspCommand,
    PlaceArguments, QueryOptions, ReferencesArguments, RenameArguments, RequestArguments, RestartArguments,
    StartArguments, StopArguments, TrustArguments, Waiting, WorkspaceSymbolsArguments,
};
pub(crate) use mcp::{McpArguments, WhoApplies};
pub(crate) use place::Place;
pub(crate) use plan::{
    ApplyArguments, CatArguments, CheckArguments, DiffArguments, DiffForm, DiscardArguments, ForgetArguments,
    LogArguments, NewArguments, OpenArguments, PlanCommand, PlanExecArguments, PlanGcArguments,
    PlanListArguments, UndoArguments,
};
pub(crate) use plan_change::{Operation, PlanRecordArguments};
pub(crate) use prompt::{IfDone, PromptArguments, TalkArguments};
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
    0  it worked
    1  it failed
    2  the arguments are wrong
    3  the daemon cannot be reached or started
    4  refused: what you named is not there, or has changed since you looked
  130  interrupted
`tidelock exec`, `tidelock plan exec`, `tidelock job run --wait` and `tidelock job wait` end with the
exit code of the command. `tidelock run` and `tidelock session send` end with 0 if the turn is done,
with 1 if it failed or was interrupted, and with 130 if it was cancelled.";

const EXAMPLES: &str = "\
Examples:
  tidelock run 'mend the test'  ask an agent; it works in a sandbox, and ends with a diff to review
  tidelock up                   start the daemon if needed, and print a link to its page
  tidelock status --json        one JSON object for a script
  tidelock lsp hover FILE:12:8  what the language server knows about a place
  tidelock job run -- make      run a command that goes on when you leave
  tidelock exec -- make fix     run a command in a sandbox, and end with a diff to review
  tidelock plan apply @         bring what it changed into the workspace
  tidelock context 'QUESTION'   the pieces of this code base that belong to it
  tidelock breaker list         which circuit breakers are open
  tidelock down                 stop the daemon";

/// What stands below the help of the whole program.
fn closing_words() -> String {
    format!("{EXIT_CODES}\n\n{}\n{EXAMPLES}", environment::help())
}

/// One local daemon on which many coding agents share a machine without racing each other.
#[derive(Debug, Parser)]
#[command(name = "tidelock", version, after_help = closing_words(), max_term_width = 100)]
pub(crate) struct Cli {
    /// Print exactly one JSON object on standard output, for errors too
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
    /// Start the daemon in the background if there is none, and print a link to its page
    #[command(after_help = "\
The link opens the page in a browser and works once. Run `up` again for another one.

Examples:
  tidelock up
  TIDELOCK_LISTEN=127.0.0.1:8800 tidelock up
  tidelock up --json")]
    Up,
    /// Stop the daemon and wait until it has gone
    #[command(after_help = "\
The daemon finishes the requests in flight first. With no daemon there is nothing to do, and that is fine.

Examples:
  tidelock down
  tidelock down && tidelock up
  tidelock down --timeout 2m")]
    Down(DownArguments),
    /// Stop the daemon and remove everything that it keeps: plans, sessions, jobs and their history
    #[command(after_help = "\
Your workspaces are not touched. Sandboxes can hold directories that `rm -r` cannot remove without root; this can.
Without --yes nothing is removed, and the exit code is 4.

Examples:
  tidelock export before.archive && tidelock purge --yes")]
    Purge(PurgeArguments),
    /// Show whether the daemon runs, and what it is doing
    #[command(after_help = "\
This never starts a daemon. When none is running the exit code is 3 and the state is `stopped`.

Examples:
  tidelock status
  tidelock status --json")]
    Status,
    /// Check what a daemon needs on this machine, and say what to do where something is wrong
    #[command(after_help = "\
This works with and without a daemon, and changes nothing. The exit code is 1 when a check has failed.

Examples:
  tidelock doctor
  tidelock doctor --deep        read the whole log as well, which can take a while
  tidelock doctor --json")]
    Doctor(DoctorArguments),
    /// List the processes that the daemon owns
    #[command(after_help = "\
Each row is a command that the daemon has started, with the memory of everything below it.
They end with the daemon, however it ends.

Examples:
  tidelock ps
  tidelock ps --json")]
    Ps,
    /// Show what waits for you: questions of agents, plans to review, and what is broken
    #[command(after_help = "\
Most urgent first, each with the command that begins the work on it. It is what the page shows as
`What needs you`.

Examples:
  tidelock needs
  tidelock needs --json")]
    Needs,
    /// Show what happened lately: to sessions, plans, jobs, servers, breakers and the daemon
    #[command(after_help = "\
Newest first, whoever did it. The same in a row is told once. The history of one thing is shown by
`tidelock plan log`, `tidelock job show` and `tidelock session show`; the page has this list live.

Examples:
  tidelock activity
  tidelock activity --of plans
  tidelock activity --limit 200 --json")]
    Activity(ActivityArguments),
    /// Say whose a process is, and why it runs
    #[command(after_help = "\
The process may be one that the daemon has started, its keeper, or anything started in turn.
The exit code is 4 when it is none of these.

Examples:
  tidelock why 4242
  tidelock why $(pgrep -n rust-analyzer) --json")]
    Why(WhyArguments),
    /// Look at circuit breakers, and change them by hand
    #[command(
        subcommand,
        after_help = "\
A breaker opens after some failures in a row, and lets one call through after a cooldown.

Examples:
  tidelock breaker list
  tidelock breaker reset lsp/rust-analyzer
  tidelock breaker record model/api failure --retry-after 30s"
    )]
    Breaker(BreakerCommand),
    /// Ask language servers about code, and look after them
    #[command(
        subcommand,
        after_help = "\
One warm server per workspace answers everybody. A query starts it if need be, and waits while it
restarts. Lines and columns count from 1, columns in characters. Paths in answers are relative to
the workspace.

Examples:
  tidelock lsp references src/main.rs:12:8
  tidelock lsp diagnostics app.py
  tidelock lsp rename src/main.rs:12:8 new_name
  tidelock lsp list"
    )]
    Lsp(Box<LspCommand>),
    /// Ask an agent to do something in a sandbox, watch it, and end with a diff to review
    #[command(
        override_usage = "tidelock run [OPTIONS] <PROMPT>",
        after_help = "\
A session is opened for this directory, and the agent works in the sandbox of a plan. What it says is
on standard output, everything else on standard error. What it changed is shown at the end, and
reaches the workspace with `tidelock plan apply` only, or with --apply. With no model configured the
built-in rehearsal agent answers. The turn goes on if this process ends: `tidelock session attach`
finds it again. The first Ctrl-C cancels the turn and keeps what it has done (exit code 130), the
second one leaves it to itself. The exit code is 0 if the turn is done, 1 if it failed or was
interrupted; with --apply it is 1 too if the changes were not applied.

Examples:
  tidelock run 'mend the failing test'
  tidelock run --agent model --model gpt-5 --apply 'add a changelog entry'
  tidelock run --session @ 'and now the documentation'
  tidelock run --script rehearsal.yaml --json 'try it out'
  git diff | tidelock run -"
    )]
    Run(Box<TalkArguments>),
    /// Come back to conversations with agents: watch, prompt, stop, answer, fork, export
    #[command(
        subcommand,
        after_help = "\
A session is a conversation with an agent; each prompt and what followed is a turn. At most one turn
runs at a time, others wait. A session is named by its id, by four or more letters of its beginning or
its end that no other session has, or by `@` for the newest session of this directory.

Examples:
  tidelock session list
  tidelock session attach
  tidelock session send @ 'and now the tests'
  tidelock session answer @ allow
  tidelock session cancel @"
    )]
    Session(Box<SessionCommand>),
    /// See which agents can be asked
    #[command(
        subcommand,
        after_help = "\
Examples:
  tidelock agent list"
    )]
    Agent(AgentCommand),
    /// Be an agent for an editor: speak the Agent Client Protocol on standard input and output
    #[command(after_help = "\
An editor such as Zed starts this. Whoever answers works in a sandbox; `/diff`, `/apply` and `/undo` in the
editor act on what it changed. Turns go on if the editor ends, and are there when it comes back. Standard
output has the protocol and nothing else.

Examples:
  tidelock acp
  tidelock acp --agent model --model gpt-5")]
    Acp(AcpArguments),
    /// Run commands that outlive this one, and look after them
    #[command(
        subcommand,
        after_help = "\
A job is on disk before you are told of it. It goes on when you leave, and ends with all of its
processes when it is cancelled. A job is named by its id, by a part of it that no other job has, or
by `last`.

Examples:
  tidelock job run -- cargo test
  tidelock job run --wait --timeout 10m -- cargo test
  tidelock job list
  tidelock job logs last -f
  tidelock job cancel last"
    )]
    Job(JobCommand),
    /// Run any command in a sandbox of its own, and end with a diff to review
    #[command(
        override_usage = "tidelock exec [OPTIONS] -- <COMMAND>...",
        after_help = "\
A plan is opened for the workspace of this directory, and the command runs in its sandbox as a job.
What it changed is shown, and reaches the workspace with `tidelock plan apply` only, or with --apply.
The exit code is the command's own; with --apply it is 1 if the command succeeded and the changes
were not applied. The first Ctrl-C cancels the command and keeps what it has changed in the plan
(exit code 130). Press Ctrl-C again to detach: the daemon seals or applies the plan when the command
ends, as it does with --detach and when the terminal is closed. The command reads standard input if
that is not a terminal.

Examples:
  tidelock exec -- ./codemod.sh
  tidelock exec --title 'mend the parser' --check 'cargo test' -- claude -p 'mend the parser'
  tidelock exec --apply --check 'cargo test' -- cargo fmt
  tidelock exec --plan @ -- sh -c 'echo more >> notes.txt'"
    )]
    Exec(Box<ExecArguments>),
    /// Review isolated pieces of work, and apply them whole or not at all
    #[command(
        subcommand,
        after_help = "\
A plan has a sandbox that begins with the workspace as it was. What is done in it is recorded, and
reaches the workspace when the plan is applied: all of it or nothing. A plan is named by its id, by
four or more letters of its beginning or its end that no other plan has, or by `@` for the newest
plan of the workspace that you are in.

Examples:
  tidelock plan new --title 'mend the parser'
  tidelock plan exec @ -- cargo fmt
  tidelock plan diff @
  tidelock plan apply @
  tidelock plan undo @"
    )]
    Plan(PlanCommand),
    /// Look at the directories that plans were opened for
    #[command(
        subcommand,
        after_help = "\
A git repository is one workspace. Another directory is one by itself. It is registered when the
first plan is opened for it.

Examples:
  tidelock workspace list
  tidelock workspace checks . 'cargo test'"
    )]
    Workspace(WorkspaceCommand),
    /// Find the pieces of a code base that belong to a question, within a number of tokens
    #[command(
        override_usage = "tidelock context [OPTIONS] [QUERY]",
        after_help = "\
Several strategies look at once: words, definitions, the map of the repository, recent changes, language
servers. What they find is put together, and as much of it as fits is printed, just as a model gets it.
How many pieces and tokens that is goes to standard error, and so does every strategy that failed or was
too slow. If nothing matches, nothing is printed and the exit code is 1, as with grep. With a file in
focus the query may be left out. A strategy that keeps failing is left alone for
a while: `tidelock breaker list` shows it. The first question about a workspace has an index made, which
later ones are faster with.

Examples:
  tidelock context 'where is the retry policy decided'
  tidelock context --focus src/retry.rs --budget 4000 'back-off and jitter'
  tidelock context --explain parse_config
  tidelock context --only keyword,symbols --deadline 500ms parse_config
  tidelock context --plan @ 'back-off and jitter'
  git log -1 --format=%B | tidelock context - > context.md"
    )]
    Context(Box<ContextArguments>),
    /// Look after the indexes that questions are answered with
    #[command(
        subcommand,
        after_help = "\
Each workspace that was asked about has an index. It is a cache: it keeps up with the files by itself,
and what is removed comes back with the next question.

Examples:
  tidelock index list
  tidelock index rebuild
  tidelock index rm ~/old-project"
    )]
    Index(IndexCommand),
    /// Let an agent join in over the Model Context Protocol, on standard input and output
    #[command(after_help = "\
An agent that speaks the protocol starts this itself; it is what its configuration names. The daemon is
started if there is none, and may be restarted meanwhile: the agent goes on with the same plan. Before a
plan is applied or taken back the user is asked, through the agent if it can ask; with --allow-apply this
one need not.

Examples:
  tidelock mcp
  tidelock mcp --directory ~/project
  tidelock mcp --allow-apply")]
    Mcp(McpArguments),
    /// Tell an agent or an editor about Tidelock, in its own configuration
    #[command(after_help = "\
Without a client, all of them are listed: which are on this machine, and which are joined. With one,
the piece of configuration is shown and where it belongs. With --write it is put there: everything
else in the file stays as it is, comments too, and what was there before is kept beside it. A
different entry of that name is left alone (exit code 4) unless --replace is given.

Examples:
  tidelock join
  tidelock join claude
  tidelock join claude --write
  tidelock join codex --write --allow-apply
  tidelock join vscode --write --scope project
  tidelock join zed --acp --write
  tidelock join cursor --remove")]
    Join(JoinArguments),
    /// List, show or remove what is in the log and cannot be read
    #[command(
        subcommand,
        after_help = "\
A plan, session, job or other thing whose record is damaged is quarantined: it stays in the log as it is, lists leave it
out, and everything else works. `tidelock doctor` says when there is one; `tidelock doctor --deep` reads the whole log.

Examples:
  tidelock quarantine list
  tidelock quarantine show plan/plan_01KXYZ
  tidelock quarantine drop plan/plan_01KXYZ"
    )]
    Quarantine(QuarantineCommand),
    /// Copy the log to a new file, while the daemon goes on
    #[command(after_help = "\
The copy is a log: put it in the place of `log.sqlite3` while no daemon runs, and it is as it was. A file that is
there already is never replaced. A log that is kept in PostgreSQL is backed up with the tools of the server.

Examples:
  tidelock backup ~/tidelock-backup.sqlite3
  tidelock backup /mnt/disk/tidelock-$(date +%F).sqlite3 --json")]
    Backup(BackupArguments),
    /// Write everything that is in the log to an archive that does not depend on any database
    #[command(after_help = "\
With `-` the archive goes to standard output, and what there is to say to standard error. A file that is there
already is never replaced.

Examples:
  tidelock export tidelock.archive
  tidelock export - | ssh other-machine tidelock import -")]
    Export(ArchiveArguments),
    /// Fill an empty log from an archive, while no daemon runs
    #[command(after_help = "\
The whole archive is taken in, or nothing of it. The home goes on where the exported one was: breakers that were
held by hand are held again. With `-` the archive comes from standard input.

Examples:
  tidelock import tidelock.archive
  TIDELOCK_DATABASE_URL=postgres://me@db/work tidelock import tidelock.archive")]
    Import(ArchiveArguments),
    /// Settle which home this is, when it was copied or moved and the log is shared
    #[command(subcommand)]
    Home(HomeCommand),
    /// Run the daemon in the foreground
    #[command(after_help = "\
Ctrl-C or SIGTERM stops it after the requests in flight. The log goes to standard error.

Examples:
  tidelock serve
  tidelock serve --listen 127.0.0.1:8800
  TIDELOCK_LOG=debug tidelock serve")]
    Serve(ServeArguments),
    /// Show every setting with its value and where that comes from
    #[command(after_help = "\
This works without a daemon: it shows what one would use that is started from here. If one runs and
has something else, that is said too. Secrets are never shown.

Examples:
  tidelock config
  tidelock config --json
  tidelock config check")]
    Config(SettingsArguments),
    /// Print a script with which a shell completes the arguments of this program
    #[command(after_help = "\
Examples:
  tidelock completions bash > ~/.local/share/bash-completion/completions/tidelock
  tidelock completions zsh > ~/.zfunc/_tidelock
  tidelock completions fish > ~/.config/fish/completions/tidelock.fish")]
    Completions(CompletionsArguments),
    /// Print the manual page of this program, or write one for every command
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
