//! Sessions over HTTP: prompted, looked at, followed, worked with, forked, and removed.

use http::Method;
use protocol::{
    ErrorCode, Job, JobList, Session, SessionHistory, SessionList, SessionState, Status, ToolState,
    TurnAccepted, TurnEventList, TurnItem, TurnList, TurnState, TurnTranscript,
};
use serde_json::{Value, json};

use crate::plans::{apply, event, get, post, read, send, start, workspace};
use crate::running::until_answer;
use crate::sessions::{current, ended, open, prompt, show, try_prompt};

#[tokio::test]
async fn a_prompt_is_answered_and_can_be_looked_at_in_every_way() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: [think: hm, say: hello world]").await;
    assert_eq!(
        (session.state, session.opened_by.as_str(), session.title.as_str()),
        (SessionState::Idle, "an agent", "")
    );
    let accepted = prompt(&running, &session, "greet me").await;
    assert!(accepted.new, "{accepted:?}");
    assert_eq!(
        (accepted.turn.number, accepted.turn.prompt.as_str()),
        (1, "greet me")
    );
    let turn = ended(&running, &accepted.turn).await;
    assert_eq!(
        (turn.state, turn.error.clone()),
        (TurnState::Done, None),
        "{turn:?}"
    );
    let session = show(&running, &session).await;
    assert_eq!(
        (
            session.state,
            session.title.as_str(),
            session.last_state,
            session.prompts
        ),
        (SessionState::Idle, "greet me", Some(TurnState::Done), 1)
    );
    assert_eq!(session.last_turn.as_deref(), Some(turn.id.as_str()));

    let path = format!("/v1/sessions/{}/turns/{}", session.id, turn.id);
    let transcript: TurnTranscript = get(&running, &format!("{path}/transcript")).await.json();
    let said = |text: &str| text.to_owned();
    assert_eq!(
        transcript.items,
        [
            TurnItem::Reasoning { text: said("hm\n") },
            TurnItem::Text {
                text: said("hello world\n")
            }
        ]
    );
    assert_eq!(transcript.state, Some(TurnState::Done));

    let events: TurnEventList = get(&running, &format!("{path}/events")).await.json();
    assert_eq!((events.first, events.last), (1, turn.last_sequence));
    let sequences: Vec<u64> = events.events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=turn.last_sequence).collect::<Vec<_>>());
    let some: TurnEventList = get(&running, &format!("{path}/events?tail=2&limit=1"))
        .await
        .json();
    assert_eq!(some.events, [events.events[events.events.len() - 2].clone()]);

    // Whoever follows a turn that is over gets all of it, and its end.
    let mut raw = running.raw(&format!(
        "{}Accept: text/event-stream\r\n\r\n",
        running.head(&format!("GET {path}/events HTTP/1.1"))
    ));
    for expected in &events.events {
        let (_, id, data) = event(&mut raw).await;
        assert_eq!(id, Some(expected.sequence));
        let found: protocol::TurnEvent = serde_json::from_value(data).unwrap();
        assert_eq!(&found, expected);
    }
    let (name, _, end) = event(&mut raw).await;
    assert_eq!(name, "end");
    assert_eq!(end, json!({ "sequence": turn.last_sequence, "state": "done" }));

    let history: SessionHistory = get(&running, &format!("/v1/sessions/{}/events", session.id))
        .await
        .json();
    let moments: Vec<(&str, &str)> = history
        .moments
        .iter()
        .map(|moment| (moment.event.as_str(), moment.actor.as_str()))
        .collect();
    assert_eq!(
        moments,
        [
            ("opened", "an agent"),
            ("accepted", "an agent"),
            ("started", ""),
            ("ended", "")
        ]
    );
    assert!(
        history.moments[1..]
            .iter()
            .all(|moment| moment.turn == Some(turn.id.clone()))
    );
    let turns: TurnList = get(&running, &format!("/v1/sessions/{}/turns", session.id))
        .await
        .json();
    assert_eq!((turns.turns, turns.next), (vec![turn], None));

    let export = format!("/v1/sessions/{}/export", session.id);
    let document = get(&running, &export).await;
    assert_eq!(document.header("content-type"), Some("application/json"));
    let document: Value = document.json();
    assert_eq!(document["turns"].as_array().unwrap().len(), 1, "{document}");
    let text = get(&running, &format!("{export}?format=markdown")).await;
    assert_eq!(text.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(
        text.body.contains("hello world") && text.body.contains("greet me"),
        "{text:?}"
    );
    // Its place is given back a moment after its end is written down.
    let ask = async || -> Status { get(&running, "/v1/status").await.json() };
    let is_free = |status: &Status| status.sessions == Some(protocol::SessionCounts::default());
    until_answer("the place is free", ask, is_free).await;
}

