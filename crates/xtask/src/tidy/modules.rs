//! Which target each Rust file belongs to, found by following `mod` lines from the roots that cargo compiles.
//!
//! A file that no `mod` line reaches is never compiled: a test in it never fails, and no one notices. A crate has one
//! integration-test binary, since each additional one is linked separately.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::files::Tree;
use super::layers::{self, Kind};
use super::scrub::Source;
use crate::workspace::{TargetKind, Workspace};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Support,
    /// Shipped code. A file that serves both is product.
    Product,
}

#[derive(Debug, Default)]
pub(super) struct Modules {
    reached: BTreeMap<PathBuf, (String, Role)>,
}

/// The crates that may have more than one integration-test binary, with the names they may use.
const SEVERAL_TEST_BINARIES: &[(&str, &[&str])] = &[("kernel", &["it", "models"])];

/// Follows the `mod` lines of all targets.
pub(super) fn walk(workspace: &Workspace, tree: &Tree) -> Modules {
    let mut modules = Modules::default();
    for package in &workspace.packages {
        let is_product = layers::find(&package.name).is_some_and(|layer| layer.kind == Kind::Product);
        for target in &package.targets {
            let role = match target.kind {
                TargetKind::Product if is_product => Role::Product,
                TargetKind::Product | TargetKind::Test | TargetKind::Support => Role::Support,
            };
            let root = workspace.relative(&target.root);
            modules.reach(tree, &package.name, root, Position::Root, role);
        }
    }
    modules
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// A root or a `mod.rs`: next to itself.
    Root,
    /// Any other file: in the directory with its own name.
    Inner,
}

impl Modules {
    pub(super) fn role(&self, path: &Path) -> Option<Role> {
        self.reached.get(path).map(|(_, role)| *role)
    }

    pub(super) fn package(&self, path: &Path) -> Option<&str> {
        self.reached.get(path).map(|(package, _)| package.as_str())
    }

    fn reach(&mut self, tree: &Tree, package: &str, path: &Path, position: Position, role: Role) {
        let Some(source) = tree.source(path) else { return };
        let known = self.reached.get(path).map(|(_, role)| *role);
        if known.is_some_and(|known| known >= role) {
            return;
        }
        self.reached.insert(path.to_owned(), (package.to_owned(), role));
        let beside = path.parent().unwrap_or(Path::new(""));
        let children = match position {
            Position::Root => beside.to_owned(),
            Position::Inner => beside.join(path.file_stem().unwrap_or_default()),
        };
        for declared in declarations(source) {
            let role = if declared.only_in_tests {
                Role::Support
            } else {
                role
            };
            let candidates = match declared.path {
                Some(named) => vec![(without_dots(&beside.join(named)), Position::Root)],
                None => vec![
                    (children.join(format!("{}.rs", declared.name)), Position::Inner),
                    (children.join(&declared.name).join("mod.rs"), Position::Root),
                ],
            };
            for (path, position) in candidates {
                self.reach(tree, package, &path, position, role);
            }
        }
    }

    /// Files that are never compiled, and crates with too many test binaries.
    pub(super) fn forgotten(&self, workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
        let mut findings = Vec::new();
        for package in &workspace.packages {
            let directory = workspace.relative(&package.directory);
            let below = ["src", "tests", "benches", "examples"].map(|part| directory.join(part));
            let files = tree.sources().map(|(path, _)| path);
            let forgotten = files
                .filter(|path| below.iter().any(|below| path.starts_with(below)))
                .filter(|path| !self.reached.contains_key(*path));
            findings.extend(forgotten.map(|path| {
                Finding::in_file(
                    path,
                    "forgotten: no `mod` line reaches this file, so nothing compiles it",
                )
            }));
            let may_have = SEVERAL_TEST_BINARIES
                .iter()
                .find(|(name, _)| *name == package.name);
            let tests: Vec<&str> = package
                .targets
                .iter()
                .filter(|target| target.kind == TargetKind::Test)
                .map(|target| target.name.as_str())
                .collect();
            let is_within = match may_have {
                Some((_, names)) => tests.iter().all(|test| names.contains(test)),
                None => tests.len() <= 1,
            };
            if !is_within {
                let message = format!("has the test binaries {}; one is enough", tests.join(", "));
                findings.push(Finding::in_file(directory, message));
            }
        }
        findings
    }
}

/// The same path without `..`, which the tree of files does not contain.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            _ => plain.push(part),
        }
    }
    plain
}

#[derive(Debug, PartialEq, Eq)]
struct Declaration {
    name: String,
    /// The value of a `path` attribute.
    path: Option<String>,
    only_in_tests: bool,
}

