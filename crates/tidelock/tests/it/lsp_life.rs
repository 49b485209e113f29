//! The processes of servers from their start to their end, with everything that they leave behind.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Running, signal, wait_for};
use crate::lsp_stage::{Player, Stage, lives, players_of, told, usual_hover};

/// From the first polite word to the last signal, and some time for a busy machine.
const STOP_LIMIT: Duration = Duration::from_secs(30);

#[test]
fn killing_a_shim_leaves_nothing_behind_it_and_the_next_query_is_answered() {
    let stage =
        Stage::new(&[Player::new("alpha", json!({ "grandchild": "own_session" })).flags(&["--shim"])]);
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 1));
    wait_for("the grandchild", || stage.pids("alpha", "grandchild").len() == 1);
    // The server that was started is the shim; the one that answers stands behind it, and its pipe stays open.
    let shim = u32::try_from(stage.server("alpha")["pid"].as_u64().unwrap()).unwrap();
    let behind = [stage.pids("alpha", "server"), stage.pids("alpha", "grandchild")].concat();
    assert!(!behind.contains(&shim));
    signal(shim, Signal::KILL);
    // Until its end is noticed, the one behind it answers as before.
    wait_for("the end to be noticed", || {
        stage.server("alpha")["generation"] == 2
    });
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 2));
    wait_for("what stood behind the shim to be gone", || {
        behind.iter().all(|pid| !lives(*pid))
    });
    // The real server behind the second shim is killed in its turn.
    stage.kill_server("alpha");
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 3));
    stage.world.run(&["lsp", "stop", "alpha"]).expect(0);
    assert_eq!(players_of(&stage.world), [0; 0]);
}

#[test]
fn the_end_of_output_without_an_exit_is_noticed() {
    let once = |fault: &str| {
        json!({
            "ignore_exit": true, "trap_term": true, "on": { "textDocument/hover": { "fault": fault } },
            "by_start": { "2": { "on": {} } },
        })
    };
    let stage = Stage::new(&[Player::new("alpha", once("close_stdout"))]);
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 2));
    let first = stage.pids("alpha", "server")[0];
    wait_for("the first process to be gone", || !lives(first));
    let server = stage.server("alpha");
    assert!(server["last_error"].is_string(), "{server}");
}

#[test]
fn an_exit_without_the_end_of_output_is_noticed() {
    // Its grandchild keeps the pipe open.
    let stage = Stage::new(&[Player::new(
        "alpha",
        json!({
            "grandchild": "own_session", "on": { "textDocument/hover": { "fault": "exit", "code": 3 } },
            "by_start": { "2": { "on": {}, "grandchild": null } },
        }),
    )]);
    stage
        .world
        .run(&["lsp", "start", stage.file("alpha").to_str().unwrap()])
        .expect(0);
    wait_for("the grandchild", || stage.pids("alpha", "grandchild").len() == 1);
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 2));
    let server = stage.server("alpha");
    let error = server["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("code 3"), "{server}");
    let grandchild = stage.pids("alpha", "grandchild")[0];
    wait_for("the grandchild to be gone", || !lives(grandchild));
}

