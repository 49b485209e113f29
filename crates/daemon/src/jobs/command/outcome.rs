//! Describes the outcome of an attempt, for people and for programs.

use std::io;

use jobs::{AttemptOutcome, AttemptVerdict};
use process::{Ended, Enforcement, Exit, SpawnError};
use serde_json::{Map, Value, json};

/// Signals that end programs, with their common names.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// Why an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// The command ended on its own.
    ByItself,
    /// It was stopped.
    Stopped,
    /// Its input couldn't be read.
    Input(String),
    /// Its output couldn't be stored.
    Output(String),
}

/// The outcome of a command that ran. `confinement` is `None` if none was requested.
pub(super) fn of_end(why: Why, ended: &Ended, confinement: Option<Enforcement>) -> AttemptOutcome {
    let (verdict, text) = match why {
        Why::ByItself if ended.exit == Exit::Code(0) => (AttemptVerdict::Succeeded, String::new()),
        Why::ByItself => (AttemptVerdict::Failed, exit_text(ended.exit)),
        Why::Stopped => (
            AttemptVerdict::Stopped,
            format!("stopped: {}", exit_text(ended.exit)),
        ),
        Why::Input(problem) => (
            AttemptVerdict::Failed,
            format!("its standard input could not be read: {problem}"),
        ),
        Why::Output(problem) => (
            AttemptVerdict::Failed,
            format!("its output could not be kept: {problem}"),
        ),
    };
    let remarks = [
        (!text.is_empty()).then_some(text),
        count_text(ended.killed.count, "had to be killed"),
        count_text(ended.left.len() as u64, "could not be killed"),
    ];
    AttemptOutcome {
        verdict,
        text: remarks.into_iter().flatten().collect::<Vec<_>>().join("; "),
        result: result(ended, confinement),
    }
}

fn exit_text(exit: Exit) -> String {
    let name = match exit {
        Exit::Signal(signal) => SIGNALS.iter().find(|(number, _)| *number == signal),
        Exit::Code(_) | Exit::Unknown => None,
    };
    match name {
        Some((_, name)) => format!("{exit} ({name})"),
        None => exit.to_string(),
    }
}

fn count_text(count: u64, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 process {what}")),
        _ => Some(format!("{count} processes {what}")),
    }
}

fn result(ended: &Ended, confinement: Option<Enforcement>) -> Value {
    let exit = match ended.exit {
        Exit::Code(code) => json!({ "code": code }),
        Exit::Signal(signal) => json!({ "signal": signal }),
        Exit::Unknown => json!({}),
    };
    let mut result = Map::from_iter([("exit".to_owned(), exit)]);
    if ended.killed.count > 0 {
        result.insert("killed_count".to_owned(), json!(ended.killed.count));
        result.insert("killed".to_owned(), json!(ended.killed.some));
    }
    if !ended.left.is_empty() {
        result.insert("left".to_owned(), json!(ended.left));
    }
    if let Some(confinement) = confinement {
        result.insert("confinement".to_owned(), json!(confinement));
    }
    Value::Object(result)
}

/// The outcome of a command that didn't run.
pub(super) fn never_ran(verdict: AttemptVerdict, text: impl Into<String>) -> AttemptOutcome {
    AttemptOutcome {
        verdict,
        text: text.into(),
        result: Value::Null,
    }
}

/// The outcome of a command that couldn't be started.
pub(super) fn of_spawn_error(error: &SpawnError) -> AttemptOutcome {
    let verdict = match error {
        SpawnError::Program { source, .. } | SpawnError::Directory { source, .. } => for_good(source),
        SpawnError::Limits(_) | SpawnError::Confinement(_) => AttemptVerdict::FailedPermanently,
        // The daemon is stopping, and so is everything that it runs.
        SpawnError::Stopped => AttemptVerdict::Stopped,
        SpawnError::Means(_) | SpawnError::Keeper(_) | SpawnError::Ledger(_) | SpawnError::TooMany { .. } => {
            AttemptVerdict::Failed
        }
    };
    never_ran(verdict, with_causes(error))
}

/// Something missing or forbidden stays so the next time; something busy or scarce may not.
fn for_good(error: &io::Error) -> AttemptVerdict {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::ExecutableFileBusy
        | ErrorKind::OutOfMemory
        | ErrorKind::WouldBlock
        | ErrorKind::Interrupted
        | ErrorKind::StaleNetworkFileHandle
        | ErrorKind::TimedOut => AttemptVerdict::Failed,
        _ => AttemptVerdict::FailedPermanently,
    }
}

