//! The fault server itself: that it does what tests will rely on.

use std::process::Command;

use lsp::{Closed, RequestError, ResponseError};
use serde_json::{Value, json};

use crate::{
    faults_server::{Start, is_alive},
    support::{live, patient, soon, until},
};

#[tokio::test]
async fn initialize_hangs_until_it_is_let_go() {
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let script = json!({"initialize": {"hold_until_file": go}});
    let real = Start::with(script).run_in(directory).await;
    let initialize = real.client.request("initialize", &json!({}), &patient(), &live());
    // Everything else is answered meanwhile.
    assert!(real.echoes().await);
    assert_eq!(real.client.pending(), 1);
    std::fs::write(&go, "").unwrap();
    assert!(soon(initialize).await.is_ok());
}

#[tokio::test]
async fn initialize_fails_or_answers_with_what_it_was_told() {
    let script = json!({"initialize": {"error": {"code": -32002, "message": "not now"}}});
    let real = Start::with(script).run().await;
    let error = ResponseError::new(-32002, "not now");
    assert_eq!(
        real.ask("initialize", json!({})).await,
        Err(RequestError::Response(error))
    );

    let script = json!({
        "position_encoding": "utf-8",
        "sync": "full",
        "diagnostics": "pull",
        "capabilities": {"hoverProvider": false, "renameProvider": true},
        "initialize": {"delay_ms": 1},
    });
    let real = Start::with(script).run().await;
    let expected = json!({
        "capabilities": {
            "positionEncoding": "utf-8",
            "textDocumentSync": {"openClose": true, "change": 1, "save": true},
            "hoverProvider": false,
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": true,
            "diagnosticProvider": {"interFileDependencies": false, "workspaceDiagnostics": false},
        },
        "serverInfo": {"name": "fault-server", "version": "1"},
    });
    assert_eq!(real.ask("initialize", json!({})).await, Ok(expected));
}

#[tokio::test]
async fn it_ends_as_it_was_told() {
    let script = json!({"exit_at_start": 7, "stderr": "no licence\n"});
    let mut real = Start::with(script).run().await;
    assert_eq!(*soon(real.client.closed()).await, Closed::EndOfFile);
    let (status, words) = real.ended().await;
    assert_eq!((status.code(), words.as_str()), (Some(7), "no licence\n"));

    let mut real = Start::with(json!({"exit_after_requests": {"requests": 2, "code": 9}}))
        .run()
        .await;
    assert!(real.echoes().await);
    assert!(real.echoes().await);
    assert!(!real.echoes().await);
    assert_eq!(real.ended().await.0.code(), Some(9));

    let mut real = Start::default().run().await;
    let exit = json!({"code": 5, "stderr": "out of memory"});
    assert!(real.ask("fault/exit", exit).await.is_err());
    let (status, words) = real.ended().await;
    assert_eq!((status.code(), words.as_str()), (Some(5), "out of memory"));

    let mut real = Start::default().run().await;
    assert_eq!(real.ask("shutdown", ()).await, Ok(Value::Null));
    real.tell("exit", ()).await;
    assert_eq!(real.ended().await.0.code(), Some(0));
}

