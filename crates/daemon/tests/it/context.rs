//! Questions about code over HTTP: what is found, what is refused and how, and what strategies that fail cost.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kernel::SystemClock;
use protocol::{
    BreakerList, BreakerState, ContextAnswer, ContextIndex, ContextIndexList, ContextIndexRemoved,
    ContextIndexState, ContextStrategy, ContextStrategyInfo, ContextStrategyList, ContextStrategyState,
    ErrorCode,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::plans::{get, post, start};
use crate::running::Running;

/// How long an index of a handful of files may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline of questions whose answer matters: much more than they need.
const DEADLINE_MS: u64 = 60_000;

/// A repository of git in which one function is defined, used and described.
pub(crate) fn repository() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in [
        (
            "src/parse.rs",
            "/// Reads what was written down.\npub fn parse_config(text: &str) -> usize {\n    text.len()\n}\n",
        ),
        (
            "src/main.rs",
            "mod parse;\n\nfn main() {\n    println!(\"{}\", parse::parse_config(\"a\"));\n}\n",
        ),
        ("notes.md", "Nothing of interest.\n"),
        (".gitignore", "target\n"),
        ("target/parse_config.txt", "parse_config\n"),
    ] {
        write(&directory, path, text);
    }
    let script = "git init -q && git add -A && \
                  git -c user.name=a -c user.email=a@b.invalid commit -qm 'Read the configuration'";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(directory.path())
        .env_remove("GIT_DIR")
        .status();
    assert!(made.unwrap().success());
    directory
}

