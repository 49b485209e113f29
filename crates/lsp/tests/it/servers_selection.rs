//! Which servers a file gets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lsp::{
    Chosen, CommandSpec, ConfigNote, LaunchSpec, MissingReason, ReadinessSignal, Role, ServerAvailability,
    ServerLimits,
};
use serde_json::json;

use crate::servers_tree::{Tree, names, nothing};

#[test]
fn a_file_gets_one_primary_server_and_the_supplements_that_are_here() {
    // The programs that are here, the file, and the servers that it gets.
    type Case<'a> = (&'a [&'a str], &'a str, Option<&'a str>, &'a [&'a str]);
    let cases: [Case<'_>; 16] = [
        (
            &["basedpyright-langserver", "pyright-langserver", "ty", "ruff"],
            "x.py",
            Some("basedpyright"),
            &["ruff"],
        ),
        (&["pyright-langserver", "ty"], "x.py", Some("pyright"), &[]),
        (&["ty", "pylsp"], "x.pyi", Some("ty"), &[]),
        (
            &["jedi-language-server"],
            "x.py",
            Some("jedi-language-server"),
            &[],
        ),
        (&["ruff"], "x.py", None, &["ruff"]),
        (
            &["tsgo", "typescript-language-server"],
            "x.tsx",
            Some("typescript-language-server"),
            &[],
        ),
        (&["tsgo"], "x.mjs", Some("tsgo"), &[]),
        // Deno has nothing to say where no deno.json is.
        (&["deno", "tsgo"], "x.ts", Some("tsgo"), &[]),
        (&["deno", "tsgo"], "deno/x.ts", Some("deno"), &[]),
        (&["clangd"], "x.h", Some("clangd"), &[]),
        (&["gopls"], "go.mod", Some("gopls"), &[]),
        (
            &["bash-language-server"],
            "script",
            Some("bash-language-server"),
            &[],
        ),
        (
            &["vscode-json-language-server", "biome"],
            "x.json",
            Some("vscode-json-language-server"),
            &[],
        ),
        (&["clangd"], "x.unknown", None, &[]),
        (&["clangd"], ".c", None, &[]),
        (
            &["cmake-language-server"],
            "CMakeLists.txt",
            Some("cmake-language-server"),
            &[],
        ),
    ];
    for (programs, file, primary, supplements) in cases {
        let tree = Tree::with(&[
            ("workspace/deno/deno.json", "{}"),
            ("workspace/script", "#!/usr/bin/env bash\n"),
        ]);
        for program in programs {
            tree.programs(&[&format!("bin/{program}")]);
        }
        let expected = (
            primary.map(str::to_owned),
            supplements.iter().map(|name| (*name).to_owned()).collect(),
        );
        assert_eq!(names(&tree.select(file)), expected, "{file} with {programs:?}");
    }
}

#[test]
fn a_chosen_server_has_everything_to_be_started() {
    let tree = Tree::with(&[("workspace/lib/go.mod", "module x"), ("workspace/lib/x.go", "")]);
    tree.programs(&["home/go/bin/gopls"]);
    let selection = tree.select("lib/x.go");
    let environment = BTreeMap::from([
        ("HOME".into(), tree.path("home").into()),
        ("LANG".into(), "C.UTF-8".into()),
        // The program's directory is added, so that it finds its neighbours.
        (
            "PATH".into(),
            std::env::join_paths([tree.path("bin"), tree.path("home/go/bin")]).unwrap(),
        ),
    ]);
    let root = tree.path("workspace/lib");
    let expected = Chosen {
        name: Arc::from("gopls"),
        root: Arc::from(root.as_path()),
        role: Role::Primary,
        language_id: Arc::from("go"),
        launch: LaunchSpec::Stdio(CommandSpec {
            program: tree.path("home/go/bin/gopls"),
            arguments: Vec::new(),
            environment,
            directory: root,
            needed_directories: Vec::new(),
        }),
        initialization_options: None,
        settings: None,
        readiness: ReadinessSignal::WorkDoneProgress,
        limits: ServerLimits::default(),
    };
    assert_eq!(selection.primary, Some(expected));
    assert_eq!((selection.missing, selection.notes), (Vec::new(), Vec::new()));
}

#[test]
fn what_is_missing_is_said_if_nothing_else_is_there() {
    let tree = Tree::new();
    let missing = |file: &str| -> Vec<(String, String)> {
        let missing = tree.select(file).missing.into_iter();
        missing
            .map(|server| (server.name.to_string(), server.program.install))
            .collect()
    };
    let expected = [(
        "gopls".to_owned(),
        "go install golang.org/x/tools/gopls@latest".to_owned(),
    )];
    assert_eq!(missing("x.go"), expected);
    let python: Vec<_> = missing("x.py").into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        python,
        ["basedpyright", "pyright", "ty", "pylsp", "jedi-language-server"]
    );
    tree.programs(&["bin/pylsp"]);
    assert_eq!(missing("x.py"), []);
}

#[test]
fn a_program_of_the_workspace_is_used_when_that_is_trusted() {
    let tree = Tree::new();
    tree.programs(&["workspace/.venv/bin/ty", "workspace/.venv/bin/python"]);
    let untrusted = tree.select("x.py");
    assert_eq!(untrusted.primary, None);
    let expected = ConfigNote::LocalProgramNotUsed {
        server: "ty".to_owned(),
        program: tree.path("workspace/.venv/bin/ty"),
        how_to_trust: format!("tidelock lsp trust {}", tree.workspace().display()),
    };
    assert_eq!(untrusted.notes, [expected]);
    let trusted = tree.select_trusted("x.py").primary.unwrap();
    let LaunchSpec::Stdio(command) = trusted.launch else {
        panic!("{trusted:?}");
    };
    assert_eq!(tree.relative(&command.program), "workspace/.venv/bin/ty");
    let path = std::env::join_paths([tree.path("workspace/.venv/bin"), tree.path("bin")]).unwrap();
    assert_eq!(command.environment.get(std::ffi::OsStr::new("PATH")), Some(&path));
}

#[test]
fn a_linter_that_loads_the_repositorys_code_waits_for_trust() {
    let tree = Tree::with(&[("workspace/eslint.config.js", "")]);
    tree.programs(&["bin/vscode-eslint-language-server", "bin/tsgo"]);
    assert_eq!(names(&tree.select("x.ts")).1, Vec::<String>::new());
    assert_eq!(names(&tree.select_trusted("x.ts")).1, ["eslint"]);
    std::fs::remove_file(tree.path("workspace/eslint.config.js")).unwrap();
    assert_eq!(names(&tree.select_trusted("x.ts")).1, Vec::<String>::new());
}

#[test]
fn typescript_of_the_repository_runs_only_if_it_is_trusted() {
    let tree = Tree::with(&[
        ("workspace/node_modules/typescript/lib/tsserver.js", ""),
        ("modules/node_modules/typescript/lib/tsserver.js", ""),
    ]);
    tree.programs(&["modules/node_modules/typescript-language-server/lib/cli.mjs"]);
    std::os::unix::fs::symlink(
        tree.path("modules/node_modules/typescript-language-server/lib/cli.mjs"),
        tree.path("bin/typescript-language-server"),
    )
    .unwrap();
    let options = |path: &str| {
        let tsserver =
            json!({"useClientFileWatcher": true, "useSyntaxServer": "never", "path": tree.path(path)});
        Some(json!({"disableAutomaticTypingAcquisition": true, "tsserver": tsserver}))
    };
    let untrusted = tree.select("x.ts").primary.unwrap();
    assert_eq!(
        untrusted.initialization_options,
        options("modules/node_modules/typescript/lib/tsserver.js")
    );
    let trusted = tree.select_trusted("x.ts").primary.unwrap();
    assert_eq!(
        trusted.initialization_options,
        options("workspace/node_modules/typescript/lib/tsserver.js")
    );
}

#[test]
fn an_interpreter_of_the_repository_runs_only_if_it_is_trusted() {
    let tree = Tree::new();
    tree.programs(&["workspace/.venv/bin/python", "bin/pyright-langserver"]);
    assert_eq!(tree.select("x.py").primary.unwrap().settings, None);
    let expected = json!({"python": {"pythonPath": tree.path("workspace/.venv/bin/python")}});
    assert_eq!(
        tree.select_trusted("x.py").primary.unwrap().settings,
        Some(expected)
    );
}

#[test]
fn a_server_with_an_index_has_a_directory_per_root() {
    let tree = Tree::with(&[("workspace/a/pom.xml", ""), ("workspace/b/pom.xml", "")]);
    tree.programs(&["bin/jdtls"]);
    let data = |file: &str| {
        let chosen = tree.select(file).primary.unwrap();
        let LaunchSpec::Stdio(command) = chosen.launch else {
            panic!("{file}");
        };
        let [directory] = &command.needed_directories[..] else {
            panic!("{:?}", command.needed_directories);
        };
        assert_eq!(
            command.arguments,
            [Path::new("-data").as_os_str(), directory.as_os_str()]
        );
        assert!(directory.starts_with(tree.path("data/jdtls")), "{directory:?}");
        directory.clone()
    };
    assert_eq!(data("a/X.java"), data("a/src/Y.java"));
    assert_ne!(data("a/X.java"), data("b/X.java"));
}

#[test]
fn the_overview_names_every_server_once() {
    let tree = Tree::with(&[(
        "user.json",
        r#"{"servers": {"ruff": {"disabled": true}, "mine": {"transport": {"tcp": "127.0.0.1:7001"}, "extensions": {".x": "x"}}}}"#,
    )]);
    tree.programs(&["bin/gopls"]);
    let overview = tree.registry(nothing).overview(&tree.workspace()).unwrap();
    let status = |name: &str| {
        let mut entries = overview.servers.iter().filter(|entry| *entry.name == *name);
        let entry = entries.next().unwrap();
        assert_eq!(entries.next(), None);
        entry.status.clone()
    };
    assert!(matches!(status("gopls"), ServerAvailability::Found(_)));
    assert_eq!(status("ruff"), ServerAvailability::Disabled);
    assert_eq!(
        status("mine"),
        ServerAvailability::Remote("127.0.0.1:7001".parse().unwrap())
    );
    let ServerAvailability::Missing(missing) = status("zls") else {
        panic!("{:?}", status("zls"));
    };
    assert_eq!(
        missing.why,
        MissingReason::NotFound {
            programs: vec!["zls".to_owned()]
        }
    );
    assert!(overview.servers.len() > 50, "{}", overview.servers.len());
}
