//! Runs the checks of a plan as jobs in its sandbox, and follows them to their end.

use std::io;

use protocol::{CancelJob, CheckPlan, CheckState, JobChannel, JobOutput, Plan};
use serde_json::Value;

use super::labels::{is_passed, short};
use super::show::checks as checks_text;
use super::watch::until;
use super::{path, post};
use crate::cli::{CheckArguments, Stamps, Stay};
use crate::client::{Client, Ended, Interrupted, Interrupts, path_segment};
use crate::commands::ids::PLAN;
use crate::commands::job::{
    Escapes, INTERRUPTED, JOBS, JobMessage, Listener, OutputPrinter, catch_interrupts, follow,
};
use crate::error::{Exit, Failure};
use crate::output::{Format, Palette, Report};
use crate::printable::{Answer, cut, printable};
use crate::start::Repeat;

/// How much of a command is shown above its output.
const COMMAND_CHARACTERS: usize = 200;

pub(super) fn run(arguments: &CheckArguments, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let request = CheckPlan {
        add: arguments.add.clone(),
        all: arguments.all,
    };
    if arguments.stay() == Stay::Submitted {
        let plan: Answer<Plan> = post(&path(&id, "/check"), &request, Repeat::Harmless, client)?;
        return Ok(Report::shown(told(client.palette(), &plan), plan));
    }
    let mut interrupts = catch_interrupts(client, &id)?;
    let checked = run_checks(&id, &request, &mut interrupts, client)?;
    let plan: Plan = printable(&checked.answer)?;
    let exit = match checked.interrupted {
        Interrupted::Yes => Exit::Command(INTERRUPTED),
        Interrupted::No if plan.checks.iter().all(is_passed) => Exit::Success,
        Interrupted::No => Exit::Failed,
    };
    Ok(Report::success(checked.answer, told(client.palette(), &plan)).with_exit(exit))
}

fn told(palette: Palette, plan: &Plan) -> String {
    if plan.checks.is_empty() {
        return format!(
            "The plan has no checks. `tidelock plan check {} --add LINE` adds one.\n",
            short(&plan.id)
        );
    }
    checks_text(palette, &plan.checks)
}

#[derive(Debug)]
pub(super) struct Checked {
    pub(super) answer: Value,
    pub(super) interrupted: Interrupted,
}

/// Runs the pending checks, shows their output on standard error, and waits for the result of each. The first Ctrl-C
/// cancels them, the second one detaches.
pub(super) fn run_checks(
    id: &str,
    request: &CheckPlan,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Checked, Failure> {
    let answer = post(&path(id, "/check"), request, Repeat::Harmless, client)?;
    let plan: Plan = printable(&answer)?;
    let running: Vec<(&str, &str)> = plan
        .checks
        .iter()
        .filter(|check| check.state == CheckState::Running)
        .filter_map(|check| Some((check.command.as_str(), check.job.as_deref()?)))
        .collect();
    let mut listener = Aside::new(client.format());
    let mut interrupted = Interrupted::No;
    for (command, job) in &running {
        listener.note(&format!("check: {}", cut(command, COMMAND_CHARACTERS)));
        match follow(client, job, interrupts, &mut listener)? {
            Ended::Over {
                interrupted: Interrupted::No,
                ..
            } => {}
            Ended::Over {
                interrupted: Interrupted::Yes,
                ..
            } => {
                interrupted = Interrupted::Yes;
                cancel(client, running.iter().map(|(_, job)| *job));
                break;
            }
            Ended::LeftAlone | Ended::NobodyReads => {
                return Ok(Checked {
                    answer,
                    interrupted: Interrupted::Yes,
                });
            }
        }
    }
    drop(listener);
    // The end of a job is reported before the plan knows the result.
    let is_known = |plan: &Plan| plan.checks.iter().all(|check| check.state != CheckState::Running);
    let answer = until(id, is_known, interrupts, client)?;
    Ok(Checked { answer, interrupted })
}

fn cancel<'a>(client: &Client, jobs: impl Iterator<Item = &'a str>) {
    let request = CancelJob {
        why: "Ctrl-C".to_owned(),
    };
    for job in jobs {
        let path = format!("{JOBS}/{}/cancel", path_segment(job));
        // A job that has ended in the meantime can't be cancelled, and need not be.
        drop(client.post::<Value>(&path, Some(&request)));
    }
}

/// Shows a check's output on standard error: standard output is for the result. Programs only get the result.
#[derive(Debug)]
pub(in crate::commands) struct Aside {
    printer: Option<OutputPrinter>,
}

impl Aside {
    pub(in crate::commands) fn new(format: Format) -> Aside {
        let printer = || OutputPrinter::new(Format::Human, Escapes::for_here(), Stamps::None);
        Aside {
            printer: (format == Format::Human).then(printer),
        }
    }
}

impl Listener for Aside {
    fn hear(&mut self, said: &JobMessage) -> io::Result<()> {
        let Some(printer) = &mut self.printer else {
            return Ok(());
        };
        match said {
            JobMessage::Output(output) if output.channel == JobChannel::Stdout => {
                printer.hear(&JobMessage::Output(JobOutput {
                    channel: JobChannel::Stderr,
                    ..output.clone()
                }))
            }
            said => printer.hear(said),
        }
    }

    fn note(&mut self, text: &str) {
        if let Some(printer) = &mut self.printer {
            printer.note(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::super::samples::{busy_plan, plan};
    use super::*;

    #[test]
    fn checks_are_told_one_by_one() {
        insta::assert_snapshot!(told(Palette::Plain, &busy_plan()));
        let without = Plan {
            checks: Vec::new(),
            ..plan(PlanState::Open)
        };
        insta::assert_snapshot!(told(Palette::Plain, &without), @"The plan has no checks. `tidelock plan check 9G5FAV --add LINE` adds one.");
    }
}
