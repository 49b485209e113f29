//! Answers that are late, large, out of date or in other units.

use std::{net::TcpListener, sync::Arc};

use lsp::{
    AskError, ConfigNote, PositionEncoding, QueryError, QueryResult, ReadyState, RequestError, ServerState,
    WhenIndexing,
};
use serde_json::{Value, json};

use crate::{
    languages::watches_all,
    languages_house::{House, Plan, command, definition, diagnostics, found, hover, hover_text},
    servers_tree::{Tree, everything, nothing},
    support::{live, soon, until},
};

#[tokio::test]
async fn a_server_that_reads_the_workspace_says_so_or_is_waited_for() {
    let tree = Tree::new();
    let done = tree.path("done");
    let script = json!({"progress": {"title": "Indexing", "steps": 1, "hold_until_file": done}});
    let house = Plan::with(script).build_in(tree).await;
    house.write("a.fault", "1");
    let file = house.file("a.fault");
    let progress = || house.view().readiness;
    house.ask(symbols(&house)).await.unwrap_err();
    until("work has begun", || {
        matches!(
            progress(),
            Some(ReadyState::Indexing {
                percentage: Some(100),
                ..
            })
        )
    })
    .await;
    let refused = house
        .ask(lsp::Ask {
            when_indexing: WhenIndexing::Refuse,
            ..hover(&file)
        })
        .await;
    let expected = ReadyState::Indexing {
        title: "Indexing".to_owned(),
        message: Some("1/1".to_owned()),
        percentage: Some(100),
    };
    match refused {
        Err(AskError::NotReady { progress, .. }) => assert_eq!(progress, expected),
        other => panic!("{other:?}"),
    }
    let (answered, ()) = tokio::join!(house.ask(hover(&file)), async {
        until("somebody waits", || house.view().status.leases == 1).await;
        assert_eq!(house.heard("textDocument/hover"), 0);
        std::fs::write(&done, "").unwrap();
    });
    assert_eq!(hover_text(&answered.unwrap()), "version 1, 1 bytes");
    assert_eq!(progress(), Some(ReadyState::Ready));
    house.leave().await;
}

/// A question that needs nothing of the workspace, and that the fault server does not offer.
fn symbols(house: &House) -> lsp::Ask {
    let file = house.file("a.fault");
    let path = Arc::from(file.as_path());
    crate::languages_house::question(lsp::Query::DocumentSymbols { path }, &file)
}

#[tokio::test]
async fn diagnostics_are_those_of_the_text_on_disk() {
    for how in ["pull", "push", "both"] {
        for sync in ["full", "incremental"] {
            let script = json!({"diagnostics": how, "sync": sync});
            let house = Plan::with(script).build().await;
            house.write("a.fault", "");
            for round in 0..20_usize {
                let text: String = (0..round % 4).map(|_| "é😀 ERROR\n").collect();
                house.write("a.fault", &text);
                let answered = house.ask(diagnostics(&house.file("a.fault"))).await.unwrap();
                let places: Vec<(u32, u32)> = found(&answered)
                    .iter()
                    .map(|found| found.range.start)
                    .map(|start| (start.line, start.column))
                    .collect();
                let expected: Vec<(u32, u32)> = (1..).take(round % 4).map(|line| (line, 4)).collect();
                assert_eq!(places, expected, "{how}, {sync}, round {round}");
            }
            house.leave().await;
        }
    }
}

/// Pushes as a server might that is behind.
async fn push(house: &House, version: Option<i64>, messages: &[&str]) {
    let place = json!({"line": 0, "character": 0});
    let items: Vec<Value> = messages
        .iter()
        .map(|message| json!({"range": {"start": place, "end": place}, "message": message}))
        .collect();
    let uri = lsp::uri_of_path(&house.file("a.fault")).unwrap();
    let mut params = json!({"uri": uri, "diagnostics": items});
    if let Some(version) = version {
        params["version"] = json!(version);
    }
    let said = json!({"method": "textDocument/publishDiagnostics", "params": params});
    house.request("fault/say", said).await;
}

