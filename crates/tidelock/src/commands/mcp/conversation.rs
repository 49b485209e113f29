//! The state of a conversation: the unanswered requests, and how it was opened. It does no I/O.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How many requests may wait for their answers. The daemon answers all but a handful at once; an agent that sends
/// more is asked to wait.
const IN_FLIGHT: usize = 1024;
/// How many questions of the daemon may wait for their answers. There is one for each call that asks the user.
const ASKED: usize = 64;
/// The id of the request that reopens a conversation. No agent has a reason to use it.
const REPLAY_ID: &str = "tidelock-opens-again";

const RESTARTED: &str = "the daemon was restarted; look at the state and try again";
const TOO_MANY: &str = "too many requests have no answer yet; wait for some of them";

/// A conversation between an agent and the daemon. Ids are kept exactly as written.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    in_flight: BTreeSet<String>,
    asked: BTreeSet<String>,
    opening: Option<(String, Vec<u8>)>,
    opened: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Forward it. A request needs a daemon, and carries its id.
    On(Option<String>),
    /// Drop it.
    Nowhere,
    Answered(Vec<u8>),
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
}

impl Conversation {
    pub(super) fn agent_says(&mut self, line: &[u8]) -> Pass {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else {
            // Let the daemon report what is wrong with it.
            return Pass::On(None);
        };
        let id = head.id.map(|id| id.get().to_owned());
        if id.as_deref().is_some_and(|id| !is_request_id(id)) {
            return Pass::On(None);
        }
        match (id, head.method.as_deref()) {
            (Some(id), Some(method)) => {
                if self.in_flight.len() >= IN_FLIGHT {
                    return Pass::Answered(error(&id, TOO_MANY));
                }
                if method == "initialize" {
                    self.opening = Some((id.clone(), line.to_vec()));
                }
                self.in_flight.insert(id.clone());
                Pass::On(Some(id))
            }
            (None, Some("notifications/initialized")) => {
                self.initialized = Some(line.to_vec());
                Pass::On(None)
            }
            (None, Some("notifications/cancelled")) => {
                let params = head.params.map_or("null", RawValue::get);
                if let Ok(Cancelled { request_id: Some(id) }) = serde_json::from_str(params) {
                    // A cancelled request gets no answer.
                    self.in_flight.remove(id.get());
                }
                Pass::On(None)
            }
            // The next daemon has no use for an answer to a question of the last one.
            (Some(id), None) => match self.asked.remove(&id) {
                true => Pass::On(None),
                false => Pass::Nowhere,
            },
            (None, _) => Pass::On(None),
        }
    }

    pub(super) fn daemon_says(&mut self, line: &[u8]) -> Pass {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else {
            return Pass::On(None);
        };
        let Some(id) = head.id.map(RawValue::get) else {
            return Pass::On(None);
        };
        if head.method.is_some() {
            if self.asked.len() < ASKED {
                self.asked.insert(id.to_owned());
            }
            return Pass::On(None);
        }
        if let Some((_, line)) = self.opening.take_if(|(opening, _)| opening.as_str() == id)
            && head.error.is_none()
        {
            self.opened = Some(line);
        }
        match self.in_flight.remove(id) {
            true => Pass::On(None),
            // It was cancelled, or already answered when the daemon was lost.
            false => Pass::Nowhere,
        }
    }

    /// The daemon is gone. Returns answers to everything that it left unanswered.
    pub(super) fn lost(&mut self) -> Vec<Vec<u8>> {
        self.asked.clear();
        self.opening = None;
        let ids = std::mem::take(&mut self.in_flight);
        ids.iter().map(|id| error(id, RESTARTED)).collect()
    }

    /// A request can't reach a daemon. Returns the answer to it.
    pub(super) fn unreachable(&mut self, id: &str, why: &str) -> Vec<u8> {
        self.in_flight.remove(id);
        self.opening.take_if(|(opening, _)| opening == id);
        error(id, &format!("the daemon cannot be reached: {why}"))
    }

    /// How to reopen the conversation with another daemon: a request, and what to send after its answer. `None` if it
    /// was not opened, or needs no opening.
    pub(super) fn reopening(&self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let mut request: Value = serde_json::from_slice(self.opened.as_ref()?).ok()?;
        request["id"] = json!(REPLAY_ID);
        Some((one_line(&request), self.initialized.clone()))
    }
}

/// A request id is a string or an integer. Anything else can't be answered: not every reader can even parse it.
fn is_request_id(id: &str) -> bool {
    id.starts_with('"') || id.parse::<i64>().is_ok()
}

/// Checks whether a line answers the request that reopens a conversation, and with what result.
pub(super) fn reopened(line: &[u8]) -> Option<Result<(), String>> {
    let head: Head<'_> = serde_json::from_slice(line).ok()?;
    let is_answer = head.method.is_none() && head.id.is_some_and(|id| id.get() == format!("\"{REPLAY_ID}\""));
    is_answer.then(|| match head.error {
        None => Ok(()),
        Some(error) => Err(error.get().to_owned()),
    })
}

