//! What is wrong with the arguments or the machine, and what the program says about it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::{World, finish, processes_of};

#[test]
fn wrong_arguments_are_explained_and_start_nothing() {
    let world = World::new();
    for arguments in [
        &[] as &[&str],
        &["nonsense"],
        &["status", "extra"],
        &["breaker"],
        &["breaker", "show", ""],
        &["breaker", "reset"],
        &["breaker", "reset", "a", "--all"],
        &["breaker", "reset", "--all", "--generation", "1"],
        &["breaker", "reset", "a", "--generation", "x"],
        &["breaker", "force", "a", "ajar"],
        &["breaker", "record", "a"],
        &["breaker", "record", "a", "failure", "--retry-after", "30"],
        &["breaker", "record", "a", "success", "--retry-after", "30s"],
        &["serve", "--listen", "nowhere"],
        &["down", "--timeout", "soon"],
    ] {
        let outcome = world.run(arguments).expect(2);
        assert_eq!(outcome.stdout, "", "{arguments:?}");
        assert!(!outcome.stderr.is_empty(), "{arguments:?}");

        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let outcome = world.run(&arguments).expect(2);
        let failure = outcome.json();
        assert_eq!(
            (&failure["error"]["code"], outcome.stderr.as_str()),
            (&json!("usage"), ""),
            "{arguments:?}"
        );
        assert!(
            failure["error"]["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{arguments:?}"
        );
    }
    assert_eq!(processes_of(&world), [] as [u32; 0]);
    assert!(
        !world.path().join("home").exists(),
        "a refused command touches nothing"
    );
}

#[test]
fn an_error_in_words_has_a_hint() {
    let world = World::new();
    let mut command = world.command(&["up"]);
    command.env("TIDELOCK_HOME", "relative");
    let outcome = finish(command).expect(3);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: TIDELOCK_HOME is `relative`, which is not an absolute path
    hint: give TIDELOCK_HOME an absolute path
    ");
    assert_eq!(outcome.stdout, "");
}

/// Prepares something that a daemon cannot live with, and gives back what `up` says about it.
fn refused(world: &World, variables: &[(&str, &str)]) -> Value {
    let mut command = world.command(&["up", "--json"]);
    command.envs(variables.iter().copied());
    let failure = finish(command).expect(3).json();
    assert_eq!(processes_of(world), [] as [u32; 0]);
    assert!(failure["error"]["advice"].is_string(), "{failure}");
    failure["error"].clone()
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let world = World::new();
    world.home().prepare().unwrap();
    let token = world.home().token_file();
    fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let error = refused(&world, &[]);
    assert_eq!(error["code"], "token_unusable");
    assert!(error["message"].as_str().unwrap().contains("0644"), "{error}");
    let doctor = world.run(&["doctor", "--json"]).expect(1).json();
    let failed: Vec<&Value> = doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["state"] == "failed")
        .map(|check| &check["id"])
        .collect();
    assert_eq!(failed, [&json!("token_file")]);
}

#[test]
fn a_home_that_cannot_be_made_is_refused() {
    let world = World::new();
    let file = world.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refused(&world, &[("TIDELOCK_HOME", file.join("home").to_str().unwrap())]);
    assert_eq!(error["code"], "home_unusable");
}

#[test]
fn a_home_that_others_can_write_to_is_refused_by_every_command() {
    let world = World::new();
    world.home().prepare().unwrap();
    fs::set_permissions(world.home().runtime, fs::Permissions::from_mode(0o777)).unwrap();
    for command in ["up", "status", "down"] {
        let failure = world.run(&[command, "--json"]).expect(3).json();
        assert_eq!(failure["error"]["code"], "home_unusable", "{command}: {failure}");
        assert!(
            failure["error"]["advice"]
                .as_str()
                .unwrap()
                .contains("chmod go-w"),
            "{failure}"
        );
    }
}

#[test]
fn a_socket_path_that_is_too_long_is_refused() {
    let world = World::new();
    let home = world.path().join("d".repeat(120));
    let error = refused(&world, &[("TIDELOCK_HOME", home.to_str().unwrap())]);
    assert_eq!(error["code"], "home_unusable");
    assert!(error["message"].as_str().unwrap().contains("107"), "{error}");
}

#[test]
fn an_address_that_is_taken_or_not_local_is_refused() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for address in [address.as_str(), "0.0.0.0:0"] {
        let error = refused(&world, &[("TIDELOCK_LISTEN", address)]);
        assert_eq!(error["code"], "address_unusable");
        assert!(error["message"].as_str().unwrap().contains(address), "{error}");
    }
    // The failed attempts are in nobody's way.
    world.run(&["up"]).expect(0);
}

#[test]
fn doctor_finds_nothing_wrong_without_and_with_a_daemon_and_changes_nothing() {
    let world = World::new();
    let before = world.run(&["doctor", "--json"]).expect(0).json();
    assert!(!world.path().join("home").exists());
    world.run(&["up"]).expect(0);
    let after = world.run(&["doctor", "--json"]).expect(0).json();
    let ids = |report: &Value| -> Vec<Value> {
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| check["id"].clone())
            // Which clients are on the machine is nobody's fault.
            .filter(|id| !id.as_str().is_some_and(|id| id.starts_with("client_")))
            .collect()
    };
    let expected = [
        "runtime_directory",
        "state_directory",
        "socket_path",
        "token_file",
        "configuration",
        "lock",
        "socket",
        "daemon",
        "log",
        "boots",
        "open_files",
        "disk_space",
        "user_namespaces",
        "overlayfs",
        "landlock",
        "cgroup_v2",
        "language_servers",
    ];
    assert_eq!(ids(&before), expected);
    // How sandboxes can be made is known only to a daemon, which has tried it, and so is who can be asked.
    let (last, others) = expected.split_last().unwrap();
    let known = [
        "sandbox_overlay",
        "sandbox_git_worktree",
        "sandbox_copy",
        "workspaces",
        "agents",
        "mcp",
    ];
    let mut expected: Vec<&str> = others.iter().chain(&known).chain([last]).copied().collect();
    let after_boots = expected.iter().position(|id| *id == "boots").unwrap() + 1;
    expected.insert(after_boots, "quarantine");
    assert_eq!(ids(&after), expected);
    let pid = format!("pid {}", world.pid());
    for id in ["lock", "daemon"] {
        let checks = after["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["id"] == id).unwrap();
        assert_eq!(check["state"], "ok");
        assert!(check["detail"].as_str().unwrap().contains(&pid), "{check}");
    }
}
