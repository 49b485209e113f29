//! Runs a job's command as a child of this daemon.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{BlobError, BlobId, Log};
use jobs::{AttemptOutcome, AttemptVerdict, Work};
use kernel::{Clock, Scope};
use plans::{Attribution, Entrance};
use process::{Confinement, Enforcement, Processes, Spec, StandardError, StopPlan, landlock_support};

use super::super::environments::Environments;
use super::attempt::see_through;
use super::feed::{Content, Fed};
use super::outcome::{never_ran, of_end, of_spawn_error, with_causes};
use super::payload::{CommandLine, CommandPayload, PlanPlace};
use super::sandbox::{Patience, SandboxAccess, directory};
use super::streams::Sink;
use crate::jobs::inputs::Inputs;

/// The value of `TERM` if the environment doesn't set it. Nearly all terminals use this name.
const TERMINAL_NAME: &str = "xterm-256color";
/// The message if confinement was requested and isn't available.
const NOT_CONFINED: &str =
    "the command was not run: it may write only below some directories, and this kernel cannot see to that";

/// The error if the environment of a command is missing. Without it, this would be a different command.
const NO_ENVIRONMENT: &str =
    "the command was not run: the environment that it was submitted with is gone; submit it again";

#[derive(Debug)]
pub(crate) struct CommandHandler {
    processes: Processes,
    /// Its blobs hold the input of commands.
    log: Log,
    /// The environment of commands that don't bring their own.
    environment: BTreeMap<OsString, OsString>,
    environments: Environments,
    access: SandboxAccess,
    /// Where clients connect to feed commands.
    inputs: Inputs,
    clock: Arc<dyn Clock>,
}

/// The tool that changes are attributed to in a changeset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tool {
    /// A command that a user or agent runs.
    Shell,
    /// A check of the plan.
    Check,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Check => "check",
        }
    }
}

/// An attempt, without its output.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) job: String,
    pub(super) reason: String,
    pub(super) submitted_by: String,
    pub(super) tool: Tool,
    pub(super) attempt: u32,
    pub(super) payload: Arc<[u8]>,
    pub(super) stdin: Option<BlobId>,
    pub(super) scope: Scope,
}

