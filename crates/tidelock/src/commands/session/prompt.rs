//! Turns arguments into a prompt.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::{AgentChoice, IfBusy, NewAttachment, StartTurn, TurnId};

use crate::cli::PromptArguments;
use crate::error::{Exit, Failure};

pub(in crate::commands) const FROM_STDIN: &str = "-";
/// The most we read of a prompt or a script. The daemon accepts less, and reports its limit.
const TEXT_LIMIT_BYTES: u64 = 1 << 20;
/// The most we read of an attachment. The daemon accepts less in one request, and reports its limit.
const ATTACHMENT_LIMIT_BYTES: u64 = 64 << 20;
const REHEARSAL: &str = "rehearsal";
/// The agent that is used when only a model is given.
const MODEL: &str = "model";

#[derive(Debug)]
pub(in crate::commands) struct Prepared {
    request: StartTurn,
    /// The agent, if the arguments choose one.
    choice: Option<AgentChoice>,
}

impl Prepared {
    /// Validates the arguments before asking a daemon.
    pub(in crate::commands) fn new(arguments: &PromptArguments) -> Result<Prepared, Failure> {
        let script = arguments.script.as_ref().map(|path| text_of(path)).transpose()?;
        let prompt = if arguments.prompt == FROM_STDIN {
            text_of(Path::new(FROM_STDIN))?
        } else {
            arguments.prompt.clone()
        };
        if prompt.trim().is_empty() {
            return Err(Failure::new(Exit::Usage, "usage", "the prompt is empty")
                .advise("write what the agent should do, for example: `tidelock run 'fix the test'`"));
        }
        let attachments = arguments.attachments.iter().map(|path| attachment(path));
        Ok(Prepared {
            request: StartTurn {
                prompt,
                attachments: attachments.collect::<Result<_, _>>()?,
                agent: None,
                if_busy: None,
                seen: None,
                here: false,
                finish: arguments.finish(),
                // If it is unclear whether the prompt arrived, a retry with this key gets the same turn.
                idempotency_key: Some(TurnId::generate().to_string()),
            },
            choice: choice(arguments, script),
        })
    }

    /// The agent of a session that is opened for this prompt. The script is only for the prompt.
    pub(in crate::commands) fn agent_of_session(&self) -> Option<AgentChoice> {
        self.choice.clone().map(|choice| AgentChoice {
            script: None,
            ..choice
        })
    }

    pub(in crate::commands) fn first(&self) -> StartTurn {
        let with_script = self.choice.clone().filter(|choice| choice.script.is_some());
        StartTurn {
            agent: with_script,
            ..self.request.clone()
        }
    }

    pub(in crate::commands) fn further(&self, if_busy: IfBusy) -> StartTurn {
        StartTurn {
            agent: self.choice.clone(),
            if_busy: Some(if_busy),
            ..self.request.clone()
        }
    }
}

/// The chosen agent. A script or a model implies one.
fn choice(arguments: &PromptArguments, script: Option<String>) -> Option<AgentChoice> {
    let named = arguments.agent.clone();
    let name = match (named, &script, &arguments.model) {
        (Some(name), ..) => name,
        (None, Some(_), _) => REHEARSAL.to_owned(),
        (None, None, Some(_)) => MODEL.to_owned(),
        (None, None, None) => return None,
    };
    Some(AgentChoice {
        name,
        model: arguments.model.clone(),
        script,
    })
}

fn attachment(path: &Path) -> Result<NewAttachment, Failure> {
    let content = read(path, ATTACHMENT_LIMIT_BYTES)?;
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(match String::from_utf8(content) {
        Ok(text) => NewAttachment {
            name,
            text: Some(text),
            ..NewAttachment::default()
        },
        Err(error) => NewAttachment {
            name,
            media_type: media_type(path).map(str::to_owned),
            base64: Some(STANDARD.encode(error.as_bytes())),
            ..NewAttachment::default()
        },
    })
}

/// The media type of a file that models can view, by its name.
fn media_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        "pdf" => Some("application/pdf"),
        _ => None,
    }
}

pub(in crate::commands) fn text_of(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path, TEXT_LIMIT_BYTES)?)
        .map_err(|_| unusable(path, "isn't UTF-8 text".to_owned()))
}

