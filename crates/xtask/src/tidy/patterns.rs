//! Patterns that may not be used, or only with a reason next to them.
//!
//! A rule only checks code, never comments or literals. Where a rule allows an exception, the line has a trailing
//! comment that starts with `tidy:` and gives the reason.

use std::path::Path;

use super::Finding;
use super::files::Tree;
use super::modules::{Modules, Role};
use super::scrub::Line;

#[derive(Debug)]
struct Rule {
    finds: Finds,
    holds: Holds,
    exception: Exception,
    message: &'static str,
}

#[derive(Debug)]
enum Finds {
    /// This text on its own: no letter, digit or underscore before it or, if it ends in one, after it.
    Text(&'static str),
    /// A word with this prefix followed by a capital, such as `AtomicU64`.
    WordFamily(&'static str),
}

#[derive(Debug)]
enum Holds {
    Everywhere,
    /// In shipped code, but not in the named crate or file.
    InProduct {
        but_not_in: Area,
    },
    /// In what the daemon does first, while a request waits.
    InDoors,
}

/// The parts of the daemon with functions that run on the runtime's threads, of which there is one.
const DOORS: [&str; 3] = [
    "crates/daemon/src/http",
    "crates/daemon/src/page",
    "crates/daemon/src/mcp",
];

#[derive(Debug)]
enum Area {
    Nowhere,
    Crate(&'static str),
    File(&'static str),
    Directory(&'static str),
}

#[derive(Debug, PartialEq, Eq)]
enum Exception {
    None,
    /// A trailing `// tidy: reason`.
    Reason,
    /// Any comment on the line or right above it; it says what the lock guards. Imports and calls are exempt.
    GuardedFieldComment,
}

const SLEEP: &str = "sleeps; wait for a condition, or add `// tidy:` and the reason";
const SPAWN: &str = "spawns a task that nobody tracks; use the tracker in tasks.rs";
const ATOMIC: &str = "atomics live in `kernel`; use a slot, a token or a message";
const LOCK: &str = "condition variables and read-write locks live in `kernel`";
const BLOCKS: &str =
    "looks at the file system on a thread of the runtime; use `blocking`, or add `// tidy:` and the reason";
const EVERYWHERE: Holds = Holds::Everywhere;
const PRODUCT: Holds = Holds::InProduct {
    but_not_in: Area::Nowhere,
};
const OUTSIDE_KERNEL: Holds = Holds::InProduct {
    but_not_in: Area::Crate("kernel"),
};
const OUTSIDE_TASKS: Holds = Holds::InProduct {
    but_not_in: Area::File("tasks.rs"),
};

const OUTSIDE_MCP: Holds = Holds::InProduct {
    but_not_in: Area::Directory("mcp"),
};

const RULES: &[Rule] = &[
    rule(
        Finds::Text("rmcp::"),
        OUTSIDE_MCP,
        Exception::None,
        "the library of the Model Context Protocol is known to `daemon/src/mcp` alone",
    ),
    rule(
        Finds::Text("#[ignore"),
        EVERYWHERE,
        Exception::None,
        "an ignored test is no test",
    ),
    rule(
        Finds::Text("#[allow("),
        EVERYWHERE,
        Exception::None,
        "write `#[expect(lint, reason = ..)]` instead",
    ),
    rule(
        Finds::Text("#![allow("),
        EVERYWHERE,
        Exception::None,
        "write `#![expect(lint, reason = ..)]` instead",
    ),
    rule(Finds::Text("todo!"), EVERYWHERE, Exception::None, "unfinished"),
    rule(
        Finds::Text("tokio::spawn"),
        OUTSIDE_TASKS,
        Exception::Reason,
        SPAWN,
    ),
    rule(
        Finds::Text("task::spawn"),
        OUTSIDE_TASKS,
        Exception::Reason,
        SPAWN,
    ),
    rule(Finds::Text("fs::"), Holds::InDoors, Exception::Reason, BLOCKS),
    rule(
        Finds::Text("canonicalize"),
        Holds::InDoors,
        Exception::Reason,
        BLOCKS,
    ),
    rule(Finds::Text("is_dir"), Holds::InDoors, Exception::Reason, BLOCKS),
    rule(
        Finds::Text("symlink_metadata"),
        Holds::InDoors,
        Exception::Reason,
        BLOCKS,
    ),
    rule(Finds::Text("thread::sleep"), PRODUCT, Exception::Reason, SLEEP),
    rule(Finds::Text("time::sleep"), PRODUCT, Exception::Reason, SLEEP),
    rule(
        Finds::Text("sync::atomic"),
        OUTSIDE_KERNEL,
        Exception::Reason,
        ATOMIC,
    ),
    rule(
        Finds::WordFamily("Atomic"),
        OUTSIDE_KERNEL,
        Exception::Reason,
        ATOMIC,
    ),
    rule(Finds::Text("Condvar"), OUTSIDE_KERNEL, Exception::Reason, LOCK),
    rule(Finds::Text("RwLock"), OUTSIDE_KERNEL, Exception::Reason, LOCK),
    rule(
        Finds::Text("Mutex<"),
        OUTSIDE_KERNEL,
        Exception::GuardedFieldComment,
        "a lock without a word on what it guards; say it on the line or above it",
    ),
];

const fn rule(finds: Finds, holds: Holds, exception: Exception, message: &'static str) -> Rule {
    Rule {
        finds,
        holds,
        exception,
        message,
    }
}

/// Checks every Rust file against every rule. A file that is never compiled is left to another rule.
pub(super) fn check(tree: &Tree, modules: &Modules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let role = modules.role(path).unwrap_or(Role::Support);
        let package = modules.package(path).unwrap_or_default();
        for (number, line) in source.lines() {
            // One message per line: the same mistake often breaks two rules, as an import of an atomic does.
            let broken = RULES.iter().find(|rule| {
                rule.holds.applies(path, package, role, line)
                    && rule.finds.matches(&line.code)
                    && !rule.exception.covers(line, source.line_above(number))
            });
            findings.extend(broken.map(|rule| Finding::on_line(path, number, rule.message)));
        }
    }
    findings
}

impl Finds {
    fn matches(&self, code: &str) -> bool {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let text = match self {
            Self::Text(text) | Self::WordFamily(text) => *text,
        };
        code.match_indices(text).any(|(at, _)| {
            let behind = code[at + text.len()..].chars().next();
            let is_free_before = !code[..at].ends_with(is_word);
            let is_right_behind = match self {
                Self::WordFamily(_) => behind.is_some_and(char::is_uppercase),
                Self::Text(_) => !(text.ends_with(is_word) && behind.is_some_and(is_word)),
            };
            is_free_before && is_right_behind
        })
    }
}

impl Holds {
    fn applies(&self, path: &Path, package: &str, role: Role, line: &Line) -> bool {
        match self {
            Self::Everywhere => true,
            Self::InDoors => {
                let is_door = DOORS.iter().any(|door| path.starts_with(door));
                is_door && role == Role::Product && !line.only_in_tests
            }
            Self::InProduct { but_not_in } => {
                let is_exempt = match but_not_in {
                    Area::Nowhere => false,
                    Area::Crate(name) => package == *name,
                    Area::File(name) => path.file_name().is_some_and(|file| file == *name),
                    Area::Directory(name) => path
                        .parent()
                        .is_some_and(|parent| parent.components().any(|part| part.as_os_str() == *name)),
                };
                role == Role::Product && !line.only_in_tests && !is_exempt
            }
        }
    }
}

impl Exception {
    fn covers(&self, line: &Line, above: Option<&Line>) -> bool {
        match self {
            Self::None => false,
            Self::Reason => line
                .comment
                .trim()
                .strip_prefix("tidy:")
                .is_some_and(|reason| !reason.trim().is_empty()),
            Self::GuardedFieldComment => {
                let code = line.code.trim_start();
                let is_import = code.starts_with("use ") || code.starts_with("pub use ");
                let has_comment = |line: &Line| !line.comment.trim_matches([' ', '/']).is_empty();
                is_import || has_comment(line) || above.is_some_and(has_comment)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Package, Target, TargetKind, Workspace};

    /// The numbers of the lines that break a rule, in a file of the given crate.
    fn broken(package: &str, file: &str, kind: TargetKind, text: &str) -> Vec<usize> {
        let target = Target {
            name: "x".to_owned(),
            kind,
            root: Path::new("/r").join(file),
        };
        let package = Package {
            name: package.to_owned(),
            directory: "/r".into(),
            dependencies: Vec::new(),
            targets: vec![target],
        };
        let workspace = Workspace {
            root: "/r".into(),
            target_directory: "/r/target".into(),
            packages: vec![package],
        };
        let tree = Tree::of(&[(file, text)]);
        let modules = crate::tidy::modules::walk(&workspace, &tree);
        check(&tree, &modules)
            .into_iter()
            .filter_map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn rules_hold_where_they_should() {
        let product = TargetKind::Product;
        let test = TargetKind::Test;
        let cases: &[(&str, &str, TargetKind, &str, &[usize])] = &[
            (
                "jobs",
                "a.rs",
                test,
                "#[ignore]\n#[ignore = \"slow\"]\nfn f() {}",
                &[1, 2],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "#[allow(x)]\n#![allow(x)]\n#[expect(x)]",
                &[1, 2],
            ),
            ("jobs", "a.rs", product, "todo!()\n// todo!()\n\"todo!()\";", &[1]),
            (
                "jobs",
                "a.rs",
                product,
                "tokio::spawn(f);\ntracker.spawn(f);\nmytokio::spawn(f);",
                &[1],
            ),
            ("jobs", "tasks.rs", product, "tokio::spawn(f);", &[]),
            (
                "jobs",
                "a.rs",
                product,
                "task::spawn_blocking(f);\ntokio::task::spawn(f);",
                &[2],
            ),
            ("jobs", "a.rs", test, "tokio::spawn(f); thread::sleep(d);", &[]),
            (
                "daemon",
                "crates/daemon/src/http/a.rs",
                product,
                "std::fs::read(p);\np.canonicalize();\np.canonicalize(); // tidy: on a thread\np.is_dir();\np.is_directory();",
                &[1, 2, 4],
            ),
            (
                "daemon",
                "crates/daemon/src/home.rs",
                product,
                "std::fs::read(p);",
                &[],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "thread::sleep(d); // tidy: no event to wait for\nthread::sleep(d); // tidy:",
                &[2],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "time::sleep_until(d);\ntime::sleep(d);",
                &[2],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "#[cfg(test)]\nmod tests {\n thread::sleep(d);\n}",
                &[],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "use std::sync::atomic::AtomicU64;\nx: AtomicBool,\nAtomicity",
                &[1, 2],
            ),
            (
                "kernel",
                "a.rs",
                product,
                "use std::sync::atomic::AtomicU64;\nx: RwLock<u8>,",
                &[],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "use std::sync::{Condvar, Arc};\nx: RwLock<u8>,",
                &[1, 2],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "x: u8,\ny: Mutex<u8>,\n/// Guards z.\nz: Mutex<u8>,",
                &[2],
            ),
            (
                "jobs",
                "a.rs",
                product,
                "use std::sync::Mutex;\nMutex::new(0);",
                &[],
            ),
            ("xtask", "a.rs", product, "x: AtomicU64, thread::sleep(d);", &[]),
            ("jobs", "a.rs", product, "use rmcp::model::Tool;", &[1]),
            ("jobs", "mcp/a.rs", product, "use rmcp::model::Tool;", &[]),
        ];
        for (package, file, kind, text, expected) in cases {
            assert_eq!(
                broken(package, file, *kind, text),
                *expected,
                "{package} {file} {text}"
            );
        }
    }
}
