//! Sends a prompt and answers it when its turn is over. Cancels turns, and answers questions.

use std::sync::Arc;

use protocol::{
    AgentChoice, AnswerPermission, CancelTurn, IfBusy, StartTurn, Turn, TurnAccepted, TurnId, TurnState,
};
use serde_json::{Value, json};

use super::open::{Ended, Open, Ticket, Wish};
use super::prompt;
use super::questions::{Asked, Chosen};
use super::refusal::Refused;
use super::schema::ContentBlock;
use super::serve::{Site, note};
use super::updates::Voice;
use crate::client::Client;
use crate::commands::plan::short;
use crate::commands::session::prompt::text_of;
use crate::commands::session::{path, turn_path};
use crate::error::Failure;
use crate::start::Repeat;

const WHY: &str = "the editor";
const REHEARSAL: &str = "rehearsal";

/// Sends a prompt, and waits for its turn to end.
pub(super) fn prompt(
    site: &Site,
    open: &Arc<Open>,
    ticket: Ticket,
    blocks: &[ContentBlock],
    client: &Client,
) -> Result<Value, Refused> {
    let request = request(site, open, blocks)?;
    if let Some(notice) = open.take_notice() {
        site.say(&open.id, Voice::Agent, &notice);
    }
    if open.wish(ticket) == Wish::Cancel {
        return Ok(json!({ "stopReason": "cancelled" }));
    }
    let turns = path(&open.id, "/turns");
    // It has an idempotency key, so a retry gets the same turn.
    let TurnAccepted { turn, .. } =
        client.ask(Repeat::Harmless, |client| client.post(&turns, Some(&request)))?;
    if open.sent(ticket, &turn.id) == Wish::Cancel {
        cancel(site, open, &turn.id, client);
    } else if turn.state == TurnState::Queued {
        let text = "Another turn is running in this session. This prompt waits until it ends.\n";
        site.say(&open.id, Voice::Thought, text);
    }
    match open.wait_for_end(ticket) {
        Some(ended) => ended.and_then(|ended| answer_of(&ended)),
        // The editor closed the session, which cancelled its prompts.
        None => Ok(json!({ "stopReason": "cancelled" })),
    }
}

/// Generates the id of a message that belongs to no turn.
pub(super) fn message() -> String {
    TurnId::generate().to_string()
}

fn request(site: &Site, open: &Open, blocks: &[ContentBlock]) -> Result<StartTurn, Refused> {
    let said = prompt::read(blocks, &open.root)?;
    let arguments = &site.arguments;
    let agent = match &arguments.script {
        // Read it for each prompt, so that it can be changed between two.
        Some(script) => Some(AgentChoice {
            name: arguments.agent.clone().unwrap_or_else(|| REHEARSAL.to_owned()),
            model: None,
            script: Some(text_of(script)?),
        }),
        None => None,
    };
    Ok(StartTurn {
        prompt: said.text,
        attachments: said.attachments,
        agent,
        if_busy: Some(IfBusy::Queue),
        seen: None,
        here: false,
        finish: None,
        idempotency_key: Some(TurnId::generate().to_string()),
    })
}

/// The response to a prompt when its turn is over.
fn answer_of(ended: &Ended) -> Result<Value, Refused> {
    match (stop_reason(ended), &ended.error) {
        (Some(reason), _) => Ok(json!({
            "stopReason": reason,
            "_meta": { "tidelock": { "turn": ended.turn, "state": ended.state } },
        })),
        (None, Some(error)) => Err(Refused::turn(&error.code, &error.text)),
        (None, None) => Err(Refused::turn("turn_failed", "no reason given")),
    }
}

/// Why a turn ended, if the protocol has a word for it. It has none for a turn whose daemon was killed: the turn did
/// not finish, and no one asked it to stop. We report `cancelled`, which conveys the first of the two; the text sent
/// before it conveys both.
pub(super) fn stop_reason(ended: &Ended) -> Option<&'static str> {
    let code = ended.error.as_ref().map(|error| error.code.as_str());
    match (ended.state, code) {
        (TurnState::Done, _) => Some("end_turn"),
        (TurnState::Cancelled | TurnState::Interrupted, _) => Some("cancelled"),
        (_, Some("limit_tokens" | "model_length" | "acp_max_tokens")) => Some("max_tokens"),
        (_, Some("limit_steps" | "acp_max_requests")) => Some("max_turn_requests"),
        (_, Some("model_filtered" | "acp_refusal")) => Some("refusal"),
        (TurnState::Failed | TurnState::Queued | TurnState::Running, _) => None,
    }
}