#[tokio::test]
async fn it_ignores_what_it_was_told_to_ignore() {
    let script = json!({"trap_term": true, "ignore_exit": true, "ignore_shutdown": true});
    let mut real = Start::with(script).run().await;
    assert!(real.echoes().await);
    let pid = rustix::process::Pid::from_raw(i32::try_from(real.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    real.tell("exit", ()).await;
    drop(real.client.request("shutdown", &(), &patient(), &live()));
    assert!(real.echoes().await);
    assert!(!real.has_ended());
}

#[tokio::test]
async fn each_start_is_counted_and_may_differ() {
    let script = json!({"by_start": {"1": {"exit_at_start": 1}, "2": {"hover_text": "second"}}});
    let real = Start::with(script.clone()).run().await;
    assert_eq!(*soon(real.client.closed()).await, Closed::EndOfFile);
    // The second start finds the file of the first.
    let first = std::fs::read_to_string(real.path("pids")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("pids"), &first).unwrap();
    let real = Start::with(script).run_in(directory).await;
    let hover = json!({"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}});
    let answer = real.ask("textDocument/hover", hover).await.unwrap();
    assert_eq!(answer["contents"]["value"], "second");
    assert_eq!(real.ask("fault/state", ()).await.unwrap()["start"], 2);
    assert_eq!(real.pids("server").last(), Some(&real.pid()));
}

#[tokio::test]
async fn the_server_behind_a_shim_outlives_it() {
    let mut real = Start {
        arguments: vec!["--shim"],
        ..Start::default()
    }
    .run()
    .await;
    assert!(real.echoes().await);
    let server = real.pids("server")[0];
    assert_ne!(server, real.pid());
    real.kill();
    assert!(real.echoes().await, "the pipes lead to the real one");
    assert!(is_alive(server));
    real.client.close("enough");
    until("the server ends with its input", || !is_alive(server)).await;

    let mut real = Start {
        arguments: vec!["--shim-orphan"],
        ..Start::default()
    }
    .run()
    .await;
    until("the shim ends", || real.has_ended()).await;
    assert!(real.echoes().await);
    assert_ne!(real.pids("server"), [real.pid()]);
}

#[tokio::test]
async fn it_ends_with_the_process_that_it_was_told_to_watch() {
    let mut watched = Command::new("sleep").arg("600").spawn().unwrap();
    let mut real = Start::with(json!({"watch_parent": true})).run().await;
    real.ask("initialize", json!({"processId": watched.id()}))
        .await
        .unwrap();
    assert!(real.echoes().await);
    watched.kill().unwrap();
    watched.wait().unwrap();
    let (status, words) = real.ended().await;
    assert_eq!((status.code(), words.as_str()), (Some(0), "the parent is gone\n"));
}

#[tokio::test]
async fn documents_are_kept_in_step() {
    let real = Start::default().run().await;
    let uri = "file:///a.txt";
    let open = json!({"uri": uri, "version": 1, "languageId": "text", "text": "é ERROR\nfine\n"});
    real.tell("textDocument/didOpen", json!({"textDocument": open}))
        .await;
    let position = |line: u32, character: u32| json!({"line": line, "character": character});
    // The change is behind a letter of two bytes in UTF-8, and one unit in UTF-16.
    let changes = json!([
        {"range": {"start": position(0, 2), "end": position(0, 7)}, "text": "ok"},
        {"range": {"start": position(1, 4), "end": position(9, 9)}, "text": " 😀ERROR\n"},
    ]);
    let document = json!({"uri": uri, "version": 5});
    let change = json!({"textDocument": document, "contentChanges": changes});
    real.tell("textDocument/didChange", change).await;
    let at = json!({"textDocument": {"uri": uri}, "position": position(1, 2)});
    let hover = real.ask("textDocument/hover", &at).await.unwrap();
    assert_eq!(hover["contents"]["value"], "version 5, 21 bytes");
    let state = real.ask("fault/state", ()).await.unwrap();
    assert_eq!(
        state["documents"][uri],
        json!({"version": 5, "text": "é ok\nfine 😀ERROR\n"})
    );
    let place = json!({"uri": uri, "range": {"start": position(1, 2), "end": position(1, 2)}});
    assert_eq!(real.ask("textDocument/definition", &at).await, Ok(place));
    let references = real.ask("textDocument/references", &at).await.unwrap();
    assert_eq!(references.as_array().unwrap().len(), 2);

    let found = |version: Option<u32>, line: u32, start: u32| {
        let range = json!({"start": position(line, start), "end": position(line, start + 5)});
        let message = format!("line {} has an error", line + 1);
        let item = json!({"range": range, "severity": 1, "source": "fault", "message": message});
        json!({"uri": uri, "version": version, "diagnostics": [item]})
    };
    real.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}))
        .await;
    until("all diagnostics are there", || real.log.lines().len() == 3).await;
    let published: Vec<Value> = real
        .log
        .lines()
        .iter()
        .map(|line| {
            serde_json::from_str(line.strip_prefix("textDocument/publishDiagnostics ").unwrap()).unwrap()
        })
        .collect();
    let none = json!({"uri": uri, "version": null, "diagnostics": []});
    assert_eq!(published, [found(Some(1), 0, 2), found(Some(5), 1, 7), none]);
    assert_eq!(real.ask("textDocument/hover", &at).await, Ok(Value::Null));
}

#[tokio::test]
async fn work_is_told_step_by_step() {
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let script =
        json!({"server_status": true, "progress": {"steps": 2, "step_ms": 1, "hold_until_file": done}});
    let real = Start::with(script).run_in(directory).await;
    real.ask("initialize", json!({})).await.unwrap();
    real.tell("initialized", json!({})).await;
    until("it is half-way", || real.log.lines().len() == 5).await;
    std::fs::write(&done, "").unwrap();
    until("it is done", || real.log.lines().len() == 7).await;
    let progress = |value: Value| format!("$/progress {}", json!({"token": "fault-work", "value": value}));
    assert_eq!(
        real.log.lines(),
        [
            r#"experimental/serverStatus {"health":"ok","quiescent":false}"#.to_owned(),
            r#"window/workDoneProgress/create {"token":"fault-work"}"#.to_owned(),
            progress(json!({"kind": "begin", "title": "Indexing", "percentage": 0})),
            progress(json!({"kind": "report", "message": "1/2", "percentage": 50})),
            progress(json!({"kind": "report", "message": "2/2", "percentage": 100})),
            progress(json!({"kind": "end"})),
            r#"experimental/serverStatus {"health":"ok","quiescent":true}"#.to_owned(),
        ]
    );
}

#[tokio::test]
async fn a_method_meets_a_fault_as_often_as_it_was_told() {
    let real = Start::with(json!({"on": {"fault/echo": {"fault": "result", "result": 7, "times": 2}}}))
        .run()
        .await;
    for expected in [7, 7, 1, 1] {
        assert_eq!(real.ask("fault/echo", 1).await, Ok(json!(expected)));
    }
    let on = json!({"method": "fault/echo", "fault": "error", "code": 5, "message": "no"});
    real.tell("fault/on", on).await;
    assert!(real.ask("fault/echo", 1).await.is_err());
    real.tell("fault/off", json!({"method": "fault/echo"})).await;
    assert!(real.echoes().await);
    // One that takes time lets others pass.
    real.tell(
        "fault/on",
        json!({"method": "slow", "fault": "hold_until_file", "path": real.path("go")}),
    )
    .await;
    let slow = real.client.request("slow", &(), &patient(), &live());
    assert!(real.echoes().await);
    std::fs::write(real.path("go"), "").unwrap();
    let not_found = ResponseError::method_not_found("slow");
    assert_eq!(soon(slow).await, Err(RequestError::Response(not_found)));
}