#[tokio::test]
async fn what_an_agent_does_is_in_a_plan_and_its_commands_are_jobs() {
    let running = start().await;
    let workspace = workspace();
    let script = "
steps:
  - write: {path: made.txt, text: 'by {{prompt}}'}
  - shell: 'cat made.txt; echo err >&2; echo more >> b.txt; exit 3'
  - read: b.txt
";
    let session = open(&running, workspace.path(), script).await;
    let turn = ended(&running, &prompt(&running, &session, "me").await.turn).await;
    assert_eq!(turn.state, TurnState::Done, "{turn:?}");
    let path = format!("/v1/sessions/{}/turns/{}/transcript", session.id, turn.id);
    let transcript: TurnTranscript = get(&running, &path).await.json();
    let tools: Vec<(&str, Option<ToolState>)> = transcript
        .items
        .iter()
        .filter_map(|item| match item {
            TurnItem::Tool { tool, state, .. } => Some((tool.as_str(), *state)),
            _ => None,
        })
        .collect();
    let (done, failed) = (Some(ToolState::Done), Some(ToolState::Failed));
    assert_eq!(tools, [("write", done), ("shell", failed), ("read", done)]);
    let outputs: Vec<&str> = transcript
        .items
        .iter()
        .filter_map(|item| match item {
            TurnItem::Tool { output, .. } => Some(output.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        outputs[1].contains("by me") && outputs[1].contains("err\n"),
        "{outputs:?}"
    );

    let jobs: JobList = get(&running, "/v1/jobs").await.json();
    let job = only(&jobs);
    assert_eq!(
        job.title,
        "cat made.txt; echo err >&2; echo more >> b.txt; exit 3"
    );
    assert_eq!(
        (job.plan.as_deref(), job.changed_files),
        (turn.plan.as_deref(), Some(1))
    );
    assert_eq!(job.exit.map(|exit| exit.code), Some(Some(3)), "{job:?}");

    // Nothing of it is in the workspace before somebody applies it.
    assert_eq!(
        (read(&workspace, "made.txt"), read(&workspace, "b.txt")),
        (None, Some("b\n".to_owned()))
    );
    let plan = show(&running, &session).await.plan.unwrap();
    apply(&running, &[&plan]).await;
    assert_eq!(read(&workspace, "made.txt").as_deref(), Some("by me"));
    assert_eq!(read(&workspace, "b.txt").as_deref(), Some("b\nmore\n"));
}

#[tokio::test]
async fn the_same_key_is_the_same_turn() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: [say: hi]").await;
    let path = format!("/v1/sessions/{}/turns", session.id);
    let keyed = |text: &str| {
        let body = json!({ "prompt": text }).to_string();
        let client = running.unix();
        let path = path.clone();
        async move {
            let call = client.post(&path).header("idempotency-key", "k");
            call.json(&body).send().await
        }
    };
    let first = keyed("a").await;
    assert_eq!(first.status, 202, "{first:?}");
    let first: TurnAccepted = first.json();
    ended(&running, &first.turn).await;
    let again = keyed("a").await;
    assert_eq!(again.status, 200, "{again:?}");
    let again: TurnAccepted = again.json();
    assert_eq!((again.new, &again.turn.id), (false, &first.turn.id));
    let other = keyed("b").await.problem();
    assert_eq!((other.status, other.code), (409, ErrorCode::IdempotencyKeyReused));
    match other.current {
        Some(protocol::Current::Turn(turn)) => assert_eq!(turn.id, first.turn.id),
        other => panic!("{other:?}"),
    }
    assert_eq!(show(&running, &session).await.prompts, 1);
}

#[tokio::test]
async fn what_comes_with_a_prompt_is_kept_with_it() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: []").await;
    let body = json!({ "prompt": "look", "attachments": [
        { "name": "a.txt", "text": "text" },
        { "name": "b.png", "media_type": "image/png", "base64": "AAEC" },
        { "name": "c", "base64": "AA==" },
    ]});
    let accepted: TurnAccepted = try_prompt(&running, &session, &body).await.json();
    let attachment = |name: &str, media_type: &str, size_bytes: u64| protocol::Attachment {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        size_bytes,
    };
    assert_eq!(
        ended(&running, &accepted.turn).await.attachments,
        [
            attachment("a.txt", "text/plain", 4),
            attachment("b.png", "image/png", 3),
            attachment("c", "application/octet-stream", 1),
        ]
    );
}

