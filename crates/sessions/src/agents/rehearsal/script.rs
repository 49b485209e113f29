//! What a script is.

use std::sync::Arc;
use std::time::Duration;

use super::reading;
use crate::prompt::SCRIPT_LIMIT_BYTES;

/// How deep steps may be nested in `repeat` and `random`. No real script needs more, and the player keeps a position
/// for each level.
pub(super) const NESTING_LIMIT: usize = 16;
/// How many steps one turn may take. One line of a script can ask for 4,000,000,000 repetitions; this many take
/// seconds, and are enough for a stream of millions of events. Beyond that the turn fails with an error.
pub(super) const STEP_LIMIT: u64 = 1_000_000;
/// How much text one turn may say, think, write and ask, so that it can't fill the log. Beyond that the turn fails with
/// an error.
pub(super) const SAID_LIMIT_BYTES: usize = 64 * 1024 * 1024;
/// The longest pause. It's far longer than a turn may take, and short enough to be added to any time.
pub(super) const PAUSE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A parsed, valid script. Clones are cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(super) steps: Arc<[Step]>,
}

/// Why a text isn't a valid script.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the script is wrong in line {line}: {what}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there, and what is expected.
    pub what: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Does something.
    Act(Arc<Action>),
    /// Repeats steps.
    Repeat { times: u32, steps: Arc<[Self]> },
    /// Takes one of these steps. Those with the same seed draw from one sequence.
    Random { seed: u64, of: Arc<[Self]> },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Say(Speech),
    Think(Speech),
    Read {
        path: String,
    },
    Write {
        path: String,
        text: String,
    },
    Edit {
        path: String,
        find: String,
        replace: String,
    },
    Shell {
        line: String,
    },
    Lsp {
        verb: String,
        at: FilePosition,
    },
    Sleep(Duration),
    Ask(String),
    Fail(String),
}

/// Something said or thought, word by word.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Speech {
    pub(super) text: String,
    /// The time between two words; `None` for no delay.
    pub(super) every: Option<Duration>,
}

/// A position in a file: `src/main.rs`, `src/main.rs:3` or `src/main.rs:3:7`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct FilePosition {
    pub(super) path: String,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
}

impl Script {
    /// Parses a script from YAML.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.len() > SCRIPT_LIMIT_BYTES {
            return Err(ScriptError {
                line: 1,
                what: format!(
                    "it has {} bytes, and {SCRIPT_LIMIT_BYTES} are the most; `repeat` makes a long one short",
                    text.len()
                ),
            });
        }
        let steps = reading::read(text)?;
        if nesting(&steps) > NESTING_LIMIT {
            return Err(ScriptError {
                line: 1,
                what: format!("`repeat` and `random` are nested deeper than {NESTING_LIMIT} levels"),
            });
        }
        Ok(Self { steps })
    }
}