pub(crate) fn write(directory: &TempDir, path: &str, text: &str) {
    let path = directory.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A daemon with this configuration.
pub(crate) async fn start_with(configuration: &str) -> (Running, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    fs::write(&file, configuration).unwrap();
    let running = Running::start_with(SystemClock::shared(), |options| {
        options.languages.environment = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        options.configuration = Some(file);
    });
    (running.await, directory)
}

/// Asks, with a deadline that no machine breaks unless the question says otherwise.
pub(crate) async fn ask(running: &Running, body: Value) -> ContextAnswer {
    let mut question = json!({ "deadline_ms": DEADLINE_MS });
    let members = question.as_object_mut().unwrap();
    members.extend(body.as_object().unwrap().clone());
    let answer = post(running, "/v1/context", &question).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The files that pieces are from, each once, in order.
pub(crate) fn files(answer: &ContextAnswer) -> Vec<&str> {
    let mut files: Vec<&str> = answer
        .fragments
        .iter()
        .map(|fragment| fragment.path.as_str())
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

pub(crate) async fn indexes(running: &Running) -> Vec<ContextIndex> {
    let list: ContextIndexList = get(running, "/v1/context/indexes").await.json();
    list.indexes
}

/// The index of a tree, when it can be used.
pub(crate) async fn ready_index(running: &Running, root: &Path) -> ContextIndex {
    let root = root.canonicalize().unwrap().display().to_string();
    let began = Instant::now();
    loop {
        let found = indexes(running).await;
        let ready = found
            .iter()
            .find(|index| index.root == root && index.state == ContextIndexState::Ready);
        if let Some(ready) = ready {
            return ready.clone();
        }
        assert!(began.elapsed() < PATIENCE, "the index is not ready: {found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn strategy<'a>(answer: &'a ContextAnswer, name: &str) -> &'a ContextStrategy {
    let found = answer.strategies.iter().find(|strategy| strategy.id == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", answer.strategies))
}

/// An answer without what differs from run to run.
fn lasting(answer: &ContextAnswer) -> Value {
    json!({ "fragments": answer.fragments, "text": answer.text, "tokens": answer.tokens, "left_out": answer.left_out })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_a_question_is_found_with_and_without_an_index() {
    let (running, workspace) = (start().await, repository());
    let root = workspace.path().canonicalize().unwrap();
    // Any directory of the repository stands for it.
    let question = json!({ "directory": root.join("src"), "query": "parse_config", "budget_tokens": 2000 });
    let first = ask(&running, question.clone()).await;
    assert_eq!(
        (first.root.as_str(), first.plan.as_deref()),
        (root.to_str().unwrap(), None)
    );
    assert_eq!(first.budget_tokens, 2000);
    assert!(first.tokens > 0 && first.tokens <= 2000, "{first:?}");
    let definition = first
        .fragments
        .iter()
        .find(|fragment| fragment.path == "src/parse.rs");
    let definition = definition.unwrap_or_else(|| panic!("{first:?}"));
    assert!(definition.text.contains("pub fn parse_config"), "{definition:?}");
    assert!(
        definition.parts.iter().any(|part| part.strategy == "keyword"),
        "{definition:?}"
    );
    assert!(first.text.contains("src/parse.rs"), "{}", first.text);
    // What git ignores is not looked into.
    assert!(
        !files(&first).iter().any(|path| path.starts_with("target")),
        "{first:?}"
    );
    assert_eq!(strategy(&first, "keyword").state, ContextStrategyState::Ran);

    let index = ready_index(&running, &root).await;
    assert!(index.files >= 3 && index.source_bytes > 0, "{index:?}");
    let second = ask(&running, question).await;
    assert!(files(&second).contains(&"src/parse.rs"), "{second:?}");
    assert_eq!(second.index.state, ContextIndexState::Ready);
    let status: protocol::Status = get(&running, "/v1/status").await.json();
    assert_eq!(status.context.unwrap().indexes, 1);

    // A new file is found at once, though the index did not know it.
    write(&workspace, "src/later.rs", "pub fn walrustoday() {}\n");
    let later = json!({ "directory": root, "query": "walrustoday" });
    assert_eq!(files(&ask(&running, later).await), ["src/later.rs"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_at_the_same_time_get_the_same_answer() {
    let (running, workspace) = (start().await, repository());
    let question = json!({
        "directory": workspace.path(), "query": "parse_config main", "only": ["keyword"], "tokenizer": "cl100k",
    });
    ask(&running, question.clone()).await;
    ready_index(&running, workspace.path()).await;
    let (one, two, three) = tokio::join!(
        ask(&running, question.clone()),
        ask(&running, question.clone()),
        ask(&running, question.clone())
    );
    assert!(!one.fragments.is_empty(), "{one:?}");
    assert_eq!(lasting(&one), lasting(&two));
    assert_eq!(lasting(&one), lasting(&three));
    assert_eq!(indexes(&running).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_cannot_be_understood_is_refused_with_its_member() {
    use ErrorCode::{
        ContextEmpty, ContextTooLarge, FocusNotFound, InvalidRequest, PathNotAllowed, PlanNotFound,
        StrategyNotFound, WorkspaceUnusable,
    };
    let (running, workspace) = (start().await, repository());
    let root = workspace.path();
    let with = |more: Value| {
        let mut body = json!({ "directory": root, "query": "parse_config" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let unknown = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let many: Vec<String> = (0..65).map(|number| format!("{number}.rs")).collect();
    for (body, code, field) in [
        (json!({ "query": "a" }), InvalidRequest, Some("directory")),
        (
            with(json!({ "plan": unknown })),
            InvalidRequest,
            Some("directory"),
        ),
        (
            json!({ "directory": "src", "query": "a" }),
            InvalidRequest,
            Some("directory"),
        ),
        (
            json!({ "directory": "/a\0b", "query": "a" }),
            InvalidRequest,
            Some("directory"),
        ),
        (
            json!({ "directory": root.join("none"), "query": "a" }),
            WorkspaceUnusable,
            None,
        ),
        (
            json!({ "directory": root.join("none/.."), "query": "a" }),
            WorkspaceUnusable,
            None,
        ),
        // The home of the daemon is somewhere below it.
        (json!({ "directory": "/", "query": "a" }), WorkspaceUnusable, None),
        (
            json!({ "directory": running.home.plans(), "query": "a" }),
            WorkspaceUnusable,
            None,
        ),
        (json!({ "plan": "x", "query": "a" }), PlanNotFound, Some("plan")),
        (json!({ "plan": unknown, "query": "a" }), PlanNotFound, None),
        (with(json!({ "query": " \n" })), ContextEmpty, Some("query")),
        (with(json!({ "query": 7 })), InvalidRequest, Some("query")),
        (
            with(json!({ "query": "a".repeat(16 * 1024 + 1) })),
            ContextTooLarge,
            Some("query"),
        ),
        (with(json!({ "focus": many })), ContextTooLarge, Some("focus")),
        (
            with(json!({ "focus": ["none.rs"] })),
            FocusNotFound,
            Some("focus"),
        ),
        (with(json!({ "focus": ["src"] })), FocusNotFound, Some("focus")),
        (with(json!({ "focus": [""] })), PathNotAllowed, Some("focus")),
        (with(json!({ "focus": ["../x"] })), PathNotAllowed, Some("focus")),
        (
            with(json!({ "focus": ["/etc/passwd"] })),
            PathNotAllowed,
            Some("focus"),
        ),
        (
            with(json!({ "budget_tokens": 1_000_001 })),
            ContextTooLarge,
            Some("budget_tokens"),
        ),
        (
            with(json!({ "budget_tokens": -1 })),
            InvalidRequest,
            Some("budget_tokens"),
        ),
        (
            with(json!({ "deadline_ms": 120_001 })),
            ContextTooLarge,
            Some("deadline_ms"),
        ),
        (
            with(json!({ "deadline_ms": 0 })),
            InvalidRequest,
            Some("deadline_ms"),
        ),
        (
            with(json!({ "only": ["keyword", "grep"] })),
            StrategyNotFound,
            Some("only.1"),
        ),
        (
            with(json!({ "without": ["grep"] })),
            StrategyNotFound,
            Some("without.0"),
        ),
        (
            with(json!({ "tokenizer": "words" })),
            InvalidRequest,
            Some("tokenizer"),
        ),
        (with(json!({ "colour": "red" })), InvalidRequest, Some("colour")),
    ] {
        let problem = post(&running, "/v1/context", &body).await.problem();
        let found = (problem.code, problem.field.as_deref());
        assert_eq!(found, (code, field), "{body}: {problem:?}");
    }
    for path in ["/v1/context/indexes/rebuild", "/v1/context/indexes/remove"] {
        for (body, code) in [
            (json!({ "directory": "src" }), InvalidRequest),
            (json!({}), InvalidRequest),
            (json!({ "directory": root.join("none") }), WorkspaceUnusable),
        ] {
            let problem = post(&running, path, &body).await.problem();
            assert_eq!(problem.code, code, "{path} {body}: {problem:?}");
        }
    }
    let numbers = get(&running, "/metrics").await.body;
    // Those that got as far as the service.
    let refused = r#"tidelock_context_questions_total{outcome="refused"} 17"#;
    assert!(numbers.lines().any(|line| line == refused), "{numbers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_an_answer_too() {
    let (running, workspace) = (start().await, repository());
    let root = workspace.path();
    let nothing = ask(
        &running,
        json!({ "directory": root, "query": "zyzzyva", "only": ["keyword"] }),
    )
    .await;
    assert_eq!(
        (files(&nothing).as_slice(), nothing.tokens),
        (&[][..], 0),
        "{nothing:?}"
    );
    let none = ask(
        &running,
        json!({ "directory": root, "query": "parse_config", "budget_tokens": 0 }),
    )
    .await;
    assert_eq!((files(&none).as_slice(), none.tokens), (&[][..], 0), "{none:?}");
    // A file in focus is enough.
    let focus = json!({ "directory": root.join("src"), "focus": ["parse.rs", root.join("src/main.rs")] });
    ask(&running, focus).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_removed_and_made_anew() {
    let (running, workspace) = (start().await, repository());
    let root = workspace.path().canonicalize().unwrap();
    let directory = json!({ "directory": root.join("src") });
    let question = json!({ "directory": root, "query": "parse_config", "only": ["keyword"] });
    let remove = async || -> ContextIndexRemoved {
        let answer = post(&running, "/v1/context/indexes/remove", &directory).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let removed = |removed| ContextIndexRemoved {
        root: root.display().to_string(),
        removed,
    };
    assert_eq!(remove().await, removed(false));
    ask(&running, question.clone()).await;
    let made = ready_index(&running, &root).await;
    assert_eq!(remove().await, removed(true));
    assert_eq!(indexes(&running).await, []);
    assert!(files(&ask(&running, question.clone()).await).contains(&"src/parse.rs"));

    let rebuilt = post(&running, "/v1/context/indexes/rebuild", &directory).await;
    assert_eq!(rebuilt.status, 200, "{rebuilt:?}");
    assert_eq!(rebuilt.json::<ContextIndex>().root, root.display().to_string());
    assert!(files(&ask(&running, question.clone()).await).contains(&"src/parse.rs"));
    assert_eq!(ready_index(&running, &root).await.files, made.files);
    // The next daemon finds it on disk.
    let running = running.restart().await;
    assert_eq!(indexes(&running).await, []);
    assert!(files(&ask(&running, question).await).contains(&"src/parse.rs"));
    assert_eq!(ready_index(&running, &root).await.files, made.files);
}

/// What is left of the breaker of a strategy.
async fn breaker(running: &Running, name: &str) -> protocol::Breaker {
    let list: BreakerList = get(running, "/v1/breakers").await.json();
    let found = list.breakers.iter().find(|breaker| breaker.id == name);
    found.unwrap_or_else(|| panic!("{list:?}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strategy_that_fails_three_times_is_not_asked_and_the_others_answer() {
    let configuration = r#"
        [context.strategies.recent]
        enabled = false
        timeout_ms = 1234

        [[context.commands]]
        name = "mine"
        command = ["sh", "-c", "echo it is broken >&2; exit 3"]
        timeout_ms = 60000
    "#;
    let (running, _configuration) = start_with(configuration).await;
    let workspace = repository();
    // It is listed before anybody has asked.
    assert_eq!(
        breaker(&running, "context/mine").await.state,
        BreakerState::Closed
    );
    let list: ContextStrategyList = get(&running, "/v1/context/strategies").await.json();
    let info = |id: &str, enabled, timeout_ms| ContextStrategyInfo {
        id: id.to_owned(),
        breaker: format!("context/{id}"),
        enabled,
        timeout_ms,
    };
    for expected in [
        info("keyword", true, 2000),
        info("recent", false, 1234),
        info("mine", true, 60_000),
    ] {
        assert!(list.strategies.contains(&expected), "{list:?}");
    }

    let question = json!({ "directory": workspace.path(), "query": "parse_config" });
    let mine = async |more: Value| {
        let mut body = question.clone();
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = ask(&running, body).await;
        assert!(files(&answer).contains(&"src/parse.rs"), "{answer:?}");
        strategy(&answer, "mine").clone()
    };
    // Whoever does not ask it does no harm to it.
    let without = mine(json!({ "without": ["mine"] })).await;
    assert_eq!((without.state, without.hits), (ContextStrategyState::LeftOut, 0));
    let only = mine(json!({ "only": ["keyword"] })).await;
    assert_eq!(only.state, ContextStrategyState::LeftOut);
    for _ in 0..3 {
        let failed = mine(json!({})).await;
        assert_eq!(failed.state, ContextStrategyState::Failed);
        let why = failed.why.unwrap();
        assert!(why.contains("it is broken"), "{why}");
    }
    let open = mine(json!({})).await;
    assert_eq!(open.state, ContextStrategyState::Open);
    assert!(open.retry_after_ms.is_some_and(|wait| wait > 0), "{open:?}");
    assert_eq!(breaker(&running, "context/mine").await.state, BreakerState::Open);
    assert_eq!(
        breaker(&running, "context/keyword").await.state,
        BreakerState::Closed
    );

    let reset = post(&running, "/v1/breakers/context%2Fmine/reset", &json!({})).await;
    assert_eq!(reset.status, 200, "{reset:?}");
    assert_eq!(mine(json!({})).await.state, ContextStrategyState::Failed);
    let numbers = get(&running, "/metrics").await.body;
    for line in [
        r#"tidelock_context_strategies_total{strategy="mine",outcome="failed"} 4"#,
        r#"tidelock_context_strategies_total{strategy="mine",outcome="open"} 1"#,
        r#"tidelock_context_questions_total{outcome="answered"} 7"#,
    ] {
        assert!(
            numbers.lines().any(|found| found == line),
            "{line} is not in\n{numbers}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_answers_is_a_strategy_like_the_others() {
    let configuration = r#"
        [[context.commands]]
        name = "mine"
        command = ["sh", "-c", 'cat > /dev/null; echo "{\"hits\":[{\"path\":\"notes.md\",\"score\":1,\"why\":\"mine\"}]}"']
        timeout_ms = 60000
        weight = 2
    "#;
    let (running, _configuration) = start_with(configuration).await;
    let workspace = repository();
    let question = json!({ "directory": workspace.path(), "query": "anything", "only": ["mine"] });
    let answer = ask(&running, question).await;
    assert_eq!(files(&answer), ["notes.md"], "{answer:?}");
    let part = &answer.fragments[0].parts[0];
    assert_eq!((part.strategy.as_str(), part.rank), ("mine", 1));
}

#[tokio::test]
async fn a_mistake_in_the_configuration_keeps_the_daemon_from_starting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    for (text, expected) in [
        (
            "[context.strategies.grep]\n",
            "`context.strategies.grep`: there is no strategy of this name",
        ),
        (
            "[context]\nworkers = 0\n",
            "`context.workers` is 0, and must lie between 1 and 64",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut options = crate::running::options(&home);
        options.configuration = Some(file.clone());
        let started = daemon::Daemon::start(options, SystemClock::shared()).await;
        let said = started.unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}