#[test]
fn ps_and_why_show_a_server_with_all_that_it_has_started() {
    let stage = Stage::new(&[Player::new("alpha", json!({ "grandchild": "orphan" }))]);
    stage.hovered("alpha");
    wait_for("the grandchild", || stage.pids("alpha", "grandchild").len() == 1);
    let server = stage.pids("alpha", "server")[0];
    let grandchild = stage.pids("alpha", "grandchild")[0];

    let processes = stage.world.run(&["ps", "--json"]).expect(0).json();
    let process = &processes["processes"][0];
    assert_eq!(processes["processes"].as_array().unwrap().len(), 1, "{processes}");
    assert_eq!(
        (
            &process["pid"],
            &process["owner"],
            &process["generation"],
            &process["processes"]
        ),
        (&json!(server), &json!("lsp/alpha"), &json!(1), &json!(2)),
        "{process}"
    );
    let table = stage.world.run(&["ps"]).expect(0).stdout;
    assert!(
        table.contains(&server.to_string()) && table.contains("lsp/alpha"),
        "{table}"
    );

    let keeper = u32::try_from(process["keeper_pid"].as_u64().unwrap()).unwrap();
    for (pid, role) in [
        (server, "command"),
        (grandchild, "descendant"),
        (keeper, "keeper"),
    ] {
        let why = stage
            .world
            .run(&["why", &pid.to_string(), "--json"])
            .expect(0)
            .json();
        assert_eq!(
            (&why["pid"], &why["role"], &why["process"]["owner"]),
            (&json!(pid), &json!(role), &json!("lsp/alpha")),
            "{why}"
        );
    }
    // The daemon itself, a stranger, and one of another daemon's.
    for pid in [stage.world.pid(), std::process::id()] {
        let refused = stage
            .world
            .run(&["why", &pid.to_string(), "--json"])
            .expect(4)
            .json();
        assert_eq!(refused["error"]["code"], "process_not_found", "{refused}");
    }
    let other = Stage::new(&[]);
    let refused = other
        .world
        .run(&["why", &server.to_string(), "--json"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "process_not_found", "{refused}");
    assert!(lives(server) && lives(grandchild));
}

#[test]
fn ctrl_c_of_a_waiting_query_cancels_it_at_the_server() {
    let stage = Stage::new(&[Player::new(
        "alpha",
        json!({ "on": { "textDocument/hover": { "fault": "silence" } } }),
    )]);
    let place = format!("{}:1:1", stage.file("alpha").display());
    let mut command = stage.world.command(&["lsp", "hover", &place]);
    let mut client = Running(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let asked = stage.wait_for_sent("alpha", "textDocument/hover", 1);
    signal(client.0.id(), Signal::INT);
    let cancelled = stage.wait_for_sent("alpha", "$/cancelRequest", 1);
    assert_eq!(cancelled[0]["params"], json!({ "id": asked[0]["id"] }));
    let status = client.0.wait().unwrap();
    assert!(!status.success());
    wait_for("the lease to be given back", || {
        stage.server("alpha")["leases"] == 0
    });
}

#[test]
fn down_stops_all_servers_at_once_however_stubborn_they_are() {
    let stubborn = json!({
        "trap_term": true, "ignore_shutdown": true, "ignore_exit": true, "grandchild": "own_session",
    });
    let stage = Stage::new(&[
        Player::new("alpha", stubborn.clone()),
        Player::new("beta", stubborn.clone()),
        Player::new("gamma", stubborn.clone()).flags(&["--shim"]),
        Player::new("delta", stubborn),
        Player::new("hangs", json!({ "initialize": "hang", "trap_term": true })),
    ]);
    let names = ["alpha", "beta", "gamma", "delta"];
    for name in names {
        stage.hovered(name);
        wait_for("the grandchild", || stage.pids(name, "grandchild").len() == 1);
    }
    let waiting = stage.ask_and_leave_open("/v1/lsp/hover", &stage.query("hangs", &json!({})));
    stage.wait_for_sent("hangs", "initialize", 1);
    let began = Instant::now();
    stage.world.run(&["down"]).expect(0);
    // One after the other they would take several times as long.
    assert!(began.elapsed() < STOP_LIMIT, "it took {:?}", began.elapsed());
    assert_eq!(players_of(&stage.world), [0; 0]);
    drop(waiting);
}

#[test]
fn documents_that_nobody_holds_stay_open_only_up_to_a_limit() {
    let stage = Stage::new(&[Player::new("alpha", json!({}))]);
    let files: Vec<_> = (0..80)
        .map(|number| stage.work().join(format!("file{number}.alpha")))
        .collect();
    thread::scope(|scope| {
        for part in files.chunks(20) {
            let stage = &stage;
            scope.spawn(move || {
                for file in part {
                    std::fs::write(file, "text").unwrap();
                    let body = json!({ "path": file, "line": 1, "column": 1 });
                    let answer = stage.post("/v1/lsp/hover", &body).unwrap();
                    assert_eq!(told(&answer).0, "4 bytes");
                }
            });
        }
    });
    let state = stage.steer("alpha", "fault/state", &json!({}));
    let open = state["documents"].as_object().unwrap().len();
    assert_eq!(open, 64, "what was not used lately is closed");
    assert_eq!(stage.server("alpha")["open_documents"], json!(open));
    assert_eq!(
        stage.sent("alpha", "textDocument/didOpen").len()
            - stage.sent("alpha", "textDocument/didClose").len(),
        open
    );
}