/// The depth of nesting. The parser has already limited it, so the recursion ends.
fn nesting(steps: &[Step]) -> usize {
    steps
        .iter()
        .map(|step| match step {
            Step::Act(_) => 0,
            Step::Repeat { steps, .. } | Step::Random { of: steps, .. } => 1 + nesting(steps),
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use proptest::prelude::{any, prop, proptest};
    use proptest::sample::select;

    use super::{Action, FilePosition, NESTING_LIMIT, Script, Speech, Step};

    fn steps(text: &str) -> Result<Vec<Step>, String> {
        let script = Script::parse(text).map_err(|wrong| wrong.to_string())?;
        Ok(script.steps.to_vec())
    }

    fn act(action: Action) -> Step {
        Step::Act(Arc::new(action))
    }

    fn speech(text: &str, every: Option<u64>) -> Speech {
        Speech {
            text: text.to_owned(),
            every: every.map(Duration::from_millis),
        }
    }

    #[test]
    fn every_step_is_read() {
        let place = |path: &str, line, column| FilePosition {
            path: path.to_owned(),
            line,
            column,
        };
        let lsp = |at| Action::Lsp {
            verb: "hover".to_owned(),
            at,
        };
        let cases = [
            ("say: hello there", Action::Say(speech("hello there\n", None))),
            ("say: \"a\\n\"", Action::Say(speech("a\n", None))),
            (
                "say: {text: a b, every: 50ms}",
                Action::Say(speech("a b", Some(50))),
            ),
            ("say: {text: a}", Action::Say(speech("a", None))),
            (
                "think: {text: a, every: 1m}",
                Action::Think(speech("a", Some(60_000))),
            ),
            ("read: 5", Action::Read { path: "5".to_owned() }),
            (
                "write: {path: a, text: yes}",
                Action::Write {
                    path: "a".to_owned(),
                    text: "yes".to_owned(),
                },
            ),
            (
                "edit: {path: a, find: b, replace: ''}",
                Action::Edit {
                    path: "a".to_owned(),
                    find: "b".to_owned(),
                    replace: String::new(),
                },
            ),
            (
                "shell: 'true'",
                Action::Shell {
                    line: "true".to_owned(),
                },
            ),
            ("lsp: {verb: hover, at: a.rs}", lsp(place("a.rs", None, None))),
            (
                "lsp: {verb: hover, at: 'a.rs:3'}",
                lsp(place("a.rs", Some(3), None)),
            ),
            (
                "lsp: {verb: hover, at: 'a:b:3:7'}",
                lsp(place("a:b", Some(3), Some(7))),
            ),
            ("sleep: 200ms", Action::Sleep(Duration::from_millis(200))),
            ("sleep: 24h", Action::Sleep(Duration::from_secs(86_400))),
            ("ask: may I?", Action::Ask("may I?".to_owned())),
            ("fail: enough", Action::Fail("enough".to_owned())),
        ];
        for (step, expected) in cases {
            assert_eq!(
                steps(&format!("steps:\n  - {step}")),
                Ok(vec![act(expected)]),
                "{step}"
            );
        }
        let read = |path: &str| {
            act(Action::Read {
                path: path.to_owned(),
            })
        };
        assert_eq!(
            steps(
                "steps:\n  - repeat: {times: 2, steps: [read: a]}\n  - random: {seed: 9, of: [read: a, read: b]}"
            ),
            Ok(vec![
                Step::Repeat {
                    times: 2,
                    steps: Arc::from([read("a")])
                },
                Step::Random {
                    seed: 9,
                    of: Arc::from([read("a"), read("b")])
                },
            ])
        );
    }

    /// The messages that users read: each says where the error is, and what is expected.
    #[test]
    fn what_is_wrong_is_said_with_its_line_and_with_what_is_expected() {
        let cases = [
            ("", 1, "it is empty; a script begins with `steps:`"),
            (
                "steps:\n  - say: a\n  - sayy: b",
                3,
                "there is no step `sayy`; expected one step, such as `say: TEXT`",
            ),
            (
                "steps:\n  - say: a\n  - say",
                3,
                "expected one step, such as `say: TEXT`",
            ),
            (
                "steps:\n  - say: a\n    read: b",
                2,
                "`read` stands in the same step as `say`",
            ),
            ("steps:\n  - {}", 2, "a step is empty"),
            (
                "steps:\n  - say: 5",
                2,
                "expected a text (a number or `true` in quotes)",
            ),
            ("steps:\n  - say: [a]", 2, "expected a text"),
            ("steps:\n  - read:", 2, "nothing is given; expected a text"),
            ("steps:\n  - write: {path: a}", 2, "missing field `text`"),
            (
                "steps:\n  - write: {path: a, text: b, mode: c}",
                2,
                "unknown field `mode`, expected one of path, text",
            ),
            (
                "steps:\n  - say: a\n  - sleep: 200",
                3,
                "`200` is no time; expected a time such as 200ms",
            ),
            ("steps:\n  - sleep: -1s", 2, "`-1s` is no time"),
            ("steps:\n  - sleep: 25h", 2, "`25h` is no time"),
            ("steps:\n  - sleep: 99999999999999999999h", 2, "is no time"),
            (
                "steps:\n  - lsp: {verb: hover, at: 'a:0'}",
                2,
                "`a:0` is no place",
            ),
            ("steps:\n  - lsp: {verb: hover, at: ':3'}", 2, "names no file"),
            ("steps:\n  - repeat: {times: -1, steps: []}", 2, "invalid u32"),
            (
                "steps:\n  - repeat: {times: 1, steps: 5}",
                2,
                "expected a list of steps",
            ),
            (
                "steps:\n  - random: {seed: 1, of: []}",
                2,
                "`of` has nothing to choose from",
            ),
            ("steps: 5", 1, "expected a list of steps"),
            ("step: []", 1, "unknown field `step`, expected one of steps"),
            ("- say: a", 1, "expected"),
            ("steps:\n  - say: \"a", 2, "unclosed quote"),
            ("steps: []\n---\nsteps: []", 3, "multiple YAML documents"),
        ];
        for (text, line, what) in cases {
            let wrong = Script::parse(text).unwrap_err();
            assert_eq!(wrong.line, line, "{text}: {wrong}");
            assert!(wrong.what.contains(what), "{text}: {wrong}");
            assert!(!wrong.what.contains(" at line "), "{wrong}");
        }
    }

    #[test]
    fn hostile_scripts_are_refused_in_no_time() {
        let nested = |levels: usize| {
            let (open, close) = ("[repeat: {times: 2, steps: ".repeat(levels), "}]".repeat(levels));
            format!("steps: {open}[]{close}")
        };
        assert!(Script::parse(&nested(NESTING_LIMIT)).is_ok());
        let bomb = (1..20).fold("a0: &a0 [say: x]\n".to_owned(), |bomb, level| {
            let below = format!("*a{}, ", level - 1).repeat(10);
            format!("{bomb}a{level}: &a{level} [{below}]\n")
        });
        let hostile = [
            nested(NESTING_LIMIT + 1),
            nested(1000),
            format!("steps: {}", "[".repeat(100_000)),
            format!("steps: {}", "{a: ".repeat(30_000)),
            format!("{bomb}steps: *a19"),
            format!("steps:\n  - say: {}", "x".repeat(200_000)),
            "steps:\n  - &a say: x\n".to_owned() + &"  - *a\n".repeat(10_000),
            "steps: [<<: {say: x}]".to_owned(),
        ];
        for text in hostile {
            let beginning: String = text.chars().take(60).collect();
            assert!(Script::parse(&text).is_err(), "{beginning}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_given_is_a_script_or_wrong(
            words in prop::collection::vec(select(vec![
                "steps:", "- ", "say: ", "repeat: ", "{times: 2, ", "steps: [", "]", "}", "random: {seed: 1, of: [", "\n", "  ",
                "x", "200ms", "sleep: ", "&a ", "*a", "!!int ", "\"", "|\n", "---\n", "? ", "<<: ", "#", "\t", "null", "lsp: {verb: v, at: ",
            ]), 0..40),
            noise in prop::collection::vec(any::<char>(), 0..8),
        ) {
            let text = words.concat() + &noise.into_iter().collect::<String>();
            if let Err(wrong) = Script::parse(&text) {
                assert!(wrong.line >= 1 && !wrong.what.is_empty());
            }
        }
    }
}
