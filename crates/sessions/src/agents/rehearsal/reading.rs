//! Parses a script from YAML.
//!
//! The YAML parser limits depth, aliases and size by itself. Errors give the line, and what is expected there.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::MergeKeyPolicy;

use super::script::{Action, FilePosition, PAUSE_LIMIT, ScriptError, Speech, Step};

/// How many nodes aliases may produce. They turn small inputs into large ones; a script has `repeat` for that.
const ALIAS_LIMIT: usize = 1000;

/// The available steps, as worded in an error.
const STEPS: &str = "one step, such as `say: TEXT`, with one of the names say, think, read, write, edit, shell, lsp, sleep, \
                     ask, fail, repeat, random";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    steps: Steps,
}

pub(super) fn read(text: &str) -> Result<Arc<[Step]>, ScriptError> {
    let mut options = serde_saphyr::Options::default();
    options.merge_keys = MergeKeyPolicy::Error;
    options.alias_limits.max_total_replayed_events = ALIAS_LIMIT;
    match serde_saphyr::from_str_with_options::<Whole>(text, options) {
        Ok(whole) => Ok(whole.steps.0),
        Err(error) => Err(in_words(text, &error)),
    }
}

/// An error of the parser, with its line at the start instead of the end.
fn in_words(text: &str, error: &serde_saphyr::Error) -> ScriptError {
    let said = error.without_snippet().to_string();
    let (line, column) = error
        .location()
        .map_or((1, 1), |location| (location.line(), location.column()));
    let what = said
        .strip_suffix(&format!(" at line {line}, column {column}"))
        .unwrap_or(&said);
    let what = if text.trim().is_empty() {
        "it is empty; a script begins with `steps:`, and a list of steps follows"
    } else if what.starts_with("cannot deserialize null into string") {
        "nothing is given; expected a text"
    } else {
        what
    };
    ScriptError {
        line: line.max(1),
        what: what.to_owned(),
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = Step;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(STEPS)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
        let Some(name) = map.next_key::<String>()? else {
            return Err(de::Error::custom(format!("a step is empty; expected {STEPS}")));
        };
        let step = match name.as_str() {
            "say" => act(Action::Say(map.next_value()?)),
            "think" => act(Action::Think(map.next_value()?)),
            "read" => act(Action::Read {
                path: text(map.next_value()?),
            }),
            "write" => {
                let Write { path, text } = map.next_value()?;
                act(Action::Write { path, text })
            }
            "edit" => {
                let Edit { path, find, replace } = map.next_value()?;
                act(Action::Edit { path, find, replace })
            }
            "shell" => act(Action::Shell {
                line: text(map.next_value()?),
            }),
            "lsp" => {
                let Lsp { verb, at } = map.next_value()?;
                act(Action::Lsp { verb, at })
            }
            "sleep" => act(Action::Sleep(map.next_value::<Pause>()?.0)),
            "ask" => act(Action::Ask(text(map.next_value()?))),
            "fail" => act(Action::Fail(text(map.next_value()?))),
            "repeat" => {
                let Repeat { times, steps } = map.next_value()?;
                Step::Repeat {
                    times,
                    steps: steps.0,
                }
            }
            "random" => {
                let Random { seed, of: Steps(of) } = map.next_value()?;
                if of.is_empty() {
                    return Err(de::Error::custom(
                        "`of` has nothing to choose from; expected a list of steps",
                    ));
                }
                Step::Random { seed, of }
            }
            other => {
                return Err(de::Error::custom(format!(
                    "there is no step `{other}`; expected {STEPS}"
                )));
            }
        };
        match map.next_key::<String>()? {
            None => Ok(step),
            Some(second) => Err(de::Error::custom(format!(
                "`{second}` stands in the same step as `{name}`; a step has one name, and each begins with `- `"
            ))),
        }
    }
}

fn act(action: Action) -> Step {
    Step::Act(Arc::new(action))
}

fn text(text: Text) -> String {
    text.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    find: String,
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lsp {
    verb: String,
    at: FilePosition,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    times: u32,
    steps: Steps,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Random {
    seed: u64,
    of: Steps,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paced {
    text: String,
    #[serde(default)]
    every: Option<Pause>,
}

struct Steps(Arc<[Step]>);

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StepsVisitor)
    }
}

struct StepsVisitor;

impl<'de> Visitor<'de> for StepsVisitor {
    type Value = Steps;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of steps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Steps, A::Error> {
        let mut steps = Vec::new();
        while let Some(step) = list.next_element()? {
            steps.push(step);
        }
        Ok(Steps(steps.into()))
    }
}

/// A scalar text, neither a list nor a map.
struct Text(String);

/// A duration, as in `200ms`.
struct Pause(Duration);

/// Something written as one text. Numbers and `true` count as text where nothing else makes sense.
trait Scalar: Sized {
    const EXPECTED: &'static str;

    fn from_text(text: &str) -> Result<Self, String>;
}

struct ScalarVisitor<T>(PhantomData<T>);

impl<T: Scalar> Visitor<'_> for ScalarVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }
}

impl Scalar for Text {
    const EXPECTED: &'static str = "a text";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

impl Scalar for Pause {
    const EXPECTED: &'static str = "a time such as 200ms, 2s, 5m or 1h";

    fn from_text(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no time; expected {}, up to 24h", Self::EXPECTED);
        let unit = text.find(|char: char| !char.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(unit);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            _ => return Err(wrong()),
        };
        let pause = number.checked_mul(ms).map(Duration::from_millis);
        pause
            .filter(|pause| *pause <= PAUSE_LIMIT)
            .map(Self)
            .ok_or_else(wrong)
    }
}

impl Scalar for FilePosition {
    const EXPECTED: &'static str = "a place such as src/main.rs:3:7, with line and column from 1";

    fn from_text(text: &str) -> Result<Self, String> {
        let (rest, last) = with_number(text)?;
        let (path, first) = if last.is_some() {
            with_number(rest)?
        } else {
            (rest, None)
        };
        if path.is_empty() {
            return Err(format!("`{text}` names no file; expected {}", Self::EXPECTED));
        }
        let (line, column) = if first.is_some() {
            (first, last)
        } else {
            (last, None)
        };
        Ok(Self {
            path: path.to_owned(),
            line,
            column,
        })
    }
}

/// Splits off the number at the end of a text.
fn with_number(text: &str) -> Result<(&str, Option<u32>), String> {
    match text.rsplit_once(':') {
        Some((rest, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            match digits.parse() {
                Ok(number) if number > 0 => Ok((rest, Some(number))),
                _ => Err(format!(
                    "`{text}` is no place; expected {}",
                    FilePosition::EXPECTED
                )),
            }
        }
        _ => Ok((text, None)),
    }
}

macro_rules! read_scalars {
    ($($scalar:ty),*) => {$(
        impl<'de> Deserialize<'de> for $scalar {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(ScalarVisitor(PhantomData))
            }
        }
    )*};
}
read_scalars!(Text, Pause, FilePosition);

impl<'de> Deserialize<'de> for Speech {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpeechVisitor)
    }
}

/// A string is a whole line; a map has a text to be said verbatim, and its pace.
struct SpeechVisitor;

impl<'de> Visitor<'de> for SpeechVisitor {
    type Value = Speech;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text (a number or `true` in quotes), or a map of `text` and `every`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Speech, E> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        Ok(Speech {
            text: format!("{text}{end}"),
            every: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Speech, A::Error> {
        let Paced { text, every } = Paced::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Speech {
            text,
            every: every.map(|pause| pause.0),
        })
    }
}
