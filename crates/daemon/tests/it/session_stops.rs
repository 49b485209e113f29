//! Sessions over HTTP: one turn at a time, questions, stops, and the end of a daemon in the middle of it.

use http::Method;
use protocol::{
    ErrorCode, JobList, JobState, PermissionAnswer, PermissionAnswered, SessionState, Turn, TurnItem,
    TurnList, TurnState, TurnTranscript,
};
use serde_json::json;

use crate::plans::{get, post, send, start, workspace};
use crate::running::{Running, until as until_true};
use crate::session_life::only;
use crate::sessions::{current, ended, open, prompt, show, try_prompt, until};

/// The question that is open.
async fn question(running: &Running, session: &protocol::Session) -> (protocol::Session, String) {
    let asking = until(running, session, SessionState::Asking).await;
    let waiting = asking.active.clone().unwrap().asking;
    let [question] = waiting.as_slice() else {
        panic!("{waiting:?}");
    };
    (asking.clone(), question.permission.clone())
}

#[tokio::test]
async fn one_turn_runs_and_others_wait_in_an_order_that_can_be_changed() {
    let running = start().await;
    let workspace = workspace();
    let session = open(
        &running,
        workspace.path(),
        "steps: [ask: 'May I?', say: '{{prompt}}']",
    )
    .await;
    let first = prompt(&running, &session, "one").await.turn;
    let (asking, permission) = question(&running, &session).await;
    assert_eq!(asking.active.as_ref().unwrap().turn, first.id);

    let refused = try_prompt(
        &running,
        &session,
        &json!({ "prompt": "no", "if_busy": "refuse" }),
    )
    .await;
    let refused = refused.problem();
    assert_eq!((refused.status, refused.code), (409, ErrorCode::TurnActive));
    assert_eq!(current(&refused).active.as_ref().unwrap().turn, first.id);
    let stale = try_prompt(&running, &session, &json!({ "prompt": "no", "seen": 1 }))
        .await
        .problem();
    assert_eq!((stale.status, stale.code), (409, ErrorCode::StaleGeneration));
    assert_eq!(current(&stale).version, asking.version);

    let waiting = [
        prompt(&running, &session, "two").await.turn,
        prompt(&running, &session, "three").await.turn,
        prompt(&running, &session, "four").await.turn,
    ];
    let queue = format!("/v1/sessions/{}/queue", session.id);
    let ids = |list: &TurnList| list.turns.iter().map(|turn| turn.id.clone()).collect::<Vec<_>>();
    let list: TurnList = get(&running, &queue).await.json();
    assert_eq!(ids(&list), waiting.each_ref().map(|turn| turn.id.clone()));
    assert!(list.turns.iter().all(|turn| turn.state == TurnState::Queued));
    let edit = json!({ "prompt": "four!", "place": 0 });
    let edited = send(
        &running,
        Method::PUT,
        &format!("{queue}/{}", waiting[2].id),
        &edit,
    )
    .await;
    assert_eq!(edited.json::<Turn>().prompt, "four!");
    let removed = send(
        &running,
        Method::DELETE,
        &format!("{queue}/{}", waiting[0].id),
        &json!({}),
    )
    .await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let list: TurnList = get(&running, &queue).await.json();
    assert_eq!(ids(&list), [waiting[2].id.clone(), waiting[1].id.clone()]);
    let gone = send(
        &running,
        Method::DELETE,
        &format!("{queue}/{}", first.id),
        &json!({}),
    )
    .await;
    let gone = gone.problem();
    assert_eq!((gone.status, gone.code), (409, ErrorCode::TurnNotQueued));

    let path = format!("/v1/sessions/{}/permissions/{permission}", session.id);
    post(&running, &path, &json!({ "answer": "allow" })).await;
    assert_eq!(ended(&running, &first).await.state, TurnState::Done);
    // Then the others run, in the order that was made.
    let (asking, permission) = question(&running, &session).await;
    assert_eq!(asking.active.as_ref().unwrap().turn, waiting[2].id);
    let path = format!("/v1/sessions/{}/permissions/{permission}", session.id);
    post(&running, &path, &json!({ "answer": "deny" })).await;
    let fourth = ended(&running, &waiting[2]).await;
    assert_eq!((fourth.state, fourth.number), (TurnState::Done, 4));
    let path = format!("/v1/sessions/{}/turns/{}/transcript", session.id, fourth.id);
    let transcript: TurnTranscript = get(&running, &path).await.json();
    let said = transcript
        .items
        .iter()
        .any(|item| matches!(item, TurnItem::Text { text } if text.contains("four!")));
    assert!(said, "{transcript:?}");
    let second = ended(&running, &waiting[0]).await;
    assert_eq!(second.state, TurnState::Cancelled);
    let refused = send(
        &running,
        Method::DELETE,
        &format!("/v1/sessions/{}", session.id),
        &json!({}),
    )
    .await;
    assert_eq!(refused.problem().code, ErrorCode::SessionInUse);
}

#[tokio::test]
async fn the_first_answer_counts_and_is_told_to_all() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: [ask: 'May I?', sleep: 1h]").await;
    prompt(&running, &session, "one").await;
    let (_, permission) = question(&running, &session).await;
    let path = format!("/v1/sessions/{}/permissions/{permission}", session.id);
    for answer in ["allow", "deny"] {
        let answered: PermissionAnswered = post(&running, &path, &json!({ "answer": answer })).await.json();
        let expected = PermissionAnswered {
            permission: permission.clone(),
            answer: PermissionAnswer::Allow,
            by: "an agent".to_owned(),
        };
        assert_eq!(answered, expected, "{answer}");
    }
}