fn messages(answered: &lsp::Answered) -> Vec<&str> {
    found(answered)
        .iter()
        .map(|found| found.message.as_str())
        .collect()
}

#[tokio::test]
async fn a_push_for_another_version_is_not_used() {
    let house = Plan::with(json!({"diagnostics": "none"})).build().await;
    house.write("a.fault", "one");
    house.hover("a.fault").await.unwrap();
    let file = house.file("a.fault");
    house.write("a.fault", "two");
    let (answered, ()) = tokio::join!(house.ask(diagnostics(&file)), async {
        until("the new text is told", || {
            house.heard("textDocument/didChange") == 1
        })
        .await;
        push(&house, Some(1), &["of the first text"]).await;
        // The answer to this request is read after the push before it.
        assert_eq!(house.view().status.leases, 1, "it was taken");
        push(&house, Some(2), &["of the second text"]).await;
    });
    let answered = answered.unwrap();
    assert_eq!(messages(&answered), ["of the second text"]);
    assert_eq!(answered.answer.origins[0].document_version, Some(2));
    // Servers that name versions take back without one what they said about a document that was closed.
    push(&house, None, &[]).await;
    let answered = house.ask(diagnostics(&file)).await.unwrap();
    assert_eq!(messages(&answered), ["of the second text"]);
    house.leave().await;
}

#[tokio::test]
async fn a_server_that_wants_to_be_asked_only_later_is_asked_then() {
    let house = Plan::with(json!({"diagnostics": "none"})).build().await;
    house.write("a.fault", "ERROR");
    let (answered, ()) = tokio::join!(house.ask(diagnostics(&house.file("a.fault"))), async {
        until("it is told of the file", || {
            house.heard("textDocument/didOpen") == 1
        })
        .await;
        let registration = json!({"id": "d", "method": "textDocument/diagnostic", "registerOptions": {}});
        let said = json!({
            "method": "client/registerCapability",
            "kind": "request",
            "params": {"registrations": [registration]},
        });
        house.request("fault/say", said).await;
    });
    assert_eq!(found(&answered.unwrap()).len(), 1);
    house.leave().await;
}

