//! Short ids over HTTP: what they stand for.

use std::path::Path;

use protocol::{Changeset, ErrorCode, IdMatches, Session, SessionState};
use serde_json::json;

use crate::client::percent_encode;
use crate::plans::{get, open, post, start, submit, workspace};
use crate::running::Running;
use crate::sessions::{self, prompt, until};

async fn resolve(running: &Running, text: &str, query: &str) -> IdMatches {
    let path = format!("/v1/ids/{}?{query}", percent_encode(text));
    let answer = get(running, &path).await;
    assert_eq!(answer.status, 200, "{text} {query}: {answer:?}");
    answer.json()
}

fn matches(ids: &[&str]) -> IdMatches {
    IdMatches {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        total: ids.len() as u64,
    }
}

fn end(id: &str) -> &str {
    &id[id.len() - 8..]
}

fn of_directory(kind: &str, directory: &Path) -> String {
    format!(
        "kind={kind}&directory={}",
        percent_encode(&directory.display().to_string())
    )
}

#[tokio::test]
async fn a_part_of_an_id_stands_for_all_that_have_it() {
    let running = start().await;
    let (one, other) = (workspace(), workspace());
    let first = open(&running, one.path(), &json!({})).await.id;
    let second = open(&running, other.path(), &json!({})).await.id;
    let unknown = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (text, expected) in [
        (end(&first), &[first.as_str()][..]),
        (&end(&second).to_lowercase(), &[&second]),
        (&second[..second.len() - 1], &[&second]),
        (first.strip_prefix("plan_").unwrap(), &[&first]),
        (&first, &[&first]),
        // The newest first.
        ("plan_0", &[&second, &first]),
        (unknown, &[]),
        ("job_0", &[]),
        ("nothing", &[]),
        // A name only of jobs.
        ("last", &[]),
    ] {
        assert_eq!(
            resolve(&running, text, "kind=plan").await,
            matches(expected),
            "{text}"
        );
    }
    assert_eq!(resolve(&running, &first, "kind=job").await, matches(&[]));

    // All are counted, and a few are named.
    for _ in 0..4 {
        open(&running, one.path(), &json!({})).await;
    }
    let many = resolve(&running, "0", "kind=plan").await;
    assert_eq!((many.ids.len(), many.total), (5, 6));
}

#[tokio::test]
async fn the_newest_has_a_name() {
    let running = start().await;
    let (one, other) = (workspace(), workspace());
    for (text, query) in [
        ("last", "kind=job".to_owned()),
        ("@", of_directory("plan", one.path())),
        ("@", of_directory("session", one.path())),
    ] {
        assert_eq!(resolve(&running, text, &query).await, matches(&[]), "{query}");
    }

    let job = json!({ "command": { "shell": "true", "directory": "/" } });
    submit(&running, &job).await;
    let job = submit(&running, &job).await.id;
    assert_eq!(resolve(&running, "last", "kind=job").await, matches(&[&job]));
    assert_eq!(resolve(&running, end(&job), "kind=job").await, matches(&[&job]));

    open(&running, one.path(), &json!({})).await;
    let plan = open(&running, one.path(), &json!({})).await.id;
    open(&running, other.path(), &json!({})).await;
    let below = of_directory("plan", &one.path().join("src"));
    assert_eq!(resolve(&running, "@", &below).await, matches(&[&plan]));
    assert_eq!(
        resolve(&running, "@", "kind=plan&directory=/proc").await,
        matches(&[])
    );

    let busy = sessions::open(&running, one.path(), "steps: [ask: 'May I?']").await;
    prompt(&running, &busy, "go").await;
    until(&running, &busy, SessionState::Asking).await;
    let session = sessions::open(&running, one.path(), "steps: []").await;
    let here = of_directory("session", &one.path().join("src"));
    assert_eq!(resolve(&running, "@", &here).await, matches(&[&session.id]));
    let is_running = format!("{here}&running=true");
    assert_eq!(resolve(&running, "@", &is_running).await, matches(&[&busy.id]));
    // A directory above is another one.
    let above = of_directory("session", one.path().parent().unwrap());
    assert_eq!(resolve(&running, "@", &above).await, matches(&[]));

    // An archived session is not the newest one, and is found by its id.
    let path = format!("/v1/sessions/{}/archive", session.id);
    let archived: Session = post(&running, &path, &json!({ "archived": true })).await.json();
    assert_eq!(archived.state, SessionState::Archived);
    assert_eq!(resolve(&running, "@", &here).await, matches(&[&busy.id]));
    assert_eq!(
        resolve(&running, end(&session.id), "kind=session").await,
        matches(&[&session.id])
    );
}

#[tokio::test]
async fn what_belongs_to_something_is_looked_for_there() {
    let running = start().await;
    let one = workspace();
    let plan = open(&running, one.path(), &json!({})).await.id;
    let path = format!("/v1/plans/{plan}/changesets");
    let changeset: Changeset = post(&running, &path, &json!({ "tool": "editor" })).await.json();
    let of = format!("kind=changeset&of={plan}");
    assert_eq!(
        resolve(&running, end(&changeset.id), &of).await,
        matches(&[&changeset.id])
    );

    let session = sessions::open(&running, one.path(), "steps: [ask: 'May I?']").await;
    let begun = prompt(&running, &session, "go").await.turn;
    until(&running, &session, SessionState::Asking).await;
    let waiting = prompt(&running, &session, "then").await.turn;
    let of = format!("kind=turn&of={}", session.id);
    for turn in [&begun, &waiting] {
        assert_eq!(resolve(&running, end(&turn.id), &of).await, matches(&[&turn.id]));
    }
    assert_eq!(
        resolve(&running, "turn_0", &of).await,
        matches(&[&begun.id, &waiting.id])
    );

    let unknown = "session_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (path, status, code) in [
        ("0000?kind=turn".to_owned(), 400, ErrorCode::InvalidQuery),
        (format!("0000?kind=turn&of={plan}"), 400, ErrorCode::InvalidQuery),
        (
            format!("0000?kind=turn&of={unknown}"),
            404,
            ErrorCode::SessionNotFound,
        ),
        ("0000".to_owned(), 400, ErrorCode::InvalidQuery),
        ("%FF?kind=job".to_owned(), 400, ErrorCode::InvalidQuery),
        ("0000?kind=weather".to_owned(), 400, ErrorCode::InvalidQuery),
        ("@?kind=plan".to_owned(), 400, ErrorCode::InvalidQuery),
        (
            "@?kind=session&directory=here".to_owned(),
            400,
            ErrorCode::InvalidQuery,
        ),
    ] {
        let problem = get(&running, &format!("/v1/ids/{path}")).await.problem();
        assert_eq!((problem.status, problem.code), (status, code), "{path}");
    }
}
