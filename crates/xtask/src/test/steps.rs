//! What each step runs.
//!
//! All steps but the models share flags and features, so that nothing is built twice because of an accidental
//! difference. `RUSTFLAGS` is only set for the models, which have their own target directory: changing it in a shared
//! one would rebuild everything, including this program.

use std::io::IsTerminal as _;
use std::process::Command;

use anyhow::{Result, bail};

use super::counts::{Counts, Runner};
use super::summary::StepOutcome;
use super::{Step, Tally, acp_peer, machines, postgres, servers, skips, tools};
use crate::arguments::Selection;
use crate::child::{self, Ended};
use crate::tidy;
use crate::workspace::{Workspace, cargo};

/// Runs one step. An error is a failed step.
pub(super) fn run(
    step: Step,
    workspace: &Workspace,
    selection: Selection,
    tally: &mut Tally,
) -> Result<StepOutcome> {
    let in_root = || {
        let mut command = cargo();
        command.current_dir(&workspace.root);
        command
    };
    match step {
        Step::Tools => {
            let is_wanted =
                |step: Step| selection == Selection::Only(Step::Tools) || step.is_wanted(selection);
            tools::install(is_wanted)?;
            if is_wanted(Step::Tests) {
                servers::install(&workspace.target_directory);
                acp_peer::build(workspace);
            }
        }
        Step::Format => child::run(in_root().args(["fmt", "--all", "--check"]))?,
        Step::Clippy => child::run(in_root().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ]))?,
        Step::Tidy => tidy::run(workspace)?,
        Step::Deny => {
            if !tools::is_present("cargo-deny") {
                tally
                    .skips
                    .step(step, "cargo-deny is not here and could not be installed");
                return Ok(StepOutcome::Skipped);
            }
            child::run(in_root().args(["deny", "--workspace", "check", "bans", "licenses", "sources"]))?;
        }
        Step::Tests => {
            // Keep it alive until the tests have run.
            let server = postgres::for_tests();
            let in_root = || {
                let mut command = in_root();
                server.iter().for_each(|server| server.tell(&mut command));
                servers::tell(&workspace.target_directory, &mut command);
                command
            };
            if tools::is_present("cargo-nextest") {
                let mut all = in_root();
                all.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
                let mut documentation = in_root();
                documentation.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
                run_tests([(all, Runner::Nextest), (documentation, Runner::Libtest)], tally)?;
            } else {
                let mut all = in_root();
                all.args(["test", "--workspace", "--no-fail-fast"]);
                run_tests([(all, Runner::Libtest)], tally)?;
            }
        }
        Step::Models => {
            let mut models = in_root();
            models
                .args(["test", "-p", "kernel", "--test", "models", "--no-fail-fast"])
                .arg("--target-dir")
                .arg(workspace.target_directory.join("model"))
                .env("RUSTFLAGS", "--cfg tidelock_model");
            run_tests([(models, Runner::Libtest)], tally)?;
        }
        Step::Machines => {
            let commands = machines::commands(in_root)?;
            run_tests(
                commands.into_iter().map(|command| (command, Runner::Libtest)),
                tally,
            )?;
        }
    }
    Ok(StepOutcome::Passed)
}

/// Runs all test commands one after another, and adds up the counts of their runners.
fn run_tests(commands: impl IntoIterator<Item = (Command, Runner)>, tally: &mut Tally) -> Result<()> {
    let mut counts = Counts::default();
    let mut ended = Ended::Well;
    for (mut command, runner) in commands {
        command.env(skips::REPORT_VARIABLE, tally.skips.path());
        if std::io::stderr().is_terminal() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        if child::run_reading(&mut command, |line| counts += Counts::read(runner, line))? == Ended::Badly {
            ended = Ended::Badly;
        }
    }
    tally.counts += counts;
    if ended == Ended::Badly {
        bail!("a test failed or did not compile; see above");
    }
    // If the runner reported nothing, it ran nothing, and that means that the setup is broken.
    if counts == Counts::default() {
        bail!("no test ran, or the runner's summary could not be read");
    }
    Ok(())
}