#[tokio::test]
async fn a_stop_ends_the_command_and_frees_the_session() {
    let running = start().await;
    let workspace = workspace();
    // A time that no other process on this machine sleeps.
    let seconds = 1_000_000 + std::process::id();
    let script = format!("steps: [shell: 'sleep {seconds}']");
    let session = open(&running, workspace.path(), &script).await;
    let turn = prompt(&running, &session, "wait").await.turn;
    let mut job = None;
    let start = std::time::Instant::now();
    while job.is_none() {
        assert!(start.elapsed().as_secs() < 30, "no command runs");
        let jobs: JobList = get(&running, "/v1/jobs?state=running").await.json();
        job = jobs.jobs.first().map(|job| job.id.clone());
    }
    let cancel = format!("/v1/sessions/{}/cancel", session.id);
    let wrong = post(
        &running,
        &cancel,
        &json!({ "turn": crate::sessions::UNKNOWN_TURN }),
    )
    .await;
    assert_eq!(wrong.problem().code, ErrorCode::TurnNotFound);
    let stopped = post(
        &running,
        &format!("{cancel}?wait_ms=30000"),
        &json!({ "why": "enough" }),
    )
    .await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    let stopped: protocol::Session = stopped.json();
    assert_eq!(
        (stopped.state, stopped.active.clone()),
        (SessionState::Idle, None),
        "{stopped:?}"
    );
    assert_eq!(ended(&running, &turn).await.state, TurnState::Cancelled);
    let jobs: JobList = get(&running, "/v1/jobs").await.json();
    assert_eq!(only(&jobs).state, JobState::Cancelled);
    until_true("nothing of it runs", || sleeping(seconds) == 0).await;
    // Once more is no error: nothing runs. To stop that turn is.
    let again: protocol::Session = post(&running, &cancel, &json!({})).await.json();
    assert_eq!(again, stopped);
    let over = post(&running, &cancel, &json!({ "turn": turn.id }))
        .await
        .problem();
    assert_eq!((over.status, over.code), (409, ErrorCode::TurnNotActive));
    // And the next prompt is taken.
    let next = json!({ "prompt": "go on", "agent": { "name": "rehearsal", "script": "steps: [say: hi]" } });
    let next: protocol::TurnAccepted = try_prompt(&running, &session, &next).await.json();
    assert_eq!(ended(&running, &next.turn).await.state, TurnState::Done);
}

/// How many processes sleep for so long.
fn sleeping(seconds: u32) -> usize {
    let wanted = format!("sleep\0{seconds}\0").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| *line == wanted).count()
}

#[tokio::test]
async fn a_turn_whose_owner_is_there_is_not_stale() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: [sleep: 1h]").await;
    let turn = prompt(&running, &session, "wait").await.turn;
    let seen = until(&running, &session, SessionState::Running).await;
    let path = format!("/v1/sessions/{}/clear-stale-turn", session.id);
    for (version, named, code) in [
        (seen.version, turn.id.as_str(), ErrorCode::TurnNotStale),
        (seen.version - 1, turn.id.as_str(), ErrorCode::StaleGeneration),
        (
            seen.version,
            crate::sessions::UNKNOWN_TURN,
            ErrorCode::TurnNotFound,
        ),
    ] {
        let problem = post(&running, &path, &json!({ "seen": version, "turn": named }))
            .await
            .problem();
        assert_eq!(problem.code, code, "{problem:?}");
    }
    assert_eq!(show(&running, &session).await, seen);
    let running = running.restart().await;
    let freed = show(&running, &session).await;
    assert_eq!((freed.state, freed.active), (SessionState::Idle, None));
    assert_eq!(ended(&running, &turn).await.state, TurnState::Interrupted);
}

#[tokio::test]
async fn after_a_crash_the_turn_is_interrupted_and_what_waited_goes_on() {
    let running = start().await;
    let workspace = workspace();
    let script = "steps: [say: begun, ask: 'May I?', say: never]";
    let session = open(&running, workspace.path(), script).await;
    let first = prompt(&running, &session, "one").await.turn;
    question(&running, &session).await;
    let body = json!({ "prompt": "two", "agent": { "name": "rehearsal", "script": "steps: [say: hi]" } });
    let second: protocol::TurnAccepted = try_prompt(&running, &session, &body).await.json();
    let running = running.crash().await;
    let first = ended(&running, &first).await;
    assert_eq!(first.state, TurnState::Interrupted);
    let path = format!("/v1/sessions/{}/turns/{}/transcript", session.id, first.id);
    let transcript: TurnTranscript = get(&running, &path).await.json();
    let begun = TurnItem::Text {
        text: "begun\n".to_owned(),
    };
    assert_eq!(transcript.items.first(), Some(&begun), "{transcript:?}");
    let second = ended(&running, &second.turn).await;
    assert_eq!(second.state, TurnState::Done, "{second:?}");
    assert_eq!(
        until(&running, &session, SessionState::Idle).await.queue,
        Vec::<String>::new()
    );
}
