//! Where roots are found.

use lsp::{Bounds, FoundBy, RootError, RootRule, RootStep, find_root};

use crate::servers_tree::Tree;

fn nearest(markers: &[&str]) -> RootStep {
    RootStep::Nearest(markers.iter().map(|marker| (*marker).to_owned()).collect())
}

fn outermost(markers: &[&str]) -> RootStep {
    RootStep::Outermost(markers.iter().map(|marker| (*marker).to_owned()).collect())
}

fn marker(name: &str) -> FoundBy {
    FoundBy::Marker(name.to_owned())
}

/// Files to make, the steps, the file that is asked about, and the root with its reason.
type Case<'a> = (&'a [&'a str], Vec<RootStep>, &'a str, (&'a str, FoundBy));

#[test]
fn a_root_is_found_by_its_markers() {
    let cases: Vec<Case<'_>> = vec![
        // The nearest counts, also if it is further down the list of one group.
        (
            &["workspace/go.mod", "workspace/a/setup.py", "workspace/a/b/x.py"],
            vec![nearest(&["go.mod", "setup.py"])],
            "workspace/a/b/x.py",
            ("workspace/a", marker("setup.py")),
        ),
        // A group before another one counts more than being near.
        (
            &["workspace/go.work", "workspace/a/go.mod", "workspace/a/x.go"],
            vec![nearest(&["go.work"]), nearest(&["go.mod"])],
            "workspace/a/x.go",
            ("workspace", marker("go.work")),
        ),
        (
            &[
                "workspace/pom.xml",
                "workspace/a/pom.xml",
                "workspace/a/b/pom.xml",
                "pom.xml",
            ],
            vec![outermost(&["pom.xml"])],
            "workspace/a/b/X.java",
            ("workspace", marker("pom.xml")),
        ),
        (
            &["workspace/app.sln", "workspace/src/x.cs"],
            vec![nearest(&["*.sln"])],
            "workspace/src/x.cs",
            ("workspace", marker("*.sln")),
        ),
        // A directory stands for itself.
        (
            &["workspace/a/go.mod"],
            vec![nearest(&["go.mod"])],
            "workspace/a",
            ("workspace/a", marker("go.mod")),
        ),
        // A file that is not there yet, in directories that are not there yet.
        (
            &["workspace/a/go.mod"],
            vec![nearest(&["go.mod"])],
            "workspace/a/new/deep/x.go",
            ("workspace/a", marker("go.mod")),
        ),
        // Nothing above the workspace counts.
        (
            &["go.mod", ".git/HEAD", "workspace/x.go"],
            vec![nearest(&["go.mod"])],
            "workspace/x.go",
            ("workspace", FoundBy::Workspace),
        ),
        (
            &["workspace/a/.git/HEAD", "workspace/a/b/x.sh"],
            vec![],
            "workspace/a/b/x.sh",
            ("workspace/a", FoundBy::Repository),
        ),
        (
            &["workspace/b/x.sh"],
            vec![],
            "workspace/b/x.sh",
            ("workspace", FoundBy::Workspace),
        ),
        // What lies outside, such as a dependency's source, belongs to the workspace it was reached from.
        (
            &["elsewhere/go.mod", "elsewhere/x.go", "workspace/go.mod"],
            vec![nearest(&["go.mod"])],
            "elsewhere/x.go",
            ("workspace", marker("go.mod")),
        ),
        (
            &["workspace/a/x.go"],
            vec![RootStep::Directory("a".into())],
            "workspace/x.go",
            ("workspace/a", FoundBy::Configuration),
        ),
    ];
    for (files, steps, file, (root, found_by)) in cases {
        let tree = Tree::new();
        files.iter().for_each(|file| tree.write(file, ""));
        let workspace = tree.workspace();
        let bounds = Bounds {
            workspace: Some(&workspace),
            home: None,
        };
        let found = find_root(&RootRule { steps }, &tree.path(file), bounds).unwrap();
        assert_eq!(
            (tree.relative(&found.path), found.found_by),
            (root.to_owned(), found_by),
            "{file} among {files:?}"
        );
    }
}

#[test]
fn a_member_of_a_cargo_workspace_has_the_root_of_the_workspace() {
    let package = "[package]\nname = \"a\"\nversion.workspace = true\n";
    let cases: [(&[(&str, &str)], &str); 8] = [
        (
            &[
                ("Cargo.toml", "[workspace]\nmembers = [\"a\"]"),
                ("a/Cargo.toml", package),
            ],
            "",
        ),
        (&[("a/Cargo.toml", package)], "a"),
        (
            &[("a/Cargo.toml", package), ("a/src/b/Cargo.toml", package)],
            "a/src/b",
        ),
        // A package that is a workspace of its own.
        (
            &[
                ("Cargo.toml", "[workspace]"),
                ("a/Cargo.toml", "[package]\nname = \"a\"\n[workspace]"),
            ],
            "a",
        ),
        (
            &[
                ("Cargo.toml", "[workspace]\nexclude = [\"a\"]"),
                ("a/Cargo.toml", package),
            ],
            "a",
        ),
        (
            &[
                ("Cargo.toml", "[workspace]\nexclude = [\"ab\"]"),
                ("a/Cargo.toml", package),
            ],
            "",
        ),
        (
            &[
                ("Cargo.toml", "[workspace]\nexclude = [\"a/\"]"),
                ("a/src/b/Cargo.toml", package),
            ],
            "a/src/b",
        ),
        // A manifest between the two that is a mere package does not end the search.
        (
            &[
                ("Cargo.toml", "[workspace]"),
                ("a/Cargo.toml", package),
                ("a/src/b/Cargo.toml", package),
            ],
            "",
        ),
    ];
    let rule = RootRule {
        steps: vec![RootStep::CargoWorkspace],
    };
    for (manifests, expected) in cases {
        let tree = Tree::with(&[("workspace/a/src/b/lib.rs", ""), ("Cargo.toml", "[workspace]")]);
        for (path, text) in manifests {
            tree.write(&format!("workspace/{path}"), text);
        }
        let workspace = tree.workspace();
        let bounds = Bounds {
            workspace: Some(&workspace),
            home: None,
        };
        let found = find_root(&rule, &tree.path("workspace/a/src/b/lib.rs"), bounds).unwrap();
        assert_eq!(
            (found.path.to_path_buf(), found.found_by),
            (
                workspace.join(expected).components().collect(),
                marker("Cargo.toml")
            ),
            "{manifests:?}"
        );
    }
}

#[test]
fn two_ways_to_a_directory_are_one_root() {
    let tree = Tree::with(&[("workspace/real/go.mod", ""), ("workspace/real/x.go", "")]);
    std::os::unix::fs::symlink(tree.path("workspace/real"), tree.path("workspace/link")).unwrap();
    std::os::unix::fs::symlink(tree.workspace(), tree.path("alias")).unwrap();
    let rule = RootRule {
        steps: vec![nearest(&["go.mod"])],
    };
    for (workspace, file) in [("workspace", "workspace/link/x.go"), ("alias", "alias/real/x.go")] {
        let workspace = tree.path(workspace);
        let bounds = Bounds {
            workspace: Some(&workspace),
            home: None,
        };
        let found = find_root(&rule, &tree.path(file), bounds).unwrap();
        assert_eq!(tree.relative(&found.path), "workspace/real", "{file}");
    }
}

#[test]
fn without_a_workspace_the_home_directory_is_no_project() {
    let tree = Tree::with(&[
        ("home/go.mod", ""),
        ("home/p/go.mod", ""),
        ("home/p/x.go", ""),
        ("home/q/x.go", ""),
    ]);
    let home = tree.path("home");
    let bounds = Bounds {
        workspace: None,
        home: Some(&home),
    };
    let rule = RootRule {
        steps: vec![nearest(&["go.mod"])],
    };
    let cases = [
        ("home/p/x.go", "home/p", marker("go.mod")),
        ("home/q/x.go", "home/q", FoundBy::FileDirectory),
    ];
    for (file, root, found_by) in cases {
        let found = find_root(&rule, &tree.path(file), bounds).unwrap();
        assert_eq!(
            (tree.relative(&found.path).as_str(), found.found_by),
            (root, found_by)
        );
    }
}

#[test]
fn a_configured_root_outside_of_the_workspace_is_refused() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    let bounds = Bounds {
        workspace: Some(&workspace),
        home: None,
    };
    for outside in ["../home", "/"] {
        let rule = RootRule {
            steps: vec![RootStep::Directory(outside.into())],
        };
        let refused = find_root(&rule, &workspace, bounds);
        assert!(matches!(refused, Err(RootError::Outside { .. })), "{refused:?}");
    }
}
