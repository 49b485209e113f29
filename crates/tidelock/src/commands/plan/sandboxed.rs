//! A command that runs as a job in the sandbox of a plan.

use std::path::{Path, PathBuf};

use protocol::{FinishPlan, JobCommand, JobSubmitted, OpenPlan, Plan, SubmitJob};
use serde_json::Value;

use super::post;
use crate::cli::SandboxedArguments;
use crate::client::{Client, whole_ms};
use crate::commands::job::input::Source;
use crate::commands::job::{JOBS, environment, environment_here, source, stdin, terminal, write_below};
use crate::error::Failure;
use crate::paths;
use crate::printable::printable;
use crate::start::Repeat;

/// A command that is ready to run in a plan that is not known yet.
#[derive(Debug)]
pub(in crate::commands) struct Prepared {
    request: SubmitJob,
    here: PathBuf,
    pub(in crate::commands) notes: Vec<String>,
    /// The input forwarded to it while it runs.
    pub(in crate::commands) source: Option<Source>,
}

#[derive(Debug)]
pub(in crate::commands) struct Submitted {
    /// The job as the daemon sent it.
    pub(in crate::commands) job: Value,
    pub(in crate::commands) id: String,
    pub(in crate::commands) plan: Value,
    pub(in crate::commands) follower: Option<String>,
}

impl Prepared {
    /// Validates the arguments before asking a daemon.
    pub(in crate::commands) fn new(arguments: &SandboxedArguments) -> Result<Prepared, Failure> {
        let here = paths::directory(&paths::current_directory()?)?;
        let (variables, notes) = environment_here();
        let wanted = (arguments.inherited(), arguments.variables.as_slice());
        let environment = environment(wanted, variables, &here)?;
        let (stdin, stdin_base64) = stdin(arguments.stdin.as_deref())?;
        let source = source(arguments.reads());
        let command = JobCommand {
            argv: arguments.command.clone(),
            directory: here.clone(),
            environment: Some(environment),
            stdin,
            stdin_base64,
            attach_stdin: source.is_some(),
            terminal: terminal(arguments.terminal()),
            write_below: write_below(&arguments.write_below)?,
            ..JobCommand::default()
        };
        let time_limit_ms = arguments.timeout.map(whole_ms);
        Ok(Prepared {
            request: SubmitJob {
                command,
                time_limit_ms,
                foreground: true,
                ..SubmitJob::default()
            },
            here: PathBuf::from(here),
            notes,
            source,
        })
    }

    pub(in crate::commands) fn here(&self) -> String {
        self.here.to_string_lossy().into_owned()
    }

    /// Submits it to run in a plan, with what the daemon should do when it has ended.
    pub(in crate::commands) fn submit(
        &self,
        plan: &Plan,
        finish: Option<FinishPlan>,
        client: &Client,
    ) -> Result<Submitted, Failure> {
        let request = SubmitJob {
            finish,
            ..self.in_plan(plan)
        };
        send(&request, client)
    }

    /// Submits it to run in a new plan.
    pub(in crate::commands) fn submit_in_new(
        &self,
        open: OpenPlan,
        finish: FinishPlan,
        client: &Client,
    ) -> Result<Submitted, Failure> {
        let request = SubmitJob {
            finish: Some(finish),
            open: Some(open),
            ..self.request.clone()
        };
        send(&request, client)
    }

    fn in_plan(&self, plan: &Plan) -> SubmitJob {
        let mut request = self.request.clone();
        request.command.directory = inside(&self.here, plan);
        request.command.plan = Some(plan.id.clone());
        request
    }
}

fn send(request: &SubmitJob, client: &Client) -> Result<Submitted, Failure> {
    let mut answer = post(JOBS, request, Repeat::Harmful, client)?;
    let submitted: JobSubmitted = printable(&answer)?;
    Ok(Submitted {
        job: answer["job"].take(),
        plan: answer["plan"].take(),
        id: submitted.job.id,
        follower: submitted.job.followed_by,
    })
}

/// Maps a directory of the workspace to the sandbox; any other directory maps to the sandbox's root.
fn inside(here: &Path, plan: &Plan) -> String {
    let sandbox = Path::new(&plan.sandbox_root);
    let directory = match here.strip_prefix(&plan.root) {
        Ok(rest) if rest.as_os_str().is_empty() => sandbox.to_owned(),
        Ok(rest) => sandbox.join(rest),
        // The user may be in the sandbox itself.
        Err(_) if here.starts_with(sandbox) => here.to_owned(),
        Err(_) => sandbox.to_owned(),
    };
    directory.to_string_lossy().into_owned()
}

pub(in crate::commands) fn as_line(command: &[String]) -> String {
    let word = |word: &String| {
        let is_plain = |character: char| character.is_alphanumeric() || "-_./=:,+@%".contains(character);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::super::samples::plan;
    use super::*;

    #[test]
    fn a_command_starts_where_the_user_is_but_in_the_sandbox() {
        for (root, sandbox, here, expected) in [
            ("/w", "/w", "/w/src", "/w/src"),
            ("/w", "/s/tree", "/w/src/a", "/s/tree/src/a"),
            ("/w", "/s/tree", "/w", "/s/tree"),
            ("/w", "/s/tree", "/wide", "/s/tree"),
            ("/w", "/s/tree", "/elsewhere", "/s/tree"),
            ("/w", "/s/tree", "/s/tree/src", "/s/tree/src"),
        ] {
            let plan = Plan {
                root: root.to_owned(),
                sandbox_root: sandbox.to_owned(),
                ..plan(PlanState::Open)
            };
            assert_eq!(inside(Path::new(here), &plan), expected, "{here} in {root}");
        }
    }

    #[test]
    fn a_command_is_written_as_people_would() {
        for (command, expected) in [
            (&["cargo", "test", "--workspace"][..], "cargo test --workspace"),
            (&["sh", "-c", "echo it's >> a"], r"sh -c 'echo it'\''s >> a'"),
            (&["", "ä"], "'' ä"),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(as_line(&command), expected);
        }
    }
}
