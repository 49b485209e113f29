//! `cargo xtask test`: every check and every test, in one command.
//!
//! The steps run in order and the first failure ends the run; the summary is printed either way. A test that can't
//! run because a tool is missing says so in the skip report (`skips.rs`); on a build machine that is a failure.

mod acp_peer;
mod bounded;
mod counts;
mod machines;
pub(crate) mod postgres;
mod servers;
mod skips;
mod steps;
mod summary;
mod tools;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::arguments::Selection;
use crate::workspace::Workspace;
use counts::Counts;
use skips::Skips;
use summary::{Row, StepOutcome};

/// The steps, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tools,
    Format,
    Clippy,
    Tidy,
    Deny,
    Tests,
    Models,
    /// The long form, which only runs on request; a short form is among the tests.
    Machines,
}

impl Step {
    pub(crate) const ALL: [Self; 8] = [
        Self::Tools,
        Self::Format,
        Self::Clippy,
        Self::Tidy,
        Self::Deny,
        Self::Tests,
        Self::Models,
        Self::Machines,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Format => "fmt",
            Self::Clippy => "clippy",
            Self::Tidy => "tidy",
            Self::Deny => "deny",
            Self::Tests => "test",
            Self::Models => "models",
            Self::Machines => "machines",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Tools => "tools: what the other steps need",
            Self::Format => "fmt: the house format",
            Self::Clippy => "clippy: warnings are errors",
            Self::Tidy => "tidy: layering, forgotten files, forbidden patterns",
            Self::Deny => "deny: licences, bans and sources (advisories: `cargo xtask audit`)",
            Self::Tests => "test: all tests",
            Self::Models => "models: every interleaving of the kernel's primitives",
            Self::Machines => "machines: several of them on one database, while everything fails",
        }
    }

    /// The tools step is always wanted; it only checks what the other wanted steps need.
    fn is_wanted(self, selection: Selection) -> bool {
        match selection {
            Selection::All => self != Self::Machines,
            Selection::Fast => !matches!(self, Self::Deny | Self::Models | Self::Machines),
            Selection::Only(only) => self == Self::Tools || self == only,
        }
    }
}

/// What the steps collect for the end of the run.
#[derive(Debug)]
struct Tally {
    counts: Counts,
    skips: Skips,
}

/// Runs the wanted steps and prints the summary, including what failed.
pub(crate) fn run(workspace: &Workspace, selection: Selection) -> Result<ExitCode> {
    let started = Instant::now();
    let mut tally = Tally {
        counts: Counts::default(),
        skips: Skips::open(&workspace.target_directory)?,
    };
    let mut rows = Vec::new();
    let mut failure = None;
    for step in Step::ALL {
        if !step.is_wanted(selection) {
            rows.push(Row {
                step,
                outcome: StepOutcome::LeftOut,
                took: None,
            });
            continue;
        }
        if failure.is_some() {
            rows.push(Row {
                step,
                outcome: StepOutcome::NotReached,
                took: None,
            });
            continue;
        }
        println!("\n=== {}", step.heading());
        let step_started = Instant::now();
        let outcome = match steps::run(step, workspace, selection, &mut tally) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("error: {error:#}");
                failure = Some(format!("the step `{}` failed: {error:#}", step.name()));
                StepOutcome::Failed
            }
        };
        let took = step_started.elapsed();
        println!(
            "--- {}: {} in {:.1} s",
            step.name(),
            outcome.word(),
            took.as_secs_f64()
        );
        rows.push(Row {
            step,
            outcome,
            took: Some(took),
        });
    }

    let skipped = tally.skips.finish()?;
    if failure.is_none() && !skipped.is_empty() && on_a_build_machine() {
        failure = Some("something was skipped, which CI=true does not accept".to_owned());
    }
    let counts = tally
        .counts
        .with_reported_skips(skipped.tests.len(), skipped.steps.len());
    print!(
        "{}",
        summary::render(&rows, started.elapsed(), &skipped, failure.as_deref())
    );
    // The last line is plain and complete, for readers who only look at that.
    println!("{counts}");
    Ok(if failure.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn on_a_build_machine() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_wants_the_right_steps() {
        let cases = [
            (
                Selection::All,
                vec!["tools", "fmt", "clippy", "tidy", "deny", "test", "models"],
            ),
            (Selection::Fast, vec!["tools", "fmt", "clippy", "tidy", "test"]),
            (Selection::Only(Step::Deny), vec!["tools", "deny"]),
            (Selection::Only(Step::Tools), vec!["tools"]),
            (Selection::Only(Step::Machines), vec!["tools", "machines"]),
        ];
        for (selection, expected) in cases {
            let wanted: Vec<_> = Step::ALL
                .into_iter()
                .filter(|step| step.is_wanted(selection))
                .map(Step::name)
                .collect();
            assert_eq!(wanted, expected, "{selection:?}");
        }
    }
}
