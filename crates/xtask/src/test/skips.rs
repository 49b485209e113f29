//! The tests and steps that could not run, and why.
//!
//! A test that lacks a tool appends one line, `SKIPPED: reason`, to the file named by `TIDELOCK_SKIP_REPORT` and
//! passes. Tests run in many processes, and appending a short line is atomic on every file system we use.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::Step;

/// Tells the tests where to report a skip.
pub(super) const REPORT_VARIABLE: &str = "TIDELOCK_SKIP_REPORT";

#[derive(Debug)]
pub(super) struct Skips {
    report: PathBuf,
    steps: Vec<String>,
}

/// The report at the end of the run: one reason per test or step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) tests: Vec<String>,
    pub(super) steps: Vec<String>,
}

impl Skipped {
    pub(super) fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.steps.is_empty()
    }
}

impl Skips {
    /// Starts an empty report below the target directory. Parallel runs have separate reports.
    pub(super) fn open(target_directory: &Path) -> Result<Self> {
        fs::create_dir_all(target_directory)?;
        let report = target_directory.join(format!("skips-{}.txt", std::process::id()));
        fs::write(&report, "").with_context(|| format!("cannot write {}", report.display()))?;
        Ok(Self {
            report,
            steps: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.report
    }

    /// Records that a whole step could not run.
    pub(super) fn step(&mut self, step: Step, reason: &str) {
        println!("SKIPPED: {reason}");
        self.steps.push(format!("step {}: {reason}", step.name()));
    }

    pub(super) fn finish(self) -> Result<Skipped> {
        let text = match fs::read_to_string(&self.report) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context("cannot read the skip report"),
        };
        fs::remove_file(&self.report).ok();
        Ok(Skipped {
            tests: reasons(&text),
            steps: self.steps,
        })
    }
}

fn reasons(report: &str) -> Vec<String> {
    let lines = report.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| line.strip_prefix("SKIPPED:").unwrap_or(line).trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_keeps_a_reason_per_line_and_leaves_no_file() {
        let directory = std::env::temp_dir().join(format!("tidelock-skips-{}", std::process::id()));
        let mut skips = Skips::open(&directory).unwrap();
        let path = skips.path().to_owned();
        fs::write(
            &path,
            "SKIPPED: no chromedriver\n\nSKIPPED: no chromedriver\nbare reason\n",
        )
        .unwrap();
        skips.step(Step::Deny, "no cargo-deny");
        let expected = Skipped {
            tests: ["no chromedriver", "no chromedriver", "bare reason"]
                .map(str::to_owned)
                .into(),
            steps: vec!["step deny: no cargo-deny".to_owned()],
        };
        assert_eq!(skips.finish().unwrap(), expected);
        assert!(!path.exists());
        fs::remove_dir(directory).unwrap();
    }
}
