//! What people configure, in both formats, and what is not taken from an untrusted repository.

use std::ffi::OsString;
use std::time::Duration;

use lsp::{ConfigError, ConfigHash, ConfigNote, LaunchSpec, Role, Selection, ServerLimits};
use serde_json::json;

use crate::servers_tree::{Tree, everything, names, nothing};

fn command(selection: &Selection) -> Vec<OsString> {
    let Some(LaunchSpec::Stdio(command)) = selection.primary.as_ref().map(|chosen| &chosen.launch) else {
        panic!("{selection:?}");
    };
    let program = command.program.file_name().unwrap().to_owned();
    std::iter::once(program)
        .chain(command.arguments.iter().cloned())
        .collect()
}

/// A user's file, the file that is asked about, and the servers that it gets.
type Case<'a> = (serde_json::Value, &'a str, Option<&'a str>, &'a [&'a str]);

#[test]
fn the_user_chooses() {
    let cases: Vec<Case<'_>> = vec![
        (json!({}), "x.py", Some("basedpyright"), &["ruff"]),
        (json!({"servers": {}}), "x.py", Some("basedpyright"), &["ruff"]),
        (
            json!({"servers": {"basedpyright": {"disabled": true}}}),
            "x.py",
            Some("pyright"),
            &["ruff"],
        ),
        (
            json!({"servers": {"ruff": {"disabled": true}}}),
            "x.py",
            Some("basedpyright"),
            &[],
        ),
        (
            json!({"prefer": {"python": ["ty"]}}),
            "x.py",
            Some("ty"),
            &["ruff"],
        ),
        (
            json!({"prefer": {"python": ["pylsp", "ty", "pyright"]}}),
            "x.py",
            Some("ty"),
            &["ruff"],
        ),
        // To give a command is to prefer it; to give settings is not.
        (
            json!({"servers": {"pyright": {"command": ["pyright-langserver", "--stdio"]}}}),
            "x.py",
            Some("pyright"),
            &["ruff"],
        ),
        (
            json!({"servers": {"pyright": {"settings": {"a": 1}}}}),
            "x.py",
            Some("basedpyright"),
            &["ruff"],
        ),
        (
            json!({"servers": {"ruff": {"role": "primary", "command": "ruff"}}}),
            "x.py",
            Some("ruff"),
            &[],
        ),
        (
            json!({"servers": {"mine": {"command": ["tool", "x"], "extensions": {".x": "x"}}}}),
            "y.x",
            Some("mine"),
            &[],
        ),
        (
            json!({"servers": {"mine": {"command": ["tool"], "languages": {"x": ["Xfile"]}}}}),
            "Xfile",
            Some("mine"),
            &[],
        ),
        (
            json!({"servers": {"mine": {"command": ["tool"], "languages": {"x": ["Xfile"]}}}}),
            "a.Xfile",
            None,
            &[],
        ),
        (
            json!({"servers": {"mine": {"command": ["tool"], "extensions": {".d.py": "stub"}, "role": "supplement"}}}),
            "a.d.py",
            Some("basedpyright"),
            &["mine", "ruff"],
        ),
        // A program that is not there: the next best serves.
        (
            json!({"servers": {"mine": {"command": ["gone"], "extensions": {".py": "python"}}}}),
            "x.py",
            Some("basedpyright"),
            &["ruff"],
        ),
    ];
    for (user, file, primary, supplements) in cases {
        let tree = Tree::with(&[("user.json", &user.to_string())]);
        tree.programs(&[
            "bin/basedpyright-langserver",
            "bin/pyright-langserver",
            "bin/ty",
            "bin/ruff",
            "bin/tool",
        ]);
        let selection = tree.select(file);
        let expected = (
            primary.map(str::to_owned),
            supplements.iter().map(|name| (*name).to_owned()).collect(),
        );
        assert_eq!(names(&selection), expected, "{file} with {user}");
        assert_eq!(selection.notes, [], "{user}");
    }
}

#[test]
fn a_configured_server_that_is_missing_is_said() {
    let user = json!({"servers": {"mine": {"command": ["gone"], "extensions": {".py": "python"}}}});
    let tree = Tree::with(&[("user.json", &user.to_string())]);
    tree.programs(&["bin/ty"]);
    let missing = tree.select("x.py").missing;
    let names: Vec<_> = missing.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["mine"]);
}

