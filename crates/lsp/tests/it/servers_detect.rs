//! Where programs are looked for.

use std::os::unix::fs::symlink;

use lsp::{
    Detected, LocalPrograms, MissingProgram, MissingReason, ProgramPlace, RegistrySettings, Search,
    ServerDefinition,
};

use crate::servers_tree::{Tree, nothing};

fn definition(tree: &Tree, name: &str) -> ServerDefinition {
    let servers = tree.registry(nothing).workspace(&tree.workspace()).unwrap();
    servers
        .definitions()
        .iter()
        .find(|known| *known.name == *name)
        .unwrap()
        .clone()
}

fn detect(tree: &Tree, name: &str, root: &str, local: LocalPrograms) -> Detected {
    let environment = tree.environment();
    let search = Search {
        environment: &environment,
        root: &tree.path(root),
        workspace: &tree.workspace(),
        local,
    };
    search.detect(&definition(tree, name))
}

#[test]
fn a_program_is_looked_for_in_the_workspace_then_on_the_machine() {
    let everywhere = [
        "workspace/a/node_modules/.bin/pyright-langserver",
        "workspace/node_modules/.bin/pyright-langserver",
        "workspace/.venv/bin/pyright-langserver",
        "workspace/venv/bin/pyright-langserver",
        "bin/pyright-langserver",
        "home/.cargo/bin/pyright-langserver",
        "home/.local/bin/pyright-langserver",
        "home/go/bin/pyright-langserver",
    ];
    // Each one is used as soon as those before it are gone.
    for at in 0..everywhere.len() {
        let tree = Tree::new();
        tree.programs(&everywhere[at..]);
        let place = if at < 4 {
            ProgramPlace::Workspace
        } else {
            ProgramPlace::Machine
        };
        let Detected::Found(found) = detect(&tree, "pyright", "workspace/a", LocalPrograms::Use) else {
            panic!("{} was not found", everywhere[at]);
        };
        assert_eq!(
            (tree.relative(&found.program).as_str(), found.place),
            (everywhere[at], place)
        );
        assert_eq!(found.arguments, ["--stdio"]);
    }
}

#[test]
fn programs_of_an_untrusted_workspace_are_not_used() {
    let tree = Tree::new();
    tree.programs(&["workspace/node_modules/.bin/pyright-langserver"]);
    let missing = detect(&tree, "pyright", "workspace", LocalPrograms::Ignore);
    let expected = Detected::Missing(MissingProgram {
        install: "npm install --global pyright".to_owned(),
        why: MissingReason::OnlyInUntrustedWorkspace {
            program: tree.path("workspace/node_modules/.bin/pyright-langserver"),
        },
    });
    assert_eq!(missing, expected);
    tree.programs(&["bin/pyright-langserver"]);
    let Detected::Found(found) = detect(&tree, "pyright", "workspace", LocalPrograms::Ignore) else {
        panic!("the machine has one");
    };
    assert_eq!(tree.relative(&found.program), "bin/pyright-langserver");
}

#[test]
fn what_is_no_program_is_not_found() {
    let tree = Tree::with(&[
        ("bin/clangd", "not executable"),
        ("bin/clangd-22/x", "a directory"),
    ]);
    let missing = detect(&tree, "clangd", "workspace", LocalPrograms::Use);
    let Detected::Missing(missing) = missing else {
        panic!("{missing:?}");
    };
    let programs = [
        "clangd",
        "clangd-22",
        "clangd-20",
        "clangd-18",
        "clangd-16",
        "clangd-14",
    ];
    let programs = programs.map(str::to_owned).to_vec();
    assert_eq!(missing.why, MissingReason::NotFound { programs });
    // A later candidate is as good.
    tree.programs(&["bin/clangd-16"]);
    assert!(matches!(
        detect(&tree, "clangd", "workspace", LocalPrograms::Use),
        Detected::Found(_)
    ));
}

#[test]
fn a_stand_in_of_rustup_is_asked_whether_anything_is_behind_it() {
    // What it writes and how it ends, and the version if that makes it a server.
    let cases = [
        ("echo rust-analyzer 1.95.0; exit 0", Some("rust-analyzer 1.95.0")),
        ("echo; exit 0", None),
        ("echo rust-analyzer 1.95.0; exit 1", None),
        (
            "echo \"error: 'rust-analyzer' is not installed\" >&2; exit 1",
            None,
        ),
        // It is told not to fetch anything.
        ("test \"$RUSTUP_AUTO_INSTALL\" = 0 && echo 1; exit", Some("1")),
        // It is not given what it has no use for.
        ("test -z \"$SECRET\" && echo 2; exit", Some("2")),
        ("pwd", Some("workspace")),
        ("kill -9 $$", None),
    ];
    for link in [true, false] {
        for (script, expected) in cases {
            let tree = Tree::new();
            tree.program("bin/rustup", script);
            let proxy = tree.path("bin/rust-analyzer");
            if link {
                symlink("rustup", &proxy).unwrap();
            } else {
                std::fs::hard_link(tree.path("bin/rustup"), &proxy).unwrap();
            }
            match (
                detect(&tree, "rust-analyzer", "workspace", LocalPrograms::Use),
                expected,
            ) {
                (Detected::Found(found), Some(expected)) => {
                    let version = found.version.unwrap();
                    assert!(version.ends_with(expected), "{script}: {version}");
                    assert_eq!(found.program, proxy);
                }
                (Detected::Missing(missing), None) => {
                    let install = "rustup component add rust-analyzer rust-src".to_owned();
                    let why = MissingReason::ComponentMissing { program: proxy };
                    assert_eq!(missing, MissingProgram { install, why }, "{script}");
                }
                (detected, _) => panic!("{script}: {detected:?}"),
            }
        }
    }
}

#[test]
fn a_real_program_behind_an_empty_stand_in_is_found() {
    let tree = Tree::new();
    tree.program("bin/rustup", "exit 1");
    symlink("rustup", tree.path("bin/rust-analyzer")).unwrap();
    tree.programs(&["home/.local/bin/rust-analyzer"]);
    let Detected::Found(found) = detect(&tree, "rust-analyzer", "workspace", LocalPrograms::Use) else {
        panic!("it is there");
    };
    assert_eq!(tree.relative(&found.program), "home/.local/bin/rust-analyzer");
}

#[test]
fn a_plain_program_is_not_run() {
    let tree = Tree::new();
    tree.program("bin/rust-analyzer", "touch \"$HOME/was-run\"; echo 1");
    let Detected::Found(found) = detect(&tree, "rust-analyzer", "workspace", LocalPrograms::Use) else {
        panic!("it is there");
    };
    assert_eq!(found.version, None);
    assert!(!tree.path("home/was-run").exists());
}

#[test]
fn a_relative_path_is_nobodys_directory() {
    let tree = Tree::new();
    tree.programs(&["workspace/bin/gopls"]);
    // It leads to the program from where this test runs, and from nowhere else.
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count() - 1);
    let relative = format!(
        "{up}{}",
        tree.path("workspace/bin").strip_prefix("/").unwrap().display()
    );
    assert!(std::path::Path::new(&relative).join("gopls").exists());
    let environment = lsp::Environment::new([("PATH".into(), relative.into())]);
    let settings = RegistrySettings {
        environment,
        user_configuration: None,
        data_directory: tree.path("data"),
    };
    let registry = lsp::Registry::new(settings, std::sync::Arc::new(nothing));
    let selection = registry
        .servers_for(&tree.path("workspace/x.go"), &tree.workspace())
        .unwrap();
    assert_eq!(selection.primary, None);
}