#[tokio::test]
async fn a_push_from_before_another_file_changed_is_not_used() {
    for watches in [json!([]), json!([watches_all()])] {
        let script = json!({"diagnostics": "none", "after_initialized": watches});
        let house = Plan::with(script).build().await;
        house.write("a.fault", "one");
        house.write("warm.fault", "one");
        house.write("closed.txt", "one");
        house.hover("warm.fault").await.unwrap();
        house.hover("a.fault").await.unwrap();
        let file = house.file("a.fault");
        let mut version = 1;
        push(&house, Some(version), &["1"]).await;
        let again = house.ask(diagnostics(&file)).await.unwrap();
        assert_eq!(messages(&again), ["1"], "nothing has changed");
        for name in ["warm.fault", "closed.txt", "new.txt"] {
            house.write(name, "two");
            let text = format!("after {name}");
            let (answered, ()) = tokio::join!(house.ask(diagnostics(&file)), async {
                version += 1;
                let told = |version| {
                    let history = house.histories();
                    history["a.fault"].last() == Some(&("change".to_owned(), Some(version)))
                };
                until("the server has to look again", || told(version)).await;
                push(&house, Some(version), &[&text]).await;
            });
            assert_eq!(messages(&answered.unwrap()), [text.as_str()]);
            // From now on it counts, however often anybody asks about any file.
            house.hover("warm.fault").await.unwrap();
            let again = house.ask(diagnostics(&file)).await.unwrap();
            assert_eq!(messages(&again), [text.as_str()], "nothing has changed");
        }
        let documents = house.documents_in_server().await;
        assert_eq!(documents["a.fault"], (4, "one".to_owned()));
        house.leave().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_watch_is_made_to_look_again_once() {
    for (watches, looks) in [(json!([]), 1), (json!([watches_all()]), 0)] {
        let house = Plan::with(json!({"after_initialized": watches})).build().await;
        house.write("a.fault", "one");
        house.write("header.txt", "one");
        let file = house.file("a.fault");
        house.ask(definition(&file, 1, 1)).await.unwrap();
        assert_eq!(house.heard("textDocument/didChange"), 0);
        for round in 1..=3 {
            house.write("header.txt", &"x".repeat(round));
            for _ in 0..3 {
                house.ask(definition(&file, 1, 1)).await.unwrap();
            }
            assert_eq!(house.heard("textDocument/didChange"), looks * round, "{watches}");
        }
        house.leave().await;
    }
}

#[tokio::test]
async fn a_question_for_diagnostics_follows_a_document_that_moves_on() {
    let house = Plan::with(json!({"diagnostics": "none"})).build().await;
    house.write("a.fault", "one");
    let file = house.file("a.fault");
    let (answered, ()) = tokio::join!(house.ask(diagnostics(&file)), async {
        until("it is told", || house.heard("textDocument/didOpen") == 1).await;
        house.write("a.fault", "two");
        house.hover("a.fault").await.unwrap();
        push(&house, Some(2), &["of the second text"]).await;
    });
    let answered = answered.unwrap();
    assert_eq!(messages(&answered), ["of the second text"]);
    assert_eq!(answered.answer.origins[0].document_version, Some(2));
    house.leave().await;
}

#[tokio::test]
async fn people_see_the_same_columns_in_every_encoding() {
    for (encoding, in_protocol) in [
        (PositionEncoding::Utf8, 11),
        (PositionEncoding::Utf16, 6),
        (PositionEncoding::Utf32, 4),
    ] {
        let name = match encoding {
            PositionEncoding::Utf8 => "utf-8",
            PositionEncoding::Utf16 => "utf-16",
            PositionEncoding::Utf32 => "utf-32",
        };
        let script = json!({"position_encoding": name, "sync": "incremental", "diagnostics": "pull"});
        let house = Plan::with(script).build().await;
        house.write("a.fault", "é😀😀 ERROR é\n");
        let file = house.file("a.fault");
        // The change lies behind all of it.
        house.hover("a.fault").await.unwrap();
        house.write("a.fault", "é😀😀 ERROR é ü\n");
        let answered = house.ask(diagnostics(&file)).await.unwrap();
        let range = found(&answered)[0].range;
        assert_eq!(range.to_string(), "1:5-1:10", "{name}");
        let answered = house.ask(definition(&file, 1, 5)).await.unwrap();
        let QueryResult::Locations(list) = &answered.answer.result else {
            panic!("{answered:?}");
        };
        assert_eq!(list.items[0].range.to_string(), "1:5-1:5", "{name}");
        let said = house.recorded();
        let asked = said
            .iter()
            .find(|message| message["method"] == "textDocument/definition");
        let character = &asked.unwrap()["params"]["position"]["character"];
        assert_eq!(character, in_protocol, "{name}");
        let documents = house.documents_in_server().await;
        assert_eq!(documents["a.fault"].1, "é😀😀 ERROR é ü\n", "{name}");
        house.leave().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_own_question_only() {
    let fault = json!({"fault": "oversized", "bytes": 65 * 1024 * 1024, "times": 1});
    let house = Plan::with(json!({"on": {"textDocument/hover": fault}}))
        .build()
        .await;
    house.write("a.fault", "1");
    let file = house.file("a.fault");
    let (hovered, defined) = tokio::join!(house.ask(hover(&file)), house.ask(definition(&file, 1, 1)));
    assert!(defined.is_ok(), "{defined:?}");
    let is_oversized = matches!(
        hovered,
        Err(AskError::Request {
            source: RequestError::Oversized { .. },
            ..
        })
    );
    assert!(is_oversized, "{hovered:?}");
    assert_eq!(house.hover("a.fault").await.unwrap().1, 1);
    house.leave().await;
}

#[tokio::test]
async fn sockets_are_as_good_as_pipes() {
    let tree = Tree::new();
    let mut command_line = command(&tree);
    command_line.extend(["--tcp".to_owned(), lsp::PORT_PLACEHOLDER.to_owned()]);
    let plan = Plan {
        configuration: json!({"command": command_line, "transport": {"tcp_spawned": "127.0.0.1:0"}}),
        ..Plan::with(json!({}))
    };
    let house = plan.build_in(tree).await;
    house.write("a.fault", "12345");
    assert_eq!(
        house.hover("a.fault").await.unwrap(),
        ("version 1, 5 bytes".to_owned(), 1)
    );
    house.kill_start(1).await;
    assert_eq!(house.hover("a.fault").await.unwrap().1, 2);
    house.leave().await;
}

#[tokio::test]
async fn a_server_that_somebody_else_keeps_is_used_and_left_alone() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let plan = Plan {
        configuration: json!({"transport": {"tcp": format!("127.0.0.1:{port}")}}),
        ..Plan::with(json!({"ignore_exit": true}))
    };
    let house = plan.build().await;
    house.write("a.fault", "12345");
    // Nobody is there yet.
    let refused = house.hover("a.fault").await;
    assert!(matches!(refused, Err(AskError::Lifecycle { .. })), "{refused:?}");
    let command_line = command(&house.tree);
    let mut other = std::process::Command::new(&command_line[0])
        .args(&command_line[1..])
        .args(["--tcp", &port.to_string()])
        .spawn()
        .unwrap();
    until("it listens", || {
        house.pids("server").len() == 1
            && std::fs::read_to_string("/proc/net/tcp")
                .unwrap()
                .contains(&format!("0100007F:{port:04X} 00000000:0000 0A"))
    })
    .await;
    let (file, scope) = (house.file("a.fault"), live());
    let caller = lsp::Environment::default();
    let started = house.languages.start(&file, None, None, &caller, &scope);
    assert_eq!(soon(started).await.unwrap()[0].status.state, ServerState::Ready);
    let (text, _) = house.hover("a.fault").await.unwrap();
    assert!(text.ends_with("5 bytes"), "{text}");
    let (id, scope) = (house.view().id, live());
    soon(house.languages.stop(&id, lsp::ExpectedProcess::Any, &scope))
        .await
        .unwrap();
    assert!(other.try_wait().unwrap().is_none(), "it is not ours");
    other.kill().unwrap();
    other.wait().unwrap();
    house.leave().await;
}

#[tokio::test]
async fn a_repository_has_its_servers_used_if_it_is_trusted() {
    for trusted in [false, true] {
        let tree = Tree::new();
        let script = json!({"pids": tree.path("pids"), "record": tree.path("record")});
        tree.write("script.json", &script.to_string());
        let server = json!({"command": command(&tree), "extensions": {".fault": "fault"}});
        let configuration = json!({"servers": {"theirs": server}}).to_string();
        tree.write("workspace/.lsp.json", &configuration);
        // Without a repository around it, the workspace of a file is its directory.
        std::fs::create_dir(tree.workspace().join(".git")).unwrap();
        let registry = match trusted {
            true => tree.registry(everything),
            false => tree.registry(nothing),
        };
        let house = Plan::with(json!({})).build_with(tree, registry).await;
        house.write("a.fault", "1");
        let answered = house.ask(hover(&house.file("a.fault"))).await;
        match (trusted, answered) {
            (true, Ok(answered)) => {
                assert_eq!(answered.answer.origins[0].server, "theirs");
                assert!(answered.notes.is_empty(), "{:?}", answered.notes);
            }
            (false, Err(AskError::NoServer { .. })) => {
                assert_eq!(house.pids("server"), [0; 0]);
                let overview = house.languages.overview(&house.tree.workspace()).await.unwrap();
                let untrusted = |note: &ConfigNote| matches!(note, ConfigNote::Untrusted { .. });
                assert!(overview.notes.iter().any(untrusted), "{:?}", overview.notes);
            }
            (trusted, answered) => panic!("{trusted}: {answered:?}"),
        }
        house.leave().await;
    }
}

#[tokio::test]
async fn what_a_server_does_not_offer_is_said() {
    let house = Plan::with(json!({})).build().await;
    house.write("a.fault", "1");
    let refused = house.ask(symbols(&house)).await;
    assert!(
        matches!(refused, Err(AskError::Query(QueryError::Unsupported { .. }))),
        "{refused:?}"
    );
    house.leave().await;
}