#[test]
fn later_files_overrule_earlier_ones_key_by_key() {
    let user = json!({"servers": {"yaml-language-server": {
        "env": {"A": "user", "B": "user"},
        "settings": {"yaml": {"validate": false, "hover": null}},
        "timeouts": {"startup_ms": 1000, "request_ms": 2000},
        "limits": {}}}});
    let repository = json!({"servers": {"yaml-language-server": {
        "env": {"B": "repository"},
        "settings": {"yaml": {"validate": true, "schemas": {"a.json": "*.yaml"}}},
        "timeouts": {"request_ms": 3000, "shutdown_ms": 4, "idle_ms": 5},
        "limits": {"max_restarts": 2},
        "roots": ["top.yaml", ["a.yaml", "b.yaml"]]}}});
    let tree = Tree::with(&[
        ("user.json", &user.to_string()),
        ("workspace/.lsp.json", &repository.to_string()),
        ("workspace/deep/b.yaml", ""),
    ]);
    tree.programs(&["bin/yaml-language-server"]);
    let chosen = tree.select_trusted("deep/er/x.yaml").primary.unwrap();
    let LaunchSpec::Stdio(command) = &chosen.launch else {
        panic!("{chosen:?}");
    };
    let variable = |name: &str| command.environment.get(&OsString::from(name)).cloned();
    assert_eq!(variable("A"), Some("user".into()));
    assert_eq!(variable("B"), Some("repository".into()));
    assert_eq!(variable("SECRET"), None);
    let settings = json!({
        "yaml": {
            "schemaStore": {"enable": false}, "kubernetesCRDStore": {"enable": false}, "validate": true, "completion": true,
            "format": {"enable": true}, "schemas": {"a.json": "*.yaml"},
        },
        "redhat": {"telemetry": {"enabled": false}},
    });
    assert_eq!(chosen.settings, Some(settings));
    let limits = ServerLimits {
        startup: Some(Duration::from_millis(1000)),
        request: Some(Duration::from_millis(3000)),
        shutdown: Some(Duration::from_millis(4)),
        idle: Some(Duration::from_millis(5)),
        restarts: Some(2),
    };
    assert_eq!(chosen.limits, limits);
    assert_eq!(tree.relative(&chosen.root), "workspace/deep");
}

#[test]
fn the_flat_format_is_read_too() {
    let server = json!({
        "command": "gopls", "args": ["serve"], "extensionToLanguage": {".go": "go", ".tmpl": "gotmpl"}, "transport": "stdio",
        "env": {"A": "1"}, "initializationOptions": {"i": 1}, "settings": {"s": 2}, "workspaceFolder": "lib",
        "startupTimeout": 7000, "shutdownTimeout": 800, "restartOnCrash": true, "maxRestarts": 3,
        "loggingConfig": {"args": ["-v"]}, "diagnostics": false,
    });
    for repository in [
        json!({"go": server}),
        json!({"$schema": "x", "lspServers": {"go": server}}),
    ] {
        let tree = Tree::with(&[
            ("workspace/.lsp.json", &repository.to_string()),
            ("workspace/lib/a.txt", ""),
        ]);
        tree.programs(&["bin/gopls"]);
        let selection = tree.select_trusted("x.tmpl");
        assert_eq!(selection.notes, []);
        assert_eq!(command(&selection), ["gopls", "serve"]);
        let chosen = selection.primary.unwrap();
        assert_eq!((&*chosen.name, &*chosen.language_id), ("go", "gotmpl"));
        assert_eq!(tree.relative(&chosen.root), "workspace/lib");
        assert_eq!(chosen.initialization_options, Some(json!({"i": 1})));
        assert_eq!(chosen.settings, Some(json!({"s": 2})));
        let limits = ServerLimits {
            startup: Some(Duration::from_secs(7)),
            shutdown: Some(Duration::from_millis(800)),
            restarts: Some(3),
            ..ServerLimits::default()
        };
        assert_eq!(chosen.limits, limits);
    }
}

#[test]
fn a_server_of_another_name_starts_from_what_is_known_of_its_program() {
    let user = json!({"mine": {"command": "/opt/x/../../bin/sh/gopls"}, "linter": {"command": ["ruff", "server", "-v"]}});
    let tree = Tree::with(&[("user.json", &user.to_string()), ("workspace/a/go.mod", "")]);
    let servers = tree.registry(nothing).workspace(&tree.workspace()).unwrap();
    let find = |name: &str| {
        let mut all = servers.definitions().iter();
        all.find(|known| *known.name == *name).unwrap()
    };
    assert_eq!(servers.notes(), []);
    assert_eq!(
        (&find("mine").languages, &find("mine").roots),
        (&find("gopls").languages, &find("gopls").roots)
    );
    assert_eq!(find("linter").role, Role::Supplement);
}