/// Stops a turn, or removes it if it is still queued. Its end shows up in its stream.
pub(super) fn cancel(site: &Site, open: &Open, turn: &str, client: &Client) {
    let wish = CancelTurn {
        turn: Some(turn.to_owned()),
        why: Some(WHY.to_owned()),
    };
    let path = path(&open.id, "/cancel?wait_ms=0");
    let asked = client.ask(Repeat::Harmless, |client| {
        client.post::<Value>(&path, Some(&wish))
    });
    match asked {
        // It had already ended; the stream is about to report that.
        Err(failure) if failure.code != "turn_not_active" => {
            let text = format!(
                "The turn could not be cancelled: {}\n",
                Refused::from(failure).in_words()
            );
            site.say(&open.id, Voice::Agent, &text);
        }
        Ok(_) | Err(_) => {}
    }
    if let Err(failure) = see_whether_it_ended(open, turn, client) {
        note(&format!("can't read {turn}: {}", failure.message));
    }
}

/// A turn that was removed before it began has no stream to watch.
pub(super) fn see_whether_it_ended(open: &Open, turn: &str, client: &Client) -> Result<(), Failure> {
    let turn: Turn = client.fetch(&turn_path(&open.id, turn, ""))?;
    if turn.ended_at.is_some() && turn.started_at.is_none() {
        open.ended(&Ended {
            turn: turn.id,
            state: turn.state,
            error: turn.error,
        });
    }
    Ok(())
}

pub(super) fn answer(site: &Site, asked: &Asked, result: Option<Value>, client: &Client) {
    let say = |text: &str| site.say(&asked.session, Voice::Agent, text);
    match asked.chosen(result) {
        Chosen::Answer(answer) => {
            let path = path(&asked.session, &format!("/permissions/{}", asked.permission));
            let wish = AnswerPermission { answer };
            // The first answer counts, so a retry changes nothing.
            let sent = client.ask(Repeat::Harmless, |client| {
                client.post::<Value>(&path, Some(&wish))
            });
            match sent {
                // Someone else answered first, and the stream reports that.
                Err(failure) if failure.code != "permission_not_found" => {
                    let text = format!(
                        "The answer couldn't be delivered: {}\n",
                        Refused::from(failure).in_words()
                    );
                    say(&text);
                }
                Ok(_) | Err(_) => {}
            }
        }
        // An editor that answers like this cancels the turn as well.
        Chosen::Nothing => {}
        Chosen::NotAsked => say(&format!(
            "The editor could not ask. Answer with `tidelock session answer {} allow`, `always` or `deny`, or on the page.\n",
            short(&asked.session)
        )),
    }
}

#[cfg(test)]
mod tests {
    use protocol::TurnError;

    use super::*;

    #[test]
    fn a_prompt_is_answered_with_why_its_turn_ended() {
        let ended = |state, code: Option<&str>| Ended {
            turn: "t".to_owned(),
            state,
            error: code.map(|code| TurnError {
                code: code.to_owned(),
                text: "why".to_owned(),
            }),
        };
        for (state, code, expected) in [
            (TurnState::Done, None, Some("end_turn")),
            (TurnState::Cancelled, None, Some("cancelled")),
            (TurnState::Interrupted, Some("daemon_crashed"), Some("cancelled")),
            (TurnState::Failed, Some("limit_tokens"), Some("max_tokens")),
            (TurnState::Failed, Some("model_length"), Some("max_tokens")),
            (TurnState::Failed, Some("acp_max_tokens"), Some("max_tokens")),
            (TurnState::Failed, Some("limit_steps"), Some("max_turn_requests")),
            (
                TurnState::Failed,
                Some("acp_max_requests"),
                Some("max_turn_requests"),
            ),
            (TurnState::Failed, Some("model_filtered"), Some("refusal")),
            (TurnState::Failed, Some("acp_refusal"), Some("refusal")),
            (TurnState::Failed, Some("limit_time"), None),
            (TurnState::Failed, Some("model_unreachable"), None),
            (TurnState::Failed, None, None),
        ] {
            assert_eq!(stop_reason(&ended(state, code)), expected, "{state:?} {code:?}");
        }
        assert_eq!(
            answer_of(&ended(TurnState::Interrupted, None)),
            Ok(json!({
                "stopReason": "cancelled",
                "_meta": { "tidelock": { "turn": "t", "state": "interrupted" } },
            }))
        );
        let failed = answer_of(&ended(TurnState::Failed, Some("limit_time"))).unwrap_err();
        assert_eq!(
            failed.to_json(),
            json!({
                "code": -32603,
                "message": "The turn failed: why",
                "data": { "code": "limit_time" },
            })
        );
    }
}
