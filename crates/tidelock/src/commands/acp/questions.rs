//! Open permission questions, until the editor or someone elsewhere answers.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use protocol::{PermissionAnswer, PermissionId, PermissionOption};
use serde_json::{Value, json};

use super::outbox::Outbox;
use super::schema::{PermissionAnswered, PermissionOutcome};
use super::updates::Question;

#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Keyed by the id of our request. Locked only to look up, insert or remove.
    asked: Mutex<BTreeMap<u64, Asked>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) session: String,
    pub(super) permission: PermissionId,
    /// The possible answers by the id the editor sees, and what each means.
    options: Vec<(String, PermissionAnswer)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    Answer(PermissionAnswer),
    /// The turn is being cancelled, so no answer is needed.
    Nothing,
    /// The editor could not ask, or chose something that was not offered.
    NotAsked,
}

impl Questions {
    /// Asks the editor, unless it is already being asked.
    pub(super) fn ask(&self, outbox: &Outbox, session: &str, question: &Question) -> io::Result<()> {
        let id = outbox.next_id();
        let options = options(&question.options);
        let asked = Asked {
            session: session.to_owned(),
            permission: question.permission,
            options: options
                .iter()
                .map(|(id, option)| (id.clone(), option.answer))
                .collect(),
        };
        {
            let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let is_same = |other: &Asked| other.session == session && other.permission == question.permission;
            if all.values().any(is_same) {
                return Ok(());
            }
            // Insert it before sending, so that no answer can arrive first.
            all.insert(id, asked);
        }
        let shown: Vec<Value> = options
            .iter()
            .map(|(id, option)| json!({ "optionId": id, "name": option.label, "kind": kind(option.answer) }))
            .collect();
        let params = json!({ "sessionId": session, "toolCall": question.call, "options": shown });
        outbox.ask(id, "session/request_permission", &params)
    }

    /// Removes and returns the question that the editor answers, if it is still open here.
    pub(super) fn take(&self, id: u64) -> Option<Asked> {
        let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&id)
    }

    /// Someone else answered first. Returns whether the editor was still being asked.
    pub(super) fn withdraw(
        &self,
        outbox: &Outbox,
        session: &str,
        permission: PermissionId,
    ) -> io::Result<bool> {
        self.withdraw_those(outbox, |asked| {
            asked.session == session && asked.permission == permission
        })
    }

    pub(super) fn withdraw_all(&self, outbox: &Outbox, session: &str) -> io::Result<bool> {
        self.withdraw_those(outbox, |asked| asked.session == session)
    }

    fn withdraw_those(&self, outbox: &Outbox, is_meant: impl Fn(&Asked) -> bool) -> io::Result<bool> {
        let found: Vec<u64> = {
            let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let meant: Vec<u64> = all
                .iter()
                .filter(|(_, asked)| is_meant(asked))
                .map(|(id, _)| *id)
                .collect();
            all.retain(|id, _| !meant.contains(id));
            meant
        };
        for id in &found {
            outbox.notify("$/cancel_request", &json!({ "requestId": id }))?;
        }
        Ok(!found.is_empty())
    }
}

impl Asked {
    pub(super) fn chosen(&self, result: Option<Value>) -> Chosen {
        let Some(Ok(answered)) = result.map(serde_json::from_value::<PermissionAnswered>) else {
            return Chosen::NotAsked;
        };
        match answered.outcome {
            PermissionOutcome::Cancelled => Chosen::Nothing,
            PermissionOutcome::Selected { option_id } => {
                let found = self.options.iter().find(|(id, _)| *id == option_id);
                found.map_or(Chosen::NotAsked, |(_, answer)| Chosen::Answer(*answer))
            }
        }
    }
}

/// The possible answers, each with a unique name.
fn options(offered: &[PermissionOption]) -> Vec<(String, PermissionOption)> {
    let usual = [
        ("Allow", PermissionAnswer::Allow),
        ("Always allow in this session", PermissionAnswer::AllowAlways),
        ("Deny", PermissionAnswer::Deny),
    ];
    let usual = usual.map(|(label, answer)| PermissionOption {
        label: label.to_owned(),
        answer,
        id: String::new(),
    });
    let offered = if offered.is_empty() { &usual[..] } else { offered };
    let mut options: Vec<(String, PermissionOption)> = Vec::new();
    for option in offered {
        let wanted = match option.id.as_str() {
            "" => kind(option.answer),
            id => id,
        };
        let is_taken = options.iter().any(|(id, _)| id == wanted);
        let id = if is_taken {
            format!("{wanted}-{}", options.len())
        } else {
            wanted.to_owned()
        };
        options.push((id, option.clone()));
    }
    options
}

fn kind(answer: PermissionAnswer) -> &'static str {
    match answer {
        PermissionAnswer::Allow => "allow_once",
        PermissionAnswer::AllowAlways => "allow_always",
        PermissionAnswer::Deny => "reject_once",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, answer: PermissionAnswer) -> PermissionOption {
        PermissionOption {
            label: "x".to_owned(),
            answer,
            id: id.to_owned(),
        }
    }

    #[test]
    fn each_option_has_a_name_of_its_own() {
        use PermissionAnswer::{Allow, AllowAlways, Deny};
        let names = |offered: &[PermissionOption]| -> Vec<String> {
            options(offered).into_iter().map(|(id, _)| id).collect()
        };
        assert_eq!(names(&[]), ["allow_once", "allow_always", "reject_once"]);
        assert_eq!(
            names(&[
                option("", Allow),
                option("", Allow),
                option("p", Deny),
                option("p", AllowAlways)
            ]),
            ["allow_once", "allow_once-1", "p", "p-3"]
        );
    }

    #[test]
    fn answers_are_understood_and_what_was_not_offered_is_none() {
        let asked = Asked {
            session: "s".to_owned(),
            permission: PermissionId::generate(),
            options: vec![("yes".to_owned(), PermissionAnswer::Allow)],
        };
        let selected = |id: &str| Some(json!({ "outcome": { "outcome": "selected", "optionId": id } }));
        for (result, expected) in [
            (selected("yes"), Chosen::Answer(PermissionAnswer::Allow)),
            (selected("maybe"), Chosen::NotAsked),
            (
                Some(json!({ "outcome": { "outcome": "cancelled" } })),
                Chosen::Nothing,
            ),
            (Some(json!({})), Chosen::NotAsked),
            (None, Chosen::NotAsked),
        ] {
            assert_eq!(asked.chosen(result.clone()), expected, "{result:?}");
        }
    }
}