fn declarations(source: &Source) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut path = None;
    for (_, line) in source.lines() {
        let mut code = line.code.trim();
        while code.starts_with("#[") {
            if code.starts_with("#[path") {
                // The scrubbed line lacks the literal; the raw one has it.
                path = line.raw.split('"').nth(1).map(str::to_owned);
            }
            code = code.split_once(']').map_or("", |(_, rest)| rest.trim_start());
        }
        if code.is_empty() {
            continue;
        }
        if let Some(name) = module_name(code) {
            let path = path.take();
            found.push(Declaration {
                name: name.to_owned(),
                path,
                only_in_tests: line.only_in_tests,
            });
        }
        path = None;
    }
    found
}

/// The name in `mod name;`, whatever its visibility.
fn module_name(code: &str) -> Option<&str> {
    let rest = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => code,
    };
    let name = rest.strip_prefix("mod ")?.strip_suffix(';')?.trim();
    Some(name.strip_prefix("r#").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Package, Target};

    fn workspace(targets: &[(&str, TargetKind, &str)]) -> Workspace {
        let targets = targets
            .iter()
            .map(|(name, kind, root)| Target {
                name: (*name).to_owned(),
                kind: *kind,
                root: Path::new("/r").join(root),
            })
            .collect();
        Workspace {
            root: "/r".into(),
            target_directory: "/r/target".into(),
            packages: vec![Package {
                name: "eventlog".to_owned(),
                directory: "/r/crates/eventlog".into(),
                dependencies: Vec::new(),
                targets,
            }],
        }
    }

    #[test]
    fn declarations_are_found_with_path_and_role() {
        let text = "//! mod in_a_comment;\npub mod a;\npub(crate) mod b;\n#[path = \"odd/c.rs\"]\nmod c;\n\
                    #[cfg(test)]\nmod d;\nmod inline { }\nlet s = \"\nmod in_a_string;\n\";\n";
        let declared = |name: &str, path: Option<&str>, only_in_tests| Declaration {
            name: name.to_owned(),
            path: path.map(str::to_owned),
            only_in_tests,
        };
        let expected = [
            declared("a", None, false),
            declared("b", None, false),
            declared("c", Some("odd/c.rs"), false),
            declared("d", None, true),
        ];
        assert_eq!(declarations(&Source::new(text)), expected);
    }

    #[test]
    fn files_are_reached_with_their_role_or_reported() {
        let tree = Tree::of(&[
            (
                "crates/eventlog/src/lib.rs",
                "mod writer;\nmod blobs;\n#[cfg(test)]\nmod fixtures;",
            ),
            ("crates/eventlog/src/writer.rs", "mod queue;"),
            ("crates/eventlog/src/writer/queue.rs", ""),
            ("crates/eventlog/src/blobs/mod.rs", "mod pack;"),
            ("crates/eventlog/src/blobs/pack.rs", ""),
            ("crates/eventlog/src/fixtures.rs", ""),
            ("crates/eventlog/src/old.rs", ""),
            (
                "crates/eventlog/tests/it/main.rs",
                "mod crash;\n#[path = \"../shared/mod.rs\"]\nmod shared;",
            ),
            ("crates/eventlog/tests/shared/mod.rs", "mod fake;"),
            ("crates/eventlog/tests/shared/fake.rs", ""),
            ("crates/eventlog/tests/it/crash.rs", ""),
            ("crates/eventlog/tests/it/lost.rs", ""),
        ]);
        let workspace = workspace(&[
            ("eventlog", TargetKind::Product, "crates/eventlog/src/lib.rs"),
            ("it", TargetKind::Test, "crates/eventlog/tests/it/main.rs"),
        ]);
        let modules = walk(&workspace, &tree);
        let forgotten: Vec<_> = modules
            .forgotten(&workspace, &tree)
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        let expected = ["crates/eventlog/src/old.rs", "crates/eventlog/tests/it/lost.rs"];
        assert_eq!(forgotten, expected.map(PathBuf::from));
        let roles = [
            ("crates/eventlog/src/writer/queue.rs", Some(Role::Product)),
            ("crates/eventlog/src/blobs/pack.rs", Some(Role::Product)),
            ("crates/eventlog/src/fixtures.rs", Some(Role::Support)),
            ("crates/eventlog/tests/it/crash.rs", Some(Role::Support)),
            ("crates/eventlog/tests/shared/fake.rs", Some(Role::Support)),
            ("crates/eventlog/src/old.rs", None),
        ];
        for (path, role) in roles {
            assert_eq!(modules.role(Path::new(path)), role, "{path}");
        }
    }

    #[test]
    fn a_second_test_binary_is_reported() {
        let workspace = workspace(&[
            ("it", TargetKind::Test, "crates/eventlog/tests/it.rs"),
            ("more", TargetKind::Test, "crates/eventlog/tests/more.rs"),
        ]);
        let findings = Modules::default().forgotten(&workspace, &Tree::default());
        let expected = Finding::in_file(
            Path::new("crates/eventlog"),
            "has the test binaries it, more; one is enough",
        );
        assert_eq!(findings, [expected]);
    }
}