fn read(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    if path == Path::new(FROM_STDIN) {
        io::stdin().lock().take(limit_bytes + 1).read_to_end(&mut content)
    } else {
        File::open(path).and_then(|file| file.take(limit_bytes + 1).read_to_end(&mut content))
    }
    .map_err(|error| unusable(path, format!("cannot be read: {error}")))?;
    if content.len() as u64 > limit_bytes {
        return Err(unusable(path, format!("has more than {limit_bytes} bytes")));
    }
    Ok(content)
}

fn unusable(path: &Path, what: String) -> Failure {
    let name = if path == Path::new(FROM_STDIN) {
        "standard input".to_owned()
    } else {
        format!("`{}`", path.display())
    };
    Failure::new(Exit::Refused, "path_unusable", format!("{name} {what}"))
        .advise("choose a file that you can read and that isn't too large")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn arguments(line: &[&str]) -> PromptArguments {
        let line = ["tidelock", "run"].iter().chain(line);
        match Cli::try_parse_from(line).unwrap().command {
            Command::Run(arguments) => arguments.prompt,
            other => panic!("{other:?}"),
        }
    }

    fn chosen(name: &str, model: Option<&str>, script: Option<&str>) -> AgentChoice {
        AgentChoice {
            name: name.to_owned(),
            model: model.map(str::to_owned),
            script: script.map(str::to_owned),
        }
    }

    #[test]
    fn a_script_or_a_model_says_who_is_asked() {
        for (line, script, expected) in [
            (&["x"][..], None, None),
            (&["--agent", "a", "x"], None, Some(chosen("a", None, None))),
            (
                &["--model", "m", "x"],
                None,
                Some(chosen("model", Some("m"), None)),
            ),
            (&["x"], Some("s"), Some(chosen("rehearsal", None, Some("s")))),
            (
                &["--agent", "mine", "x"],
                Some("s"),
                Some(chosen("mine", None, Some("s"))),
            ),
        ] {
            assert_eq!(
                choice(&arguments(line), script.map(str::to_owned)),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_prompt_is_sent_with_what_belongs_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (script, text, picture) = (
            file("script.yaml", b"steps: []\n"),
            file("notes.txt", "größer".as_bytes()),
            file("shot.PNG", b"\x89PNG\xff"),
        );
        let line = [
            "--script", &script, "--attach", &text, "--attach", &picture, "do it",
        ];
        let prepared = Prepared::new(&arguments(&line)).unwrap();
        let key = prepared.request.idempotency_key.clone();
        assert!(key.is_some());
        let expected = StartTurn {
            prompt: "do it".to_owned(),
            attachments: vec![
                NewAttachment {
                    name: "notes.txt".to_owned(),
                    text: Some("größer".to_owned()),
                    ..NewAttachment::default()
                },
                NewAttachment {
                    name: "shot.PNG".to_owned(),
                    media_type: Some("image/png".to_owned()),
                    base64: Some("iVBOR/8=".to_owned()),
                    ..NewAttachment::default()
                },
            ],
            agent: Some(chosen("rehearsal", None, Some("steps: []\n"))),
            if_busy: None,
            seen: None,
            here: false,
            finish: None,
            idempotency_key: key,
        };
        assert_eq!(prepared.first(), expected);
        assert_eq!(
            prepared.further(IfBusy::Refuse),
            StartTurn {
                if_busy: Some(IfBusy::Refuse),
                ..expected
            }
        );
        // The next prompt of the session has no script of its own.
        assert_eq!(prepared.agent_of_session(), Some(chosen("rehearsal", None, None)));
        let again = Prepared::new(&arguments(&line)).unwrap();
        assert_ne!(again.request.idempotency_key, prepared.request.idempotency_key);
    }

    #[test]
    fn what_cannot_be_sent_is_refused_before_anything_is_asked() {
        let missing = Prepared::new(&arguments(&["--attach", "/nowhere/at/all", "x"])).unwrap_err();
        assert_eq!(
            (missing.code.as_str(), missing.exit),
            ("path_unusable", Exit::Refused)
        );
        let empty = Prepared::new(&arguments(&["  \n"])).unwrap_err();
        assert_eq!((empty.code.as_str(), empty.exit), ("usage", Exit::Usage));
    }
}
