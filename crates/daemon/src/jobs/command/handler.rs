//! A job's command, as a child of this daemon.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use eventlog::{BlobError, BlobId, BlobReader, Log};
use jobs::{Handler, Outcome, Verdict, Work};
use kernel::{Clock, Scope};
use process::{
    Confinement, Enforcement, Processes, Spec, StandardError, StopPlan, TerminalSize, landlock_support,
};

use super::attempt::see_through;
use super::outcome::{never_ran, of_end, of_spawn_error, with_causes};
use super::payload::{CommandLine, CommandPayload};
use super::streams::Sink;

/// What a terminal calls itself where the environment does not say. It is what nearly all of them call themselves.
const TERMINAL_NAME: &str = "xterm-256color";
/// What is said where a confinement was asked for and there is none.
const NOT_CONFINED: &str =
    "the command was not run: it may write only below some directories, and this kernel cannot see to that";

/// Runs commands.
#[derive(Debug)]
pub(crate) struct CommandHandler {
    processes: Processes,
    /// What commands read is in its blobs.
    log: Log,
    /// What a command gets that names no environment.
    environment: BTreeMap<OsString, OsString>,
    clock: Arc<dyn Clock>,
}

/// An attempt, without its output.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) owner: String,
    pub(super) reason: String,
    pub(super) attempt: u32,
    pub(super) payload: Arc<[u8]>,
    pub(super) stdin: Option<BlobId>,
    pub(super) scope: Scope,
}

#[async_trait]
impl Handler for CommandHandler {
    async fn run(&self, work: Work) -> Outcome {
        let order = Order {
            owner: format!("job/{}", work.job),
            reason: work.title,
            attempt: work.attempt,
            payload: work.payload,
            stdin: work.blobs.first().copied(),
            scope: work.scope,
        };
        self.attempt(order, &work.output).await
    }
}

impl CommandHandler {
    pub(crate) fn new(
        processes: Processes,
        log: Log,
        environment: BTreeMap<OsString, OsString>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            processes,
            log,
            environment,
            clock,
        }
    }

    /// Runs a command to its end.
    pub(super) async fn attempt(&self, order: Order, sink: &impl Sink) -> Outcome {
        let payload = match CommandPayload::decode(&order.payload) {
            Ok(payload) => payload,
            Err(error) => {
                return never_ran(Verdict::Hopeless, format!("the command cannot be read: {error}"));
            }
        };
        let is_confined = payload.write_below.is_some();
        if is_confined && landlock_support() == Enforcement::None {
            return never_ran(Verdict::Hopeless, NOT_CONFINED);
        }
        let content = match self.content(order.stdin).await {
            Ok(content) => content,
            Err(outcome) => return outcome,
        };
        if let Some(cause) = order.scope.cause() {
            return never_ran(Verdict::Stopped, format!("stopped before it ran: {cause}"));
        }
        // A start is not given up half-way: when this returns, nothing of it runs. It has a limit of its own.
        let child = match self.processes.spawn(self.spec(payload, &order)).await {
            Ok(child) => child,
            Err(error) => return of_spawn_error(&error),
        };
        let confinement = is_confined.then(|| child.confinement());
        if confinement == Some(Enforcement::None) {
            child.stop(StopPlan::NOW).await;
            return never_ran(Verdict::Hopeless, NOT_CONFINED);
        }
        let (why, ended) = see_through(&child, content, sink, &order.scope, &self.clock).await;
        of_end(why, &ended, confinement)
    }

    /// What the command shall read.
    async fn content(&self, stdin: Option<BlobId>) -> Result<Option<BlobReader>, Outcome> {
        let Some(id) = stdin else {
            return Ok(None);
        };
        self.log.read_blob(id).await.map(Some).map_err(|error| {
            let verdict = match error {
                BlobError::Missing(_) | BlobError::Damaged(_) => Verdict::Hopeless,
                _ => Verdict::Failed,
            };
            let text = with_causes(&error);
            never_ran(verdict, format!("its standard input could not be read: {text}"))
        })
    }

    fn spec(&self, payload: CommandPayload, order: &Order) -> Spec {
        let (program, arguments) = match payload.line {
            CommandLine::Shell(line) => ("sh".to_owned(), vec!["-c".into(), line.into()]),
            CommandLine::Argv(argv) => {
                let mut words = argv.into_iter();
                let program = words.next().unwrap_or_default();
                (program, words.map(OsString::from).collect())
            }
        };
        let mut environment = match payload.environment {
            None => self.environment.clone(),
            Some(named) => named
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        };
        // Where it was is not where it is. One that does not know gets it from the system.
        if let Some(directory) = environment.get_mut(&OsString::from("PWD")) {
            *directory = payload.directory.clone().into();
        }
        if payload.terminal.is_some() {
            environment
                .entry("TERM".into())
                .or_insert_with(|| TERMINAL_NAME.into());
        }
        Spec {
            program: program.into(),
            arguments,
            directory: payload.directory.into(),
            environment,
            owner: order.owner.clone(),
            reason: order.reason.clone(),
            generation: u64::from(order.attempt),
            limits: payload.limits,
            confinement: match payload.write_below {
                None => Confinement::None,
                Some(paths) => Confinement::WriteBelow(paths.into_iter().map(PathBuf::from).collect()),
            },
            // Whoever watches a terminal sees both streams in one order, which only one stream can keep.
            stderr: match payload.terminal {
                Some(_) => StandardError::WithOutput,
                None => StandardError::HandedOut,
            },
            terminal: payload.terminal.map(|size| TerminalSize {
                columns: size.columns,
                rows: size.rows,
            }),
        }
    }
}