#[test]
fn servers_on_a_socket_are_configured() {
    let entry = |transport: serde_json::Value| json!({"servers": {"mine": {"command": ["tool", "--port={port}"], "extensions": {".x": "x"}, "transport": transport}}});
    let tree = Tree::new();
    tree.programs(&["bin/tool"]);
    let launch = |transport| {
        tree.write("user.json", &entry(transport).to_string());
        tree.select("a.x").primary.unwrap().launch
    };
    assert_eq!(
        launch(json!({"tcp": "127.0.0.1:7000"})),
        LaunchSpec::Tcp("127.0.0.1:7000".parse().unwrap())
    );
    let LaunchSpec::TcpSpawned { command, address } = launch(json!({"tcp_spawned": "[::1]:0"})) else {
        panic!("it is started first");
    };
    assert_eq!(address, "[::1]:0".parse().unwrap());
    assert_eq!(command.with_port(4711).arguments, ["--port=4711"]);
}

#[test]
fn an_untrusted_repository_names_no_program() {
    let evil =
        json!({"evil": {"command": "./evil.sh", "extensionToLanguage": {".py": "python"}}}).to_string();
    let tree = Tree::with(&[("workspace/.lsp.json", &evil)]);
    tree.programs(&["workspace/evil.sh", "bin/ty"]);
    let path = tree.path("workspace/.lsp.json");
    let hash = ConfigHash::of(&path, Some(evil.as_bytes()));

    let untrusted = tree.select("x.py");
    assert_eq!(names(&untrusted).0.as_deref(), Some("ty"));
    let note = ConfigNote::Untrusted {
        path: path.clone(),
        hash,
        how_to_trust: format!("tidelock lsp trust {}", tree.workspace().display()),
    };
    assert_eq!(untrusted.notes, [note]);

    // Trust is in this content, at this place.
    let registry = tree.registry(move |trusted: &ConfigHash| *trusted == hash);
    assert_eq!(registry.hash_to_trust(&tree.workspace()).unwrap(), hash);
    let file = tree.path("workspace/x.py");
    let primary = || names(&registry.servers_for(&file, &tree.workspace()).unwrap()).0;
    assert_eq!(primary().as_deref(), Some("evil"));
    tree.write("workspace/.lsp.json", &format!("{evil} "));
    assert_eq!(primary().as_deref(), Some("ty"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(primary().as_deref(), Some("ty"));
    // A path of the same length, so that nothing but the path itself can tell the two apart.
    tree.write("w0rkspace/.lsp.json", &evil);
    let other = registry.workspace(&tree.path("w0rkspace")).unwrap();
    assert!(
        matches!(other.notes(), [ConfigNote::Untrusted { .. }]),
        "{:?}",
        other.notes()
    );
}

#[test]
fn a_fingerprint_changes_with_files_and_trust() {
    let tree = Tree::with(&[("user.json", "{}"), ("workspace/.lsp.json", "{}")]);
    let (untrusting, trusting) = (tree.registry(nothing), tree.registry(everything));
    let fingerprint = || untrusting.fingerprint(&tree.workspace()).unwrap();
    let first = fingerprint();
    assert_eq!(
        first,
        untrusting.workspace(&tree.workspace()).unwrap().fingerprint()
    );
    assert_ne!(first, trusting.fingerprint(&tree.workspace()).unwrap());
    for file in ["user.json", "workspace/.lsp.json"] {
        let before = fingerprint();
        tree.write(file, "{ }");
        assert_ne!(fingerprint(), before, "{file}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_rest_still_works() {
    // A user's file, and what is said about it after its path.
    let cases = [
        ("", ":1:0: EOF while parsing a value"),
        ("{\n  \"servers\": {,}\n}", ":2:15: key must be a string"),
        ("{} x", ":1:4: trailing characters"),
        ("[]", ":1:0: .: invalid type: sequence, expected a map"),
        (
            "{\"servers\": {\"pyright\": {\n\"comand\": [\"x\"]}}}",
            ":2:8: servers.pyright.comand: there is no key `comand`; did you mean `command`?",
        ),
        (
            r#"{"servers": {"pyright": {"initializationOptions": {}}}}"#,
            ":1:48: servers.pyright.initializationOptions: there is no key `initializationOptions`; \
             did you mean `initialization_options`?",
        ),
        (
            r#"{"servers": {}, "preferences": {}}"#,
            ":1:29: preferences: there is no key `preferences`; there is $schema, servers, prefer",
        ),
        (
            r#"{"go": {"command": "gopls", "extensionsToLanguage": {}}}"#,
            ":1:50: go.extensionsToLanguage: there is no key `extensionsToLanguage`; did you mean `extensionToLanguage`?",
        ),
        (
            r#"{"servers": {"pyright": {"command": []}}}"#,
            ":1:38: servers.pyright.command: invalid length 0, expected a string or a list of strings that is not empty",
        ),
        (
            r#"{"servers": {"pyright": {"role": "main"}}}"#,
            ":1:39: servers.pyright.role: unknown variant `main`, expected `primary` or `supplement`",
        ),
        (
            r#"{"go": {"command": "gopls", "transport": "socket"}}"#,
            ":1:49: go.transport: unknown variant `socket`, expected one of `stdio`, `tcp`, `tcp_spawned`",
        ),
        (
            r#"{"servers": {"pyright": {"timeouts": {"startup_ms": -1}}}}"#,
            ":1:54: servers.pyright.timeouts.startup_ms: invalid value: integer `-1`, expected u64",
        ),
        (
            r#"{"servers": {"pyrite": {"settings": {}}}}"#,
            ": pyrite: it serves no files; give `languages` or `extensions`; did you mean `pyright`?",
        ),
        (
            r#"{"servers": {"xyz": {"extensions": {".x": "x"}}}}"#,
            ": xyz: it has no `command`, and is none that we know",
        ),
        (
            r#"{"servers": {"xyz": {"command": "x", "extensions": {".": "x"}}}}"#,
            ": xyz: `.` for x is neither an extension nor a file name",
        ),
        (
            r#"{"servers": {"xyz": {"extensions": {".x": "x"}, "transport": {"tcp": "10.0.0.1:80"}}}}"#,
            ": xyz: 10.0.0.1:80 is not on this machine; use a loopback address",
        ),
        (
            r#"{"servers": {"xyz": {"extensions": {".x": "x"}, "transport": {"tcp": "127.0.0.1:0"}}}}"#,
            ": xyz: `tcp` wants the port that the server listens on",
        ),
        (
            r#"{"servers": {"xyz": {"command": "x", "extensions": {".x": "x"}, "transport": {"tcp_spawned": "127.0.0.1:0"}}}}"#,
            ": xyz: with port 0, one argument of the command must hold {port}",
        ),
        (
            r#"{"x": {"command": "${CLAUDE_PLUGIN_ROOT}/x", "extensionToLanguage": {".x": "x"}}}"#,
            ": x: `${CLAUDE_PLUGIN_ROOT}/x`: variables in a command are not replaced",
        ),
    ];
    for (text, expected) in cases {
        let tree = Tree::with(&[("user.json", text)]);
        tree.programs(&["bin/ty"]);
        let selection = tree.select("x.py");
        assert_eq!(names(&selection).0.as_deref(), Some("ty"), "{text}");
        let notes: Vec<_> = selection.notes.iter().map(ToString::to_string).collect();
        let said = notes.first().map(|note| tree.relative(note.as_ref()));
        assert_eq!(
            (said, notes.len()),
            (Some(format!("user.json{expected}")), 1),
            "{text}"
        );
    }
}

#[test]
fn a_file_that_is_no_plain_small_file_is_refused() {
    let path = |tree: &Tree| tree.path("workspace/.lsp.json");
    type Make = fn(&Tree);
    let cases: [(Make, &str); 5] = [
        (
            |tree| std::fs::create_dir(tree.path("workspace/.lsp.json")).unwrap(),
            "it is no plain file",
        ),
        (
            |tree| {
                tree.write("secret", "{}");
                std::os::unix::fs::symlink(tree.path("secret"), tree.path("workspace/.lsp.json")).unwrap();
            },
            "it is a link, and must be a plain file",
        ),
        (
            |tree| {
                let made = std::process::Command::new("mkfifo")
                    .arg(tree.path("workspace/.lsp.json"))
                    .status();
                assert!(made.unwrap().success());
            },
            "it is no plain file",
        ),
        (
            |tree| std::fs::write(tree.path("workspace/.lsp.json"), b"\xff").unwrap(),
            "it is not UTF-8",
        ),
        (
            |tree| tree.write("workspace/.lsp.json", &" ".repeat(256 * 1024 + 1)),
            "",
        ),
    ];
    for (make, reason) in cases {
        let tree = Tree::new();
        make(&tree);
        let expected = match reason {
            "" => ConfigError::TooLarge {
                path: path(&tree),
                limit: 256 * 1024,
            },
            reason => ConfigError::Unreadable {
                path: path(&tree),
                reason: reason.to_owned(),
            },
        };
        assert_eq!(tree.select_trusted("x.py").notes, [ConfigNote::Broken(expected)]);
    }
}