#[tokio::test]
async fn a_fork_goes_on_from_a_turn_and_a_session_with_forks_stays() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: [say: hi]").await;
    let path = format!("/v1/sessions/{}", session.id);
    let first = ended(&running, &prompt(&running, &session, "one").await.turn).await;
    let second = ended(&running, &prompt(&running, &session, "two").await.turn).await;
    let forked = post(&running, &format!("{path}/fork"), &json!({ "turn": first.id })).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let fork: Session = forked.json();
    let from = fork.forked_from.clone().unwrap();
    assert_eq!(
        (from.session.as_deref(), from.turn.as_deref()),
        (Some(session.id.as_str()), Some(first.id.as_str()))
    );
    let third = ended(&running, &prompt(&running, &fork, "three").await.turn).await;
    let turns: TurnList = get(&running, &format!("/v1/sessions/{}/turns", fork.id))
        .await
        .json();
    let ids: Vec<&str> = turns.turns.iter().map(|turn| turn.id.as_str()).collect();
    assert_eq!(ids, [third.id.as_str(), first.id.as_str()]);
    // The turns that both share are found by either; the others by their own alone.
    for (of, turn, status) in [
        (&fork, &first, 200),
        (&fork, &second, 404),
        (&fork, &third, 200),
        (&session, &third, 404),
        (&session, &second, 200),
    ] {
        let answer = get(&running, &format!("/v1/sessions/{}/turns/{}", of.id, turn.id)).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let page: TurnList = get(&running, &format!("{path}/turns?limit=1")).await.json();
    assert_eq!(
        (page.turns[0].id.as_str(), page.next.as_deref()),
        (second.id.as_str(), Some(second.id.as_str()))
    );

    let named: Session = post(&running, &format!("{path}/rename"), &json!({ "title": "work" }))
        .await
        .json();
    assert_eq!((named.title.as_str(), named.forks), ("work", 1));
    let agent = json!({ "name": "rehearsal", "script": "steps: [say: other]" });
    let other: Session = send(&running, Method::PUT, &format!("{path}/agent"), &agent)
        .await
        .json();
    assert_eq!(other.agent.script.as_deref(), Some("steps: [say: other]"));
    let remove = |path: String| {
        let running = &running;
        async move { send(running, Method::DELETE, &path, &json!({})).await }
    };
    let refused = remove(path.clone()).await.problem();
    assert_eq!((refused.status, refused.code), (409, ErrorCode::SessionHasForks));
    assert_eq!(current(&refused).forks, 1);
    assert_eq!(remove(format!("/v1/sessions/{}", fork.id)).await.status, 204);
    assert_eq!(remove(path.clone()).await.status, 204);
    assert_eq!(
        get(&running, &path).await.problem().code,
        ErrorCode::SessionNotFound
    );
    let list: SessionList = get(&running, "/v1/sessions").await.json();
    assert_eq!(list.sessions, []);
}

#[tokio::test]
async fn the_list_is_told_again_when_something_moves() {
    let running = start().await;
    let workspace = workspace();
    let mut raw = running.raw(&format!(
        "{}\r\n",
        running.head("GET /v1/sessions/events HTTP/1.1")
    ));
    let (name, _, list) = event(&mut raw).await;
    assert_eq!((name.as_str(), &list["sessions"]), ("sessions", &json!([])));
    let session = open(&running, workspace.path(), "steps: [say: hi]").await;
    prompt(&running, &session, "a").await;
    loop {
        let (_, _, list) = event(&mut raw).await;
        let list: SessionList = serde_json::from_value(list).unwrap();
        let states = list
            .sessions
            .iter()
            .map(|found| (found.id.clone(), found.last_state));
        if states.collect::<Vec<_>>() == [(session.id.clone(), Some(TurnState::Done))] {
            break;
        }
    }
}

/// The one job that there is.
pub(crate) fn only(jobs: &JobList) -> &Job {
    match jobs.jobs.as_slice() {
        [job] => job,
        _ => panic!("{jobs:?}"),
    }
}