impl CommandHandler {
    pub(crate) fn new(
        processes: Processes,
        log: Log,
        (environment, environments): (BTreeMap<OsString, OsString>, Environments),
        (access, inputs): (SandboxAccess, Inputs),
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            processes,
            log,
            environment,
            environments,
            access,
            inputs,
            clock,
        }
    }

    /// Runs a job with a command as its payload. See [`Handler::run`](jobs::Handler::run).
    ///
    /// *Cancel safety*: it must not be dropped before it has returned.
    pub(crate) async fn run(&self, work: Work, tool: Tool) -> AttemptOutcome {
        let order = Order {
            job: work.job.to_string(),
            reason: work.title,
            submitted_by: work.submitted_by,
            tool,
            attempt: work.attempt,
            payload: work.payload,
            stdin: work.blobs.first().copied(),
            scope: work.scope,
        };
        self.attempt(order, &work.output).await
    }

    /// Runs a command to its end.
    pub(super) async fn attempt(&self, order: Order, sink: &impl Sink) -> AttemptOutcome {
        let mut payload = match CommandPayload::decode(&order.payload) {
            Ok(payload) => payload,
            Err(error) => {
                return never_ran(
                    AttemptVerdict::FailedPermanently,
                    format!("the command cannot be read: {error}"),
                );
            }
        };
        if payload.environment_is_kept {
            match self.environments.read(&order.job).await {
                Ok(Some(environment)) => payload.environment = environment,
                Ok(None) => return never_ran(AttemptVerdict::FailedPermanently, NO_ENVIRONMENT),
                Err(error) => {
                    let text = format!("its environment could not be read: {error}");
                    return never_ran(AttemptVerdict::Failed, text);
                }
            }
        }
        let content = match self.content(order.stdin).await {
            Ok(_) if payload.attach_stdin => match order.job.parse() {
                Ok(job) => Content::Client(self.inputs.command(job)),
                Err(_) => Content::Nothing,
            },
            Ok(content) => content,
            Err(outcome) => return outcome,
        };
        if let Some(cause) = order.scope.cause() {
            return never_ran(AttemptVerdict::Stopped, format!("stopped before it ran: {cause}"));
        }
        match payload.plan.clone() {
            None => self.run_here(payload, content, &order, sink).await,
            Some(place) => self.run_in_plan(payload, &place, content, &order, sink).await,
        }
    }

    /// Runs a command outside any sandbox.
    async fn run_here(
        &self,
        payload: CommandPayload,
        content: Content,
        order: &Order,
        sink: &impl Sink,
    ) -> AttemptOutcome {
        let is_confined = payload.write_below.is_some();
        if is_confined && landlock_support() == Enforcement::None {
            return never_ran(AttemptVerdict::FailedPermanently, NOT_CONFINED);
        }
        // If a cancelled start returns, nothing of it is running. It has its own timeout as well.
        let spec = self.spec(payload, order);
        let child = match self.processes.spawn_while(&order.scope, spec).await {
            Ok(child) => child,
            Err(error) => return of_spawn_error(&error),
        };
        let confinement = is_confined.then(|| child.confinement());
        if confinement == Some(Enforcement::None) {
            child.stop(StopPlan::NOW).await;
            return never_ran(AttemptVerdict::FailedPermanently, NOT_CONFINED);
        }
        let (why, ended, fed) = see_through(&child, content, sink, &order.scope, &self.clock).await;
        with_input(of_end(why, &ended, confinement), fed)
    }

    /// Runs a command in the sandbox of a plan. However the command ends, this leaves the sandbox properly. If the
    /// kernel can't confine the command, it runs anyway, and the result says so.
    async fn run_in_plan(
        &self,
        payload: CommandPayload,
        place: &PlanPlace,
        content: Content,
        order: &Order,
        sink: &impl Sink,
    ) -> AttemptOutcome {
        let stay = Attribution {
            actor: order.submitted_by.as_str().into(),
            tool: order.tool.name().to_owned(),
            reason: order.reason.clone(),
            job: Some(order.job.clone()),
        };
        let patience = Patience {
            clock: &self.clock,
            scope: &order.scope,
        };
        let stay = match self.access.enter(place, stay, patience).await {
            Ok(stay) => stay,
            Err(outcome) => return outcome,
        };
        let outcome = match self.spec_inside(payload, place, &stay.entrance, order).await {
            Ok(spec) => match self.processes.spawn_while(&order.scope, spec).await {
                Ok(child) => {
                    let (why, ended, fed) =
                        see_through(&child, content, sink, &order.scope, &self.clock).await;
                    with_input(of_end(why, &ended, Some(child.confinement())), fed)
                }
                Err(error) => of_spawn_error(&error),
            },
            Err(outcome) => outcome,
        };
        self.access.leave(&stay, outcome, patience).await
    }

    /// The input of the command.
    async fn content(&self, stdin: Option<BlobId>) -> Result<Content, AttemptOutcome> {
        let Some(id) = stdin else {
            return Ok(Content::Nothing);
        };
        let content = self.log.read_blob(id).await;
        content
            .map(|content| Content::Blob(Box::new(content)))
            .map_err(|error| {
                let verdict = match error {
                    BlobError::Missing(_) | BlobError::Damaged(_) => AttemptVerdict::FailedPermanently,
                    _ => AttemptVerdict::Failed,
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
        // The inherited value is wrong in the new directory. A program without `PWD` asks the system.
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
            owner: format!("job/{}", order.job),
            reason: order.reason.clone(),
            generation: u64::from(order.attempt),
            limits: payload.limits,
            confinement: match payload.write_below {
                None => Confinement::None,
                Some(paths) => Confinement::WriteBelow(paths.into_iter().map(PathBuf::from).collect()),
            },
            // On a terminal, both streams appear in one order, which only a single stream can preserve.
            stderr: match payload.terminal {
                Some(_) => StandardError::WithOutput,
                None => StandardError::HandedOut,
            },
            terminal: payload.terminal,
            view: None,
        }
    }

    /// The same command, as it runs in a sandbox.
    async fn spec_inside(
        &self,
        payload: CommandPayload,
        place: &PlanPlace,
        entrance: &Entrance,
        order: &Order,
    ) -> Result<Spec, AttemptOutcome> {
        let asked_for = payload.write_below.clone();
        let inside = CommandPayload {
            write_below: None,
            ..payload
        };
        let mut spec = self.spec(inside, order);
        spec.directory = directory(entrance, place);
        if let Some(working) = spec.environment.get_mut(&OsString::from("PWD")) {
            *working = spec.directory.clone().into();
        }
        spec.environment.extend(entrance.environment.clone());
        let writable = self
            .access
            .writable(entrance, &spec.environment, asked_for.as_deref());
        spec.confinement = Confinement::WriteBelow(writable.await?);
        spec.view = entrance.view.clone();
        Ok(spec)
    }
}

/// Marks the outcome if the input ended too early: the command may have taken a part for the whole.
fn with_input(mut outcome: AttemptOutcome, fed: Fed) -> AttemptOutcome {
    if fed == Fed::Cut
        && let Some(result) = outcome.result.as_object_mut()
    {
        result.insert("input_cut".to_owned(), serde_json::Value::Bool(true));
    }
    outcome
}
