//! Sessions over HTTP: what all tests of them need, and what is refused and how.

use std::path::Path;

use http::Method;
use kernel::SystemClock;
use protocol::{AgentKind, AgentList, ErrorCode, Session, SessionList, SessionState, Turn, TurnAccepted};
use serde_json::{Value, json};

use crate::client::Answer;
use crate::page::{Browser, field};
use crate::plans::{get, post, send, start, workspace};
use crate::running::{Running, options, until_answer};

const UNKNOWN: &str = "session_01ARZ3NDEKTSV4RRFFQ69G5FAV";
pub(crate) const UNKNOWN_TURN: &str = "turn_01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// A session whose agent follows a script.
pub(crate) async fn open(running: &Running, directory: &Path, script: &str) -> Session {
    let body = json!({ "directory": directory, "agent": { "name": "rehearsal", "script": script } });
    let answer = post(running, "/v1/sessions", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

/// Sends a prompt that must be taken.
pub(crate) async fn prompt(running: &Running, session: &Session, text: &str) -> TurnAccepted {
    let answer = try_prompt(running, session, &json!({ "prompt": text })).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()
}

pub(crate) async fn try_prompt(running: &Running, session: &Session, body: &Value) -> Answer {
    post(running, &format!("/v1/sessions/{}/turns", session.id), body).await
}

pub(crate) async fn show(running: &Running, session: &Session) -> Session {
    get(running, &format!("/v1/sessions/{}", session.id)).await.json()
}

/// The turn when it is over.
pub(crate) async fn ended(running: &Running, turn: &Turn) -> Turn {
    let path = format!("/v1/sessions/{}/turns/{}?wait_ms=15000", turn.session, turn.id);
    let turn: Turn = get(running, &path).await.json();
    assert!(turn.ended_at.is_some(), "{turn:?}");
    turn
}

/// The session once it is in a state.
pub(crate) async fn until(running: &Running, session: &Session, state: SessionState) -> Session {
    let ask = async || show(running, session).await;
    until_answer("another state", ask, |found| found.state == state).await
}

/// The session that a problem is about.
pub(crate) fn current(problem: &protocol::Problem) -> &Session {
    match &problem.current {
        Some(protocol::Current::Session(session)) => session,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found_under_any_path() {
    let running = start().await;
    let workspace = workspace();
    let session = open(&running, workspace.path(), "steps: []").await;
    let found = |answer: Answer| {
        let problem = answer.problem();
        (problem.status, problem.code)
    };
    for id in [UNKNOWN, "last", "%3Cb%3E", "%FF"] {
        let path = format!("/v1/sessions/{id}");
        let missing = (404, ErrorCode::SessionNotFound);
        for below in ["", "/turns", "/queue", "/events", "/export"] {
            let answer = get(&running, &format!("{path}{below}")).await;
            assert_eq!(found(answer), missing, "{id}{below}");
        }
        let turn = format!("{path}/turns/{UNKNOWN_TURN}");
        assert_eq!(found(get(&running, &turn).await), missing, "{turn}");
        for (below, body) in [
            ("turns", json!({ "prompt": "a" })),
            ("cancel", json!({})),
            ("clear-stale-turn", json!({ "seen": 1, "turn": UNKNOWN_TURN })),
            ("fork", json!({})),
            ("rename", json!({ "title": "a" })),
            ("archive", json!({ "archived": true })),
        ] {
            let answer = post(&running, &format!("{path}/{below}"), &body).await;
            assert_eq!(found(answer), missing, "{id}/{below}");
        }
        let answer = send(&running, Method::DELETE, &path, &json!({})).await;
        assert_eq!(found(answer), missing, "{id}");
    }
    for turn in [UNKNOWN_TURN, "x", session.id.as_str()] {
        for below in ["", "/events", "/transcript"] {
            let path = format!("/v1/sessions/{}/turns/{turn}{below}", session.id);
            let answer = get(&running, &path).await;
            assert_eq!(found(answer), (404, ErrorCode::TurnNotFound), "{path}");
        }
        let path = format!("/v1/sessions/{}/queue/{turn}", session.id);
        for method in [Method::PUT, Method::DELETE] {
            let answer = send(&running, method, &path, &json!({})).await;
            assert_eq!(found(answer), (404, ErrorCode::TurnNotFound), "{path}");
        }
    }
    for permission in ["permission_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"] {
        let path = format!("/v1/sessions/{}/permissions/{permission}", session.id);
        let answer = post(&running, &path, &json!({ "answer": "allow" })).await;
        assert_eq!(found(answer), (404, ErrorCode::PermissionNotFound), "{path}");
    }
    for path in [
        "?limit=0".to_owned(),
        "?state=lazy".to_owned(),
        "?before=x".to_owned(),
        "?more=1".to_owned(),
        format!("/{}/turns?limit=0", session.id),
        format!("/{}/events?after=x", session.id),
        format!("/{}/export?format=pdf", session.id),
    ] {
        let answer = get(&running, &format!("/v1/sessions{path}")).await;
        assert_eq!(found(answer), (400, ErrorCode::InvalidQuery), "{path}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_the_field() {
    let running = start().await;
    let workspace = workspace();
    let file = workspace.path().join("b.txt");
    let session = open(&running, workspace.path(), "steps: []").await;
    let (sessions, turns) = (
        "/v1/sessions".to_owned(),
        format!("/v1/sessions/{}/turns", session.id),
    );
    let opening = |name: &str, value: Value| {
        let mut body = json!({ "directory": workspace.path() });
        body[name] = value;
        (sessions.clone(), body)
    };
    let with = |attachment: Value| {
        let body = json!({ "prompt": "a", "attachments": [{ "name": "a", "text": "" }, attachment] });
        (turns.clone(), body)
    };
    let asking = |name: &str, value: Value| {
        let mut body = json!({ "prompt": "a" });
        body[name] = value;
        (turns.clone(), body)
    };
    let script = |text: &str| json!({ "name": "rehearsal", "script": text });
    use ErrorCode::{AgentNotFound, AgentNotReady, InvalidPrompt, InvalidRequest, PlanNotFound};
    for ((path, body), status, code, field) in [
        (
            opening("directory", json!("a")),
            422,
            InvalidRequest,
            Some("directory"),
        ),
        (
            opening("directory", json!("/no/such")),
            422,
            InvalidRequest,
            Some("directory"),
        ),
        (
            opening("directory", json!(file)),
            422,
            InvalidRequest,
            Some("directory"),
        ),
        (
            opening("agent", json!({ "name": "nobody" })),
            404,
            AgentNotFound,
            None,
        ),
        (
            opening("agent", json!({ "name": "model" })),
            424,
            AgentNotReady,
            None,
        ),
        (
            opening("agent", script("steps: [dance: 1]")),
            422,
            InvalidPrompt,
            None,
        ),
        (opening("plan", json!("x")), 404, PlanNotFound, Some("plan")),
        (
            opening("plan", json!("plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")),
            404,
            PlanNotFound,
            Some("plan"),
        ),
        (
            opening("rules", json!([{ "tool": "", "permission": "ask" }])),
            422,
            InvalidRequest,
            Some("rules.0.tool"),
        ),
        (
            opening("rules", json!([{ "tool": "*", "permission": "perhaps" }])),
            422,
            InvalidRequest,
            Some("rules[0].permission"),
        ),
        (asking("prompt", json!(" ")), 422, InvalidPrompt, None),
        (
            asking("agent", json!({ "name": "nobody" })),
            404,
            AgentNotFound,
            None,
        ),
        (asking("agent", script("steps: 1")), 422, InvalidPrompt, None),
        (asking("more", json!(1)), 422, InvalidRequest, Some("more")),
        (
            with(json!({ "name": "b" })),
            422,
            InvalidRequest,
            Some("attachments.1.text"),
        ),
        (
            with(json!({ "name": "b", "text": "", "base64": "" })),
            422,
            InvalidRequest,
            Some("attachments.1.text"),
        ),
        (
            with(json!({ "name": "b", "base64": "?" })),
            422,
            InvalidRequest,
            Some("attachments.1.base64"),
        ),
        (
            with(json!({ "name": "", "text": "" })),
            422,
            InvalidRequest,
            Some("attachments.1.name"),
        ),
    ] {
        let problem = post(&running, &path, &body).await.problem();
        let found = (problem.status, problem.code, problem.field.as_deref());
        assert_eq!(found, (status, code, field), "{body}: {}", problem.detail);
    }
    let untouched: Session = show(&running, &session).await;
    assert_eq!(untouched, session);
}

#[tokio::test]
async fn agents_say_what_they_are_and_what_they_lack() {
    let running = start().await;
    let list: AgentList = get(&running, "/v1/agents").await.json();
    let found: Vec<_> = list
        .agents
        .iter()
        .map(|agent| (agent.id.as_str(), agent.kind, agent.state.as_str(), agent.default))
        .collect();
    let expected = [
        ("model", AgentKind::Model, "missing", false),
        ("rehearsal", AgentKind::Rehearsal, "ready", true),
    ];
    // Others may be installed on this machine.
    for agent in expected {
        assert!(found.contains(&agent), "{found:?}");
    }
    let model = list.agents.iter().find(|agent| agent.id == "model").unwrap();
    let missing = model.missing.as_deref().unwrap();
    assert!(missing.contains("OPENAI_API_KEY"), "{missing}");
}

#[tokio::test]
async fn a_configuration_is_used_and_a_mistake_in_it_keeps_the_daemon_from_starting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    let text = "[sessions]\ndefault_agent = \"mine\"\n[model]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                model = \"some\"\n[agents.mine]\ncommand = [\"/bin/sh\"]\ndescription = \"Mine\"\n";
    std::fs::write(&file, text).unwrap();
    let change =
        |path: std::path::PathBuf| move |options: &mut daemon::Options| options.configuration = Some(path);
    let running = Running::start_with(SystemClock::shared(), change(file.clone())).await;
    let list: AgentList = get(&running, "/v1/agents").await.json();
    let found: Vec<_> = list
        .agents
        .iter()
        .map(|agent| (agent.id.as_str(), agent.kind, agent.state.as_str(), agent.default))
        .collect();
    let expected = [
        ("mine", AgentKind::Acp, "ready", true),
        // A server on this machine needs no key.
        ("model", AgentKind::Model, "ready", false),
        ("rehearsal", AgentKind::Rehearsal, "ready", false),
    ];
    assert_eq!(found, expected);

    for (text, expected) in [
        (
            "[model]\nmodle = \"a\"\n",
            "line 2, column 1: there is no key `modle` in `model`; did you mean `model`?",
        ),
        (
            "[sessions]\ndefault_agent = \"nobody\"\n",
            "`sessions.default_agent` is `nobody`, and there are only: model, rehearsal",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut options = options(&home);
        options.configuration = Some(file.clone());
        let error = daemon::Daemon::start(options, SystemClock::shared())
            .await
            .unwrap_err();
        assert!(matches!(error, daemon::StartError::Configuration(_)), "{error:?}");
        let said = error.to_string();
        assert!(said.contains(expected), "{said}");
    }
}

/// By whatever way somebody comes to a directory, its sessions are found there.
#[tokio::test]
async fn a_session_of_the_page_is_in_the_directory_that_a_link_leads_to() {
    let running = start().await;
    let here = workspace();
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    std::os::unix::fs::symlink(here.path(), &link).unwrap();
    let browser = Browser::sign_in(&running).await;
    let form_token = field(&browser.get("/sessions").await.body, "form_token");
    let begin = async |directory: &str| {
        let fields = [
            ("form_token", form_token.as_str()),
            ("directory", directory),
            ("agent", "rehearsal"),
            ("prompt", "hello"),
        ];
        let answer = browser.post("/sessions/start", &fields).await;
        answer.header("location").unwrap_or_default().to_owned()
    };
    assert!(
        begin(link.to_str().unwrap())
            .await
            .starts_with("/sessions/session_")
    );
    let list: SessionList = get(&running, "/v1/sessions").await.json();
    let directory = here.path().canonicalize().unwrap();
    assert_eq!(list.sessions[0].directory, directory.to_str().unwrap());
    // What is none is refused, and that is said.
    for (directory, why) in [
        ("/no/such", "`directory` cannot be used"),
        ("relative", "`directory` is not an absolute path"),
    ] {
        assert_eq!(begin(directory).await, "/sessions");
        let page = browser.get("/sessions").await.body;
        assert!(page.contains(why), "{page}");
    }
}

#[tokio::test]
async fn sessions_are_listed_newest_first_page_by_page() {
    let running = start().await;
    let (here, there) = (workspace(), workspace());
    let mut opened = Vec::new();
    for directory in [&here, &there, &here] {
        opened.push(open(&running, directory.path(), "steps: []").await.id);
    }
    let ids = |list: &SessionList| {
        let ids = list.sessions.iter().map(|session| session.id.clone());
        ids.collect::<Vec<_>>()
    };
    let list: SessionList = get(&running, "/v1/sessions").await.json();
    let newest_first = [opened[2].clone(), opened[1].clone(), opened[0].clone()];
    assert_eq!((ids(&list).as_slice(), list.next), (&newest_first[..], None));
    let page: SessionList = get(&running, "/v1/sessions?limit=2").await.json();
    assert_eq!(
        (ids(&page).as_slice(), page.next.as_deref()),
        (&newest_first[..2], Some(opened[1].as_str()))
    );
    let rest: SessionList = get(&running, &format!("/v1/sessions?before={}", opened[1]))
        .await
        .json();
    assert_eq!((ids(&rest), rest.next), (vec![opened[0].clone()], None));
    let below = format!("/v1/sessions?directory={}", there.path().display());
    let of_there: SessionList = get(&running, &below).await.json();
    assert_eq!(ids(&of_there), [opened[1].clone()]);
    let idle: SessionList = get(&running, "/v1/sessions?state=idle").await.json();
    assert_eq!(idle.sessions.len(), 3);
    let archive = format!("/v1/sessions/{}/archive", opened[0]);
    let put_away: Session = post(&running, &archive, &json!({ "archived": true }))
        .await
        .json();
    assert_eq!(
        (put_away.state, put_away.archived),
        (SessionState::Archived, true)
    );
    let list: SessionList = get(&running, "/v1/sessions").await.json();
    assert_eq!(ids(&list), newest_first[..2]);
    let archived: SessionList = get(&running, "/v1/sessions?state=archived").await.json();
    assert_eq!(archived.sessions, std::slice::from_ref(&put_away));
    let refused = try_prompt(&running, &put_away, &json!({ "prompt": "a" }))
        .await
        .problem();
    assert_eq!((refused.status, refused.code), (409, ErrorCode::SessionArchived));
    assert_eq!(current(&refused), &put_away);
}
