//! `tidelock join` and what `doctor` says of it, in homes of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::program;
use crate::mcp_clients_stage::UserHome;
use crate::plan_stage::Project;

const CLIENTS: [(&str, &str); 9] = [
    ("claude", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("opencode", "config/opencode/opencode.json"),
    ("zed", "config/zed/settings.json"),
    ("vscode", "config/Code/User/mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("goose", "config/goose/config.yaml"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
];

#[test]
fn every_client_is_joined_once_and_let_go_again() {
    let project = Project::with_git(&[("a.txt", "a\n")]);
    let user = UserHome::new(&project, "me");
    for (client, path) in CLIENTS {
        let file = user.path().join(path);
        let shown = user
            .tidelock(&project, &["join", client, "--json"])
            .expect(0)
            .json();
        assert_eq!(
            (&shown["state"], &shown["path"]),
            (&json!("not_joined"), &json!(file)),
            "{client}"
        );
        assert!(!file.exists(), "{client}: to show is not to write");

        let written = user
            .tidelock(&project, &["join", client, "--write", "--json"])
            .expect(0)
            .json();
        let told = (&written["state"], &written["action"], &written["backup"]);
        assert_eq!(
            told,
            (&json!("joined"), &json!("written"), &Value::Null),
            "{client}"
        );
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            shown["text"].as_str().unwrap(),
            "{client}: what was shown is what is written"
        );
        assert!(text.contains(program().to_str().unwrap()), "{client}: {text}");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600,
            "{client}"
        );

        let again = user
            .tidelock(&project, &["join", client, "--write", "--json"])
            .expect(0)
            .json();
        assert_eq!(
            (&again["state"], &again["action"]),
            (&json!("joined"), &json!("none")),
            "{client}"
        );
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            text,
            "{client}: twice is once"
        );

        let refused = user
            .tidelock(&project, &["join", client, "--write", "--allow-apply", "--json"])
            .expect(4)
            .json();
        assert_eq!(refused["error"]["code"], "entry_differs", "{client}");
        let options = ["join", client, "--write", "--allow-apply", "--replace", "--json"];
        user.tidelock(&project, &options).expect(0);
        assert!(
            fs::read_to_string(&file).unwrap().contains("--allow-apply"),
            "{client}"
        );
        let backup = format!("{}.before-tidelock", file.display());
        assert_eq!(
            fs::read_to_string(backup).unwrap(),
            text,
            "{client}: the one before is kept"
        );

        let removed = user
            .tidelock(&project, &["join", client, "--remove", "--json"])
            .expect(0)
            .json();
        assert_eq!(
            (&removed["state"], &removed["action"]),
            (&json!("not_joined"), &json!("removed")),
            "{client}"
        );
        assert!(
            !fs::read_to_string(&file).unwrap().contains("allow-apply"),
            "{client}"
        );
        let removed = user
            .tidelock(&project, &["join", client, "--remove", "--json"])
            .expect(0)
            .json();
        assert_eq!(removed["action"], "none", "{client}");
    }
}