/// An error with all its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use process::{KeeperEnd, Killed};
    use protocol::JobKilled;

    use super::*;

    fn ended(exit: Exit, killed: u64, left: &[u32]) -> Ended {
        let some = JobKilled {
            pid: 7,
            name: "sh".to_owned(),
        };
        Ended {
            exit,
            killed: Killed {
                count: killed,
                some: vec![some; usize::from(killed > 0)],
            },
            left: left.to_vec(),
            keeper: KeeperEnd::Reported,
        }
    }

    #[test]
    fn an_end_is_told_in_words_and_for_programs() {
        use AttemptVerdict::{Failed, Stopped, Succeeded};
        let killed = json!([{"pid": 7, "name": "sh"}]);
        let cases = [
            (
                Why::ByItself,
                ended(Exit::Code(0), 0, &[]),
                None,
                Succeeded,
                "",
                json!({"exit": {"code": 0}}),
            ),
            (
                Why::ByItself,
                ended(Exit::Code(0), 1, &[]),
                Some(Enforcement::Full),
                Succeeded,
                "1 process had to be killed",
                json!({"exit": {"code": 0}, "killed_count": 1, "killed": killed, "confinement": "full"}),
            ),
            (
                Why::ByItself,
                ended(Exit::Code(3), 0, &[]),
                Some(Enforcement::Partial),
                Failed,
                "exit code 3",
                json!({"exit": {"code": 3}, "confinement": "partial"}),
            ),
            (
                Why::ByItself,
                ended(Exit::Signal(11), 0, &[]),
                None,
                Failed,
                "signal 11 (SIGSEGV)",
                json!({"exit": {"signal": 11}}),
            ),
            (
                Why::ByItself,
                ended(Exit::Signal(34), 0, &[]),
                None,
                Failed,
                "signal 34",
                json!({"exit": {"signal": 34}}),
            ),
            (
                Why::ByItself,
                ended(Exit::Unknown, 0, &[]),
                None,
                Failed,
                "an end that nobody saw",
                json!({"exit": {}}),
            ),
            (
                Why::Stopped,
                ended(Exit::Signal(9), 40, &[8, 9]),
                None,
                Stopped,
                "stopped: signal 9 (SIGKILL); 40 processes had to be killed; 2 processes could not be killed",
                json!({"exit": {"signal": 9}, "killed_count": 40, "killed": killed, "left": [8, 9]}),
            ),
            (
                Why::Input("there is none".to_owned()),
                ended(Exit::Code(0), 0, &[]),
                None,
                Failed,
                "its standard input could not be read: there is none",
                json!({"exit": {"code": 0}}),
            ),
            (
                Why::Output("no room".to_owned()),
                ended(Exit::Code(0), 0, &[]),
                None,
                Failed,
                "its output could not be kept: no room",
                json!({"exit": {"code": 0}}),
            ),
        ];
        for (why, ended, confinement, verdict, text, result) in cases {
            let expected = AttemptOutcome {
                verdict,
                text: text.to_owned(),
                result,
            };
            assert_eq!(of_end(why, &ended, confinement), expected);
        }
    }

    #[test]
    fn what_may_be_better_the_next_time_is_told_from_what_will_not() {
        let program = |number: i32| SpawnError::Program {
            program: "tool".into(),
            source: io::Error::from_raw_os_error(number),
        };
        for (error, verdict, text) in [
            (
                program(2),
                AttemptVerdict::FailedPermanently,
                "`tool` cannot be executed: No such file or directory (os error 2)",
            ),
            (
                program(13),
                AttemptVerdict::FailedPermanently,
                "`tool` cannot be executed: Permission denied (os error 13)",
            ),
            (
                program(26),
                AttemptVerdict::Failed,
                "`tool` cannot be executed: Text file busy (os error 26)",
            ),
            (
                program(11),
                AttemptVerdict::Failed,
                "`tool` cannot be executed: Resource temporarily unavailable (os error 11)",
            ),
            (
                SpawnError::TooMany { limit: 3 },
                AttemptVerdict::Failed,
                "3 processes are owned already, and there may not be more",
            ),
            (
                SpawnError::Stopped,
                AttemptVerdict::Stopped,
                "the command was stopped before it ran",
            ),
        ] {
            assert_eq!(of_spawn_error(&error), never_ran(verdict, text));
        }
    }
}
