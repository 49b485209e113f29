//! Stored data stays readable: literal heads and events, as they were first written.

use std::sync::Arc;

use eventlog::{Event, Sequence};
use protocol::TurnTranscript;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::{TurnEvent, from_log, to_log};
use crate::session::SessionRecord;
use crate::transcript::apply_stored;
use crate::turn::TurnRecord;

/// One event of each kind, both with every field and with as few as possible.
const EVENTS: &[(&str, &str)] = &[
    (
        "accepted",
        r#"{"kind":"accepted","v":1,"prompt":{"text":"do it","attachments":[{"name":"a.txt","media_type":"text/plain","size_bytes":3,"content":"0707070707070707070707070707070707070707070707070707070707070707"}]},"agent":{"name":"rehearsal","model":"m","script":"steps: []"}}"#,
    ),
    (
        "accepted",
        r#"{"kind":"accepted","v":1,"prompt":{"text":"do it"},"agent":{"name":"rehearsal"}}"#,
    ),
    (
        "edited",
        r#"{"kind":"edited","prompt":{"text":"","attachments":[{"name":"b","media_type":"image/png","size_bytes":0,"content":"00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"}]}}"#,
    ),
    ("state", r#"{"kind":"state","state":"queued"}"#),
    ("state", r#"{"kind":"state","state":"running"}"#),
    ("state", r#"{"kind":"state","state":"done"}"#),
    (
        "state",
        r#"{"kind":"state","state":"failed","error":{"code":"model_timeout","text":"it took too long"}}"#,
    ),
    ("state", r#"{"kind":"state","state":"cancelled"}"#),
    ("state", r#"{"kind":"state","state":"interrupted"}"#),
    ("text", r#"{"kind":"text","item":0,"delta":"a\nb"}"#),
    ("reasoning", r#"{"kind":"reasoning","item":1,"delta":"hm"}"#),
    (
        "tool_call",
        r#"{"kind":"tool_call","item":2,"call":"call_1","tool":"read"}"#,
    ),
    (
        "tool_arguments",
        r#"{"kind":"tool_arguments","item":2,"delta":"{\"pa"}"#,
    ),
    (
        "tool_started",
        r#"{"kind":"tool_started","item":2,"title":"read a","arguments":{"lines":[1,null],"path":"a"}}"#,
    ),
    ("tool_output", r#"{"kind":"tool_output","item":2,"delta":"text"}"#),
    (
        "tool_ended",
        r#"{"kind":"tool_ended","item":2,"state":"done","answer":"said","full":"job_1"}"#,
    ),
    (
        "tool_ended",
        r#"{"kind":"tool_ended","item":2,"state":"failed","answer":""}"#,
    ),
    (
        "tool_ended",
        r#"{"kind":"tool_ended","item":2,"state":"denied","answer":""}"#,
    ),
    (
        "tool_ended",
        r#"{"kind":"tool_ended","item":2,"state":"cancelled","answer":""}"#,
    ),
    (
        "permission_asked",
        r#"{"kind":"permission_asked","item":2,"permission":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","tool":"shell","subject":"make","options":[{"label":"Always","answer":"allow_always","id":"always"},{"label":"Yes","answer":"allow"},{"label":"No","answer":"deny"}],"timeout_ms":600000}"#,
    ),
    (
        "permission_asked",
        r#"{"kind":"permission_asked","permission":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","tool":"ask","subject":"?","options":[]}"#,
    ),
    (
        "permission_answered",
        r#"{"kind":"permission_answered","permission":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","answer":"allow_always","by":"me"}"#,
    ),
    (
        "plan_changed",
        r#"{"kind":"plan_changed","plan":"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV","fingerprint":"f","files":2,"changeset":"changeset_01ARZ3NDEKTSV4RRFFQ69G5FAV","paths":["a","b"]}"#,
    ),
    (
        "plan_changed",
        r#"{"kind":"plan_changed","plan":"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV","fingerprint":"f","files":0}"#,
    ),
    (
        "usage",
        r#"{"kind":"usage","total":{"input_tokens":1,"output_tokens":2,"requests":3,"cost_micros":4}}"#,
    ),
    (
        "trouble",
        r#"{"kind":"trouble","code":"model_retry","text":"again"}"#,
    ),
];

/// A head of a session with every field.
const SESSION: &str = r#"{"facts":{"directory":"/home/me/project","opened_by":"unix","opened_at":951782400007,"forked_from":{"session":"session_01ARZ3NDEKTSV4RRFFQ69G5FAV","turn":"turn_01ARZ3NDEKTSV4RRFFQ69G5FAV"}},"home":"home_01ARZ3NDEKTSV4RRFFQ69G5FAV","title":"Fix it","agent":{"name":"model","model":"m","script":"s"},"rules":[{"tool":"shell","pattern":"git *","permission":"allow"},{"tool":"write","permission":"ask"},{"tool":"*","permission":"deny"}],"learned_rules":1,"plan":"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV","active":{"turn":"turn_01ARZ3NDEKTSV4RRFFQ69G5FAV","prompt":"do it","attachments":["a.txt"],"started_at":951782400008,"owner":{"home":"home_01ARZ3NDEKTSV4RRFFQ69G5FAV","boot":"boot_01ARZ3NDEKTSV4RRFFQ69G5FAV"},"stop":{"by":"me","why":"enough","at":951782400009,"error":{"code":"turn_timeout","text":"too long"}},"asked":[{"id":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","tool":"shell","subject":"make","answer":["deny","me"]},{"id":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","tool":"shell","subject":"make"}]},"queue":["turn_01ARZ3NDEKTSV4RRFFQ69G5FAV"],"last_turn":"turn_01ARZ3NDEKTSV4RRFFQ69G5FAV","prompts":3,"last_state":"done","archived":true,"removing":true,"forks":1,"changed_at":951782400010}"#;
/// The head of a session that was just opened.
const NEW_SESSION: &str = r#"{"facts":{"directory":"/a","opened_by":"","opened_at":0},"title":"","agent":{"name":"rehearsal"},"rules":[],"learned_rules":0,"queue":[],"prompts":0,"archived":false,"forks":0,"changed_at":0}"#;
/// A head of a turn with every field.
const TURN: &str = r#"{"session":"session_01ARZ3NDEKTSV4RRFFQ69G5FAV","number":2,"previous":"turn_01ARZ3NDEKTSV4RRFFQ69G5FAV","prompt":{"text":"do it","attachments":[{"name":"a.txt","media_type":"text/plain","size_bytes":3,"content":"0707070707070707070707070707070707070707070707070707070707070707"}]},"agent":{"name":"model","model":"m"},"by":"me","accepted_at":1,"state":"failed","started_at":2,"ended_at":3,"owner":{"home":"home_01ARZ3NDEKTSV4RRFFQ69G5FAV","boot":"boot_01ARZ3NDEKTSV4RRFFQ69G5FAV"},"plan":"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV","usage":{"input_tokens":1,"output_tokens":2,"requests":3,"cost_micros":4},"error":{"code":"model_timeout","text":"it took too long"},"transcript":"0707070707070707070707070707070707070707070707070707070707070707"}"#;
/// The head of a queued turn.
const QUEUED_TURN: &str = r#"{"session":"session_01ARZ3NDEKTSV4RRFFQ69G5FAV","number":1,"prompt":{"text":"do it"},"agent":{"name":"rehearsal"},"by":"","accepted_at":1,"state":"queued","usage":{"input_tokens":0,"output_tokens":0,"requests":0,"cost_micros":0}}"#;
const TRANSCRIPT: &str = r#"{"items":[{"type":"text","text":"a"},{"type":"reasoning","text":"b"},{"type":"tool","call":"c","tool":"read","title":"read a","arguments":{"path":"a"},"output":"o","state":"done","answer":"o","full":"job_1"},{"type":"tool","call":"","tool":"read","title":"","arguments":"{\"pa","output":""},{"type":"permission","permission":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","tool":"shell","subject":"make","options":[{"label":"Yes","answer":"allow","id":"y"}],"answer":"allow","by":"me"},{"type":"permission","permission":"permission_01ARZ3NDEKTSV4RRFFQ69G5FAV","tool":"shell","subject":"make","options":[]},{"type":"plan","plan":"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV","fingerprint":"f","files":1,"paths":["a"]},{"type":"trouble","code":"model_retry","text":"again"}],"numbers":[0,1,2,3,null,null,null,null],"usage":{"input_tokens":1,"output_tokens":2,"requests":3,"cost_micros":4},"state":"failed","error":{"code":"model_timeout","text":"it took too long"}}"#;

fn stored(kind: &str, body: &str) -> Event {
    Event {
        sequence: Sequence::from_u64(1),
        at_ms: 1,
        kind: kind.into(),
        body: Arc::from(body.as_bytes()),
    }
}

fn read(body: &str) -> Option<TurnEvent> {
    from_log(&stored("any", body))
}

fn written(event: &TurnEvent) -> (String, String) {
    let new = to_log(event).unwrap();
    let body = String::from_utf8(new.body.to_vec()).unwrap();
    (new.kind.to_string(), body)
}

#[test]
fn every_event_is_read_and_written_again_as_it_was() {
    let mut kinds = std::collections::BTreeSet::new();
    for (kind, body) in EVENTS {
        let event = read(body).unwrap_or_else(|| panic!("{body}"));
        assert_eq!(written(&event), ((*kind).to_owned(), (*body).to_owned()));
        kinds.insert(*kind);
    }
    assert_eq!(kinds.len(), 15, "{kinds:?}");
}

#[test]
fn an_event_of_an_unknown_kind_or_shape_is_skipped() {
    for body in [
        r#"{"kind":"song","notes":[1,2]}"#,
        r#"{"kind":"text","item":"first"}"#,
        r#"{"kind":"plan_changed","plan":"plan_1","fingerprint":"f","files":0}"#,
        "{}",
        "not JSON",
    ] {
        assert_eq!(read(body), None, "{body}");
        let mut transcript = TurnTranscript::default();
        apply_stored(&mut transcript, &stored("song", body));
        assert_eq!(transcript, TurnTranscript::default(), "{body}");
    }
}

fn check_round_trip<T: Serialize + DeserializeOwned>(text: &str) {
    let value: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
}

#[test]
fn heads_and_transcripts_are_read_and_written_again_as_they_were() {
    check_round_trip::<SessionRecord>(SESSION);
    check_round_trip::<SessionRecord>(NEW_SESSION);
    check_round_trip::<TurnRecord>(TURN);
    check_round_trip::<TurnRecord>(QUEUED_TURN);
    check_round_trip::<TurnTranscript>(TRANSCRIPT);
}

/// A daemon that shares the log may be newer, and write fields that this one doesn't know.
#[test]
fn unknown_members_are_passed_over() {
    let more = |text: &str| text.replace(r#"{""#, r#"{"later":[1],""#);
    for (_, body) in EVENTS {
        // A tool's arguments may contain any field.
        let newer = more(body).replace(r#""arguments":{"later":[1],"#, r#""arguments":{"#);
        assert_eq!(read(&newer), read(body), "{newer}");
    }
    let session: SessionRecord = serde_json::from_str(&more(SESSION)).unwrap();
    assert_eq!(session, serde_json::from_str(SESSION).unwrap());
    let turn: TurnRecord = serde_json::from_str(&more(TURN)).unwrap();
    assert_eq!(turn, serde_json::from_str(TURN).unwrap());
}