#[test]
fn what_people_have_written_stays_and_what_is_not_understood_is_refused() {
    let project = Project::with_git(&[("a.txt", "a\n")]);
    let user = UserHome::new(&project, "me");
    let theirs = "{\n\t// My theme.\n\t\"theme\": \"dark\", // at night\n\t\"context_servers\": {\n\t\t\"other\": { \"command\": \"x\" } // kept\n\t}\n}\n";
    let file = user.write("config/zed/settings.json", theirs);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    user.tidelock(&project, &["join", "zed", "--write"]).expect(0);
    user.tidelock(&project, &["join", "zed", "--acp", "--write"])
        .expect(0);
    let text = fs::read_to_string(&file).unwrap();
    for line in theirs.lines().filter(|line| line.contains("//")) {
        let (_, comment) = line.split_once("//").unwrap();
        assert!(
            text.contains(&format!("//{comment}")),
            "{comment} is lost: {text}"
        );
    }
    assert!(text.contains("agent_servers"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    user.tidelock(&project, &["join", "zed", "--remove"]).expect(0);
    user.tidelock(&project, &["join", "zed", "--acp", "--remove"])
        .expect(0);
    let without = fs::read_to_string(&file).unwrap();
    assert_eq!(without.replace(",\n\t\"agent_servers\": {}", ""), theirs);

    for (client, path, broken) in [
        ("claude", ".claude.json", "{ \"mcpServers\": [] }"),
        ("cursor", ".cursor/mcp.json", "{ not json"),
        ("codex", ".codex/config.toml", "model = "),
        ("goose", "config/goose/config.yaml", "extensions: {a: {b: 1}}\n"),
    ] {
        let file = user.write(path, broken);
        let refused = user
            .tidelock(&project, &["join", client, "--write", "--json"])
            .expect(1)
            .json();
        assert_eq!(refused["error"]["code"], "config_not_understood", "{client}");
        let advice = refused["error"]["advice"].as_str().unwrap();
        assert!(
            advice.contains("add this yourself") && advice.contains("mcp"),
            "{client}: {advice}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), broken, "{client}");
    }
    for (arguments, code) in [
        (vec!["join", "goose", "--scope", "project"], "join_not_possible"),
        (vec!["join", "zed", "--http"], "join_not_possible"),
        (vec!["join", "claude", "--acp"], "join_not_possible"),
        (vec!["join", "claude", "--name", "a b"], "usage"),
        (vec!["join", "claude", "--replace"], "usage"),
        (vec!["join", "nobody"], "usage"),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().chain(["--json"]).collect();
        let refused = user.tidelock(&project, &arguments).expect(2).json();
        assert_eq!(refused["error"]["code"], code, "{arguments:?}");
    }
}

#[test]
fn the_token_is_named_and_not_written_and_a_project_shares_no_home() {
    let project = Project::with_git(&[("a.txt", "a\n")]);
    project.run(&["up"]).expect(0);
    let user = UserHome::new(&project, "me");
    let token = fs::read_to_string(project.world.home().token_file()).unwrap();
    let address = project.run(&["status", "--json"]).expect(0).json()["address"]
        .as_str()
        .unwrap()
        .to_owned();
    for (client, path) in CLIENTS.into_iter().filter(|(client, _)| *client != "zed") {
        let said = user
            .tidelock(&project, &["join", client, "--http", "--write", "--json"])
            .expect(0)
            .json();
        assert_eq!(said["token_variable"], "TIDELOCK_TOKEN", "{client}");
        let text = fs::read_to_string(user.path().join(path)).unwrap();
        assert!(
            text.contains(&format!("http://{address}/mcp")),
            "{client}: {text}"
        );
        assert!(!text.contains(token.trim()), "{client}");
    }
    let said = user
        .tidelock(
            &project,
            &["join", "vscode", "--scope", "project", "--write", "--json"],
        )
        .expect(0)
        .json();
    assert_eq!(said["path"], json!(project.root.join(".vscode/mcp.json")));
    let text = fs::read_to_string(project.root.join(".vscode/mcp.json")).unwrap();
    assert!(!text.contains("TIDELOCK_HOME"), "{text}");
}

#[test]
fn a_list_and_the_doctor_tell_what_is_joined() {
    let project = Project::with_git(&[("a.txt", "a\n")]);
    let user = UserHome::new(&project, "me");
    let states = || -> Vec<(String, String)> {
        let listed = user.tidelock(&project, &["join", "--json"]).expect(0).json();
        let word = |client: &Value, name: &str| client[name].as_str().unwrap().to_owned();
        let clients = listed["clients"].as_array().unwrap();
        clients
            .iter()
            .map(|client| (word(client, "id"), word(client, "state")))
            .collect()
    };
    let nobody: Vec<(String, String)> = CLIENTS
        .iter()
        .map(|(client, _)| ((*client).to_owned(), "not_joined".to_owned()))
        .collect();
    assert_eq!(states(), nobody);
    user.tidelock(&project, &["join", "cursor", "--write"]).expect(0);
    user.tidelock(&project, &["join", "claude", "--write", "--scope", "project"])
        .expect(0);
    let command =
        json!({ "mcpServers": { "tidelock": { "command": "/nowhere/tidelock", "args": ["mcp"] } } });
    user.write(".gemini/settings.json", &command.to_string());
    let command = json!({ "mcpServers": { "tidelock": { "command": "sh", "args": ["mcp"] } } });
    user.write(".codeium/windsurf/mcp_config.json", &command.to_string());
    user.write("config/goose/config.yaml", "a: [\n");
    let expected: Vec<(String, String)> = CLIENTS
        .iter()
        .map(|(client, _)| {
            let state = match *client {
                "claude" | "cursor" | "gemini" | "windsurf" => "joined",
                "goose" => "unclear",
                _ => "not_joined",
            };
            ((*client).to_owned(), state.to_owned())
        })
        .collect();
    assert_eq!(states(), expected);

    let checks = |wanted: &str| -> Vec<(String, String)> {
        let doctor = user.tidelock(&project, &["doctor", "--json"]).json();
        let checks = doctor["checks"].as_array().unwrap().iter();
        let word = |check: &Value, name: &str| check[name].as_str().unwrap().to_owned();
        let ours = checks.filter(|check| word(check, "id").starts_with(wanted));
        ours.map(|check| (word(check, "state"), word(check, "detail")))
            .collect()
    };
    assert_eq!(checks("mcp"), [], "a doctor starts no daemon");
    assert!(project.world.owner().is_none());
    let found = checks("client_");
    let starts = |state: &str, part: &str| {
        assert!(
            found
                .iter()
                .any(|(s, detail)| s == state && detail.contains(part)),
            "{part}: {found:#?}"
        );
    };
    starts("ok", "Claude Code is joined in");
    starts("ok", "Cursor is joined in");
    starts("warning", "its command `/nowhere/tidelock` doesn't exist");
    starts("warning", "which is a different program");
    starts("warning", "goose");
    assert_eq!(
        found
            .iter()
            .filter(|(_, detail)| detail.contains("is joined"))
            .count(),
        4,
        "{found:#?}"
    );

    project.run(&["up"]).expect(0);
    let found = checks("mcp");
    assert!(found.len() == 1 && found[0].0 == "ok", "{found:?}");
    assert!(
        found[0].1.starts_with("`tidelock mcp` answers with "),
        "{found:?}"
    );
}