/// The error for a line that is too long. It can't name the request.
pub(super) fn too_long(limit: usize) -> Vec<u8> {
    error("null", &format!("a message may have at most {limit} bytes"))
}

fn error(id: &str, message: &str) -> Vec<u8> {
    let message = Value::from(message);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":{message}}}}}\n")
        .into_bytes()
}

fn one_line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{}}}"#;

    fn on(id: &str) -> Pass {
        Pass::On(Some(id.to_owned()))
    }

    #[test]
    fn nothing_is_answered_by_a_name_that_is_none() {
        let mut conversation = Conversation::default();
        for id in ["1e400", "1.5", "true", "[1]", "{\"a\":1}", "-9223372036854775809"] {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
            assert_eq!(conversation.agent_says(line.as_bytes()), Pass::On(None), "{id}");
        }
        assert_eq!(conversation.lost(), [] as [Vec<u8>; 0]);
    }

    #[test]
    fn what_has_no_answer_is_answered_when_the_daemon_is_gone() {
        let mut conversation = Conversation::default();
        let from_agent =
            |conversation: &mut Conversation, line: &str| conversation.agent_says(line.as_bytes());
        assert_eq!(
            from_agent(&mut conversation, r#"{"id":1,"method":"tools/list"}"#),
            on("1")
        );
        assert_eq!(
            from_agent(&mut conversation, r#"{"id":"1","method":"tools/call"}"#),
            on("\"1\"")
        );
        assert_eq!(
            from_agent(&mut conversation, r#"{"id":2,"method":"tools/call"}"#),
            on("2")
        );
        assert_eq!(
            conversation.daemon_says(br#"{"id":1,"result":{}}"#),
            Pass::On(None)
        );
        let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
        assert_eq!(from_agent(&mut conversation, cancelled), Pass::On(None));
        let answers = conversation.lost();
        let expected = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"error\":{{\"code\":-32000,\"message\":\"{RESTARTED}\"}}}}\n"
        );
        assert_eq!(answers, [expected.into_bytes()]);
        // A late answer is not a second one.
        assert_eq!(
            conversation.daemon_says(br#"{"id":"1","result":{}}"#),
            Pass::Nowhere
        );
        assert_eq!(conversation.lost(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn answers_of_the_agent_reach_the_daemon_that_asked() {
        let mut conversation = Conversation::default();
        assert_eq!(conversation.agent_says(br#"{"id":7,"result":{}}"#), Pass::Nowhere);
        assert_eq!(
            conversation.daemon_says(br#"{"id":7,"method":"elicitation/create"}"#),
            Pass::On(None)
        );
        assert_eq!(
            conversation.agent_says(br#"{"id":7,"result":{}}"#),
            Pass::On(None)
        );
        assert_eq!(conversation.agent_says(br#"{"id":7,"result":{}}"#), Pass::Nowhere);
        conversation.daemon_says(br#"{"id":8,"method":"elicitation/create"}"#);
        conversation.lost();
        assert_eq!(conversation.agent_says(br#"{"id":8,"result":{}}"#), Pass::Nowhere);
        assert_eq!(conversation.agent_says(b"not json"), Pass::On(None));
    }

    #[test]
    fn a_conversation_is_opened_again_as_it_was() {
        let mut conversation = Conversation::default();
        assert_eq!(conversation.reopening(), None);
        conversation.agent_says(INITIALIZE);
        // It isn't open until the daemon has confirmed it.
        assert_eq!(conversation.reopening(), None);
        conversation.daemon_says(br#"{"id":0,"result":{}}"#);
        let initialized = br#"{"method":"notifications/initialized"}"#;
        conversation.agent_says(initialized);
        conversation.lost();
        let (request, after) = conversation.reopening().unwrap();
        let request: Value = serde_json::from_slice(&request).unwrap();
        assert_eq!(
            request,
            json!({"jsonrpc": "2.0", "id": REPLAY_ID, "method": "initialize", "params": {"clientInfo": {}}})
        );
        assert_eq!(after.unwrap(), initialized);
        let answer = format!(r#"{{"id":"{REPLAY_ID}","result":{{}}}}"#);
        assert_eq!(reopened(answer.as_bytes()), Some(Ok(())));
        assert_eq!(reopened(br#"{"id":0,"result":{}}"#), None);

        let mut refused = Conversation::default();
        refused.agent_says(INITIALIZE);
        refused.daemon_says(br#"{"id":0,"error":{}}"#);
        assert_eq!(refused.reopening(), None);
    }

    #[test]
    fn there_is_room_for_some_requests() {
        let mut conversation = Conversation::default();
        for id in 0..IN_FLIGHT {
            let line = format!(r#"{{"id":{id},"method":"x"}}"#);
            assert_eq!(conversation.agent_says(line.as_bytes()), on(&id.to_string()));
        }
        let one_more = conversation.agent_says(br#"{"id":"more","method":"x"}"#);
        assert_eq!(one_more, Pass::Answered(error("\"more\"", TOO_MANY)));
    }
}
