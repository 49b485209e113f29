//! The command line of `cargo xtask`.

use std::fmt;

use crate::test::Step;

/// What `cargo xtask --help` prints.
pub(crate) const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test [--only STEP] [--fast]  install what is missing, then run every check and every test
  test --machines              several machines on one database while everything fails, for half an hour
  tidy                         layering, forgotten files, forbidden patterns, file sizes, dead links
  docs                         write the pages below docs/ that are made from the code
  bench [--only TABLE]         measure against the peers and write BENCHMARKS.md; with --only, print those tables
  coverage                     line coverage of the kernel; fails under the bar
  audit                        look for published advisories (fetches the advisory database)

Steps of test: tools, fmt, clippy, tidy, deny, test, models; and machines, if it is asked for
  --only STEP  run that step alone (and install the tools that it needs)
  --fast       leave out deny and models
  --machines   the same as --only machines: three seeds, ten minutes each. TIDELOCK_MACHINE_SECONDS is how long each takes,
               and TIDELOCK_CRASH_SEED plays one seed again";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Test(Selection),
    Tidy,
    Docs,
    /// The tables whose names contain this; all of them without a name.
    Bench(Option<String>),
    Coverage,
    Audit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    Fast,
    Only(Step),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    NoCommand,
    UnknownCommand(String),
    UnknownOption(String),
    UnknownStep(String),
    MissingStep,
    MissingTable,
    FastAndOnly,
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommand => write!(f, "no command given"),
            Self::UnknownCommand(name) => write!(f, "there is no command `{name}`"),
            Self::UnknownOption(option) => write!(f, "unknown option `{option}`"),
            Self::UnknownStep(step) => write!(f, "there is no step `{step}`"),
            Self::MissingStep => write!(f, "`--only` wants the name of a step"),
            Self::MissingTable => write!(f, "`--only` wants the name of a table"),
            Self::FastAndOnly => write!(f, "`--fast` and `--only` exclude each other"),
        }
    }
}

pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Command, UsageError> {
    let name = arguments.next().ok_or(UsageError::NoCommand)?;
    let command = match name.as_str() {
        "-h" | "--help" | "help" => Command::Help,
        "test" => return parse_test(arguments),
        "tidy" => Command::Tidy,
        "docs" => Command::Docs,
        "bench" => return parse_bench(arguments),
        "coverage" => Command::Coverage,
        "audit" => Command::Audit,
        _ => return Err(UsageError::UnknownCommand(name)),
    };
    match arguments.next().as_deref() {
        None => Ok(command),
        Some("-h" | "--help") => Ok(Command::Help),
        Some(other) => Err(UsageError::UnknownOption(other.to_owned())),
    }
}

fn parse_test(mut arguments: impl Iterator<Item = String>) -> Result<Command, UsageError> {
    let mut selection = Selection::All;
    while let Some(argument) = arguments.next() {
        let chosen = match argument.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--fast" => Selection::Fast,
            "--machines" => Selection::Only(Step::Machines),
            "--only" => Selection::Only(step(&arguments.next().ok_or(UsageError::MissingStep)?)?),
            other => match other.strip_prefix("--only=") {
                Some(name) => Selection::Only(step(name)?),
                None => return Err(UsageError::UnknownOption(argument)),
            },
        };
        if selection != Selection::All {
            return Err(UsageError::FastAndOnly);
        }
        selection = chosen;
    }
    Ok(Command::Test(selection))
}

fn parse_bench(mut arguments: impl Iterator<Item = String>) -> Result<Command, UsageError> {
    let mut only = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--only" => only = Some(arguments.next().ok_or(UsageError::MissingTable)?),
            other => match other.strip_prefix("--only=") {
                Some(name) => only = Some(name.to_owned()),
                None => return Err(UsageError::UnknownOption(argument)),
            },
        }
    }
    Ok(Command::Bench(only))
}

fn step(name: &str) -> Result<Step, UsageError> {
    Step::ALL
        .into_iter()
        .find(|step| step.name() == name)
        .ok_or_else(|| UsageError::UnknownStep(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_read_or_refused() {
        let cases = [
            ("", Err(UsageError::NoCommand)),
            ("--help", Ok(Command::Help)),
            ("test", Ok(Command::Test(Selection::All))),
            ("test --fast", Ok(Command::Test(Selection::Fast))),
            (
                "test --only fmt",
                Ok(Command::Test(Selection::Only(Step::Format))),
            ),
            (
                "test --only=models",
                Ok(Command::Test(Selection::Only(Step::Models))),
            ),
            (
                "test --machines",
                Ok(Command::Test(Selection::Only(Step::Machines))),
            ),
            ("test --fast --machines", Err(UsageError::FastAndOnly)),
            ("test --only", Err(UsageError::MissingStep)),
            (
                "test --only lint",
                Err(UsageError::UnknownStep("lint".to_owned())),
            ),
            ("test --fast --only fmt", Err(UsageError::FastAndOnly)),
            ("test --slow", Err(UsageError::UnknownOption("--slow".to_owned()))),
            ("tidy", Ok(Command::Tidy)),
            ("tidy now", Err(UsageError::UnknownOption("now".to_owned()))),
            ("bench", Ok(Command::Bench(None))),
            ("bench --only mcp", Ok(Command::Bench(Some("mcp".to_owned())))),
            ("bench --only=mcp", Ok(Command::Bench(Some("mcp".to_owned())))),
            ("bench --only", Err(UsageError::MissingTable)),
            ("bench mcp", Err(UsageError::UnknownOption("mcp".to_owned()))),
            ("build", Err(UsageError::UnknownCommand("build".to_owned()))),
        ];
        for (line, expected) in cases {
            assert_eq!(
                parse(line.split_whitespace().map(str::to_owned)),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn help_names_every_step() {
        for step in Step::ALL {
            assert!(HELP.contains(step.name()), "{}", step.name());
        }
    }
}
