//! The table at the end of a run.

use std::fmt::Write as _;
use std::time::Duration;

use super::Step;
use super::skips::Skipped;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    Passed,
    Failed,
    /// It could not run because a tool is missing.
    Skipped,
    /// The caller did not want it.
    LeftOut,
    /// A step before it failed.
    NotReached,
}

impl StepOutcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "SKIPPED",
            Self::LeftOut => "left out",
            Self::NotReached => "not reached",
        }
    }
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) step: Step,
    pub(super) outcome: StepOutcome,
    pub(super) took: Option<Duration>,
}

/// The table, the skips with their reasons, and why the run failed if it did.
pub(super) fn render(rows: &[Row], took: Duration, skipped: &Skipped, failure: Option<&str>) -> String {
    let mut text = String::from("\n=== summary\n");
    for row in rows {
        let took = row
            .took
            .map(|took| format!("{:9.1} s", took.as_secs_f64()))
            .unwrap_or_default();
        let line = format!("{:<8}{:<12}{took}", row.step.name(), row.outcome.word());
        line_into(&mut text, line.trim_end());
    }
    line_into(
        &mut text,
        &format!("{:<20}{:9.1} s", "in all", took.as_secs_f64()),
    );
    for reason in skipped.steps.iter().chain(&skipped.tests) {
        line_into(&mut text, &format!("SKIPPED: {reason}"));
    }
    if let Some(failure) = failure {
        line_into(&mut text, &format!("FAILED: {failure}"));
    }
    text
}

fn line_into(text: &mut String, line: &str) {
    assert!(
        writeln!(text, "{line}").is_ok(),
        "writing to a string cannot fail"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_shows_each_step_the_skips_and_the_failure() {
        let seconds = |seconds: u64| Some(Duration::from_millis(seconds * 1000 + 340));
        let rows = [
            Row {
                step: Step::Tools,
                outcome: StepOutcome::Passed,
                took: seconds(0),
            },
            Row {
                step: Step::Deny,
                outcome: StepOutcome::LeftOut,
                took: None,
            },
            Row {
                step: Step::Tests,
                outcome: StepOutcome::Failed,
                took: seconds(75),
            },
            Row {
                step: Step::Models,
                outcome: StepOutcome::NotReached,
                took: None,
            },
        ];
        let skipped = Skipped {
            tests: vec!["no browser".to_owned()],
            steps: Vec::new(),
        };
        let expected = "
=== summary
tools   passed            0.3 s
deny    left out
test    FAILED           75.3 s
models  not reached
in all                   80.0 s
SKIPPED: no browser
FAILED: the step `test` failed
";
        let text = render(
            &rows,
            Duration::from_secs(80),
            &skipped,
            Some("the step `test` failed"),
        );
        assert_eq!(text, expected);
    }
}
