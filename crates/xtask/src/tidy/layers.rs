//! Which crate may depend on which.
//!
//! The table lists every crate of the design, including future ones; a crate that is not in it may not exist. Only
//! normal dependencies count: a test may depend on what its subject must not.

use super::Finding;
use crate::workspace::{Origin, Package, Workspace};

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    knows: &'static [&'static str],
    external: External,
}

/// Whether the crate is for users or only for developers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Product,
    Tool,
}

/// A rule about third-party crates. An entry that ends in `*` matches every name with that prefix.
#[derive(Debug)]
enum External {
    Only(&'static [&'static str]),
    Not(&'static [&'static [&'static str]]),
}

const SERVER: &[&str] = &["axum*", "hyper*", "tower-http", "warp", "actix*"];
const SQL: &[&str] = &[
    "rusqlite",
    "libsqlite3-sys",
    "sqlx*",
    "postgres*",
    "tokio-postgres",
    "deadpool*",
    "diesel*",
    "sea-*",
];
const LANGUAGE_SERVER: &[&str] = &["lsp-*", "gen-lsp-types", "tower-lsp*"];
const TERMINAL: &[&str] = &["clap*", "crossterm", "ratatui"];

const LAYERS: &[Layer] = &[
    Layer {
        name: "kernel",
        kind: Kind::Product,
        knows: &[],
        external: External::Only(&["getrandom", "loom", "thiserror"]),
    },
    Layer {
        // The design's `log`; cargo can't tell that name from the crate that everyone else depends on.
        name: "eventlog",
        kind: Kind::Product,
        knows: &["kernel"],
        external: External::Not(&[SERVER, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "process",
        kind: Kind::Product,
        knows: &["eventlog", "kernel", "protocol"],
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "machines",
        kind: Kind::Product,
        knows: &["eventlog", "kernel", "protocol"],
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "lifecycle",
        kind: Kind::Product,
        knows: &["kernel", "process"],
        external: External::Only(&["thiserror", "tracing"]),
    },
    Layer {
        name: "watch",
        kind: Kind::Product,
        knows: &["kernel", "process"],
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "lsp",
        kind: Kind::Product,
        knows: &["eventlog", "kernel", "lifecycle", "process", "protocol", "watch"],
        external: External::Not(&[SERVER, SQL, TERMINAL]),
    },
    Layer {
        name: "jobs",
        kind: Kind::Product,
        knows: &["eventlog", "kernel", "process", "protocol"],
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "plans",
        kind: Kind::Product,
        knows: &["eventlog", "kernel", "process", "protocol", "watch"],
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "tokenizer",
        kind: Kind::Product,
        knows: &[],
        external: External::Only(&["fnv", "regex-automata", "thiserror", "zstd"]),
    },
    Layer {
        name: "context",
        kind: Kind::Product,
        knows: &["kernel", "process", "protocol", "tokenizer", "watch"],
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "sessions",
        kind: Kind::Product,
        knows: &[
            "context",
            "eventlog",
            "jobs",
            "kernel",
            "lifecycle",
            "lsp",
            "machines",
            "plans",
            "process",
            "protocol",
        ],
        // It calls models over HTTP with reqwest, and serves no requests.
        external: External::Not(&[SERVER, SQL, LANGUAGE_SERVER, TERMINAL]),
    },
    Layer {
        name: "protocol",
        kind: Kind::Product,
        knows: &[],
        external: External::Only(&["getrandom", "serde", "serde_json", "thiserror", "ulid", "utoipa"]),
    },
    Layer {
        name: "daemon",
        kind: Kind::Product,
        knows: &[
            "context", "eventlog", "jobs", "kernel", "lsp", "machines", "plans", "process", "protocol",
            "sessions",
        ],
        external: External::Not(&[SQL, TERMINAL]),
    },
    Layer {
        name: "tidelock",
        kind: Kind::Product,
        knows: &["daemon", "kernel", "protocol"],
        external: External::Not(&[SQL, LANGUAGE_SERVER]),
    },
    Layer {
        name: "features",
        kind: Kind::Tool,
        knows: &[
            "context",
            "daemon",
            "eventlog",
            "jobs",
            "kernel",
            "lifecycle",
            "lsp",
            "plans",
            "process",
            "protocol",
            "sessions",
        ],
        external: External::Not(&[]),
    },
    Layer {
        name: "bench",
        kind: Kind::Tool,
        knows: &[
            "context", "eventlog", "jobs", "kernel", "lsp", "plans", "process", "protocol", "sessions",
        ],
        external: External::Not(&[]),
    },
    Layer {
        name: "xtask",
        kind: Kind::Tool,
        knows: &["protocol"],
        external: External::Only(&["anyhow", "serde_json"]),
    },
];

pub(super) fn find(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let manifest = package.directory.join("Cargo.toml");
        let path = workspace.relative(&manifest);
        findings.extend(
            broken_rules(package)
                .into_iter()
                .map(|message| Finding::in_file(path, message)),
        );
    }
    findings
}

fn broken_rules(package: &Package) -> Vec<String> {
    let Some(layer) = find(&package.name) else {
        return vec![format!(
            "`{}` is not in the table of layers; see ARCHITECTURE.md",
            package.name
        )];
    };
    let forbidden = package
        .dependencies
        .iter()
        .filter(|dependency| match dependency.origin {
            Origin::Ours => !layer.knows.contains(&dependency.name.as_str()),
            Origin::External => !layer.external.allows(&dependency.name),
        });
    forbidden
        .map(|dependency| {
            format!(
                "`{}` must not know `{}`; see ARCHITECTURE.md",
                package.name, dependency.name
            )
        })
        .collect()
}

impl External {
    fn allows(&self, name: &str) -> bool {
        let matches = |entry: &&str| match entry.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => *entry == name,
        };
        match self {
            Self::Only(allowed) => allowed.iter().any(matches),
            Self::Not(groups) => !groups.iter().copied().flatten().any(matches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    #[test]
    fn rules_are_kept_or_named() {
        let ours = Origin::Ours;
        let external = Origin::External;
        type Case<'a> = (&'a str, &'a [(&'a str, Origin)], &'a [&'a str]);
        let cases: [Case<'_>; 10] = [
            ("kernel", &[("getrandom", external)], &[]),
            (
                "kernel",
                &[("tokio", external)],
                &["`kernel` must not know `tokio`; see ARCHITECTURE.md"],
            ),
            (
                "protocol",
                &[("kernel", ours)],
                &["`protocol` must not know `kernel`; see ARCHITECTURE.md"],
            ),
            (
                "jobs",
                &[("axum-core", external)],
                &["`jobs` must not know `axum-core`; see ARCHITECTURE.md"],
            ),
            ("sessions", &[("reqwest", external)], &[]),
            (
                "sessions",
                &[("axum", external), ("hyper", external)],
                &[
                    "`sessions` must not know `axum`; see ARCHITECTURE.md",
                    "`sessions` must not know `hyper`; see ARCHITECTURE.md",
                ],
            ),
            ("eventlog", &[("rusqlite", external), ("kernel", ours)], &[]),
            (
                "daemon",
                &[("rusqlite", external)],
                &["`daemon` must not know `rusqlite`; see ARCHITECTURE.md"],
            ),
            (
                "context",
                &[("plans", ours)],
                &["`context` must not know `plans`; see ARCHITECTURE.md"],
            ),
            (
                "misc",
                &[],
                &["`misc` is not in the table of layers; see ARCHITECTURE.md"],
            ),
        ];
        for (name, dependencies, expected) in cases {
            let dependencies = dependencies
                .iter()
                .map(|(name, origin)| Dependency {
                    name: (*name).to_owned(),
                    origin: *origin,
                })
                .collect();
            let package = Package {
                name: name.to_owned(),
                directory: "/r".into(),
                dependencies,
                targets: Vec::new(),
            };
            assert_eq!(broken_rules(&package), expected, "{name}");
        }
    }

    #[test]
    fn the_table_has_no_circle_and_no_unknown_name() {
        fn depth(name: &str, path: &mut Vec<String>) {
            assert!(
                !path.iter().any(|seen| seen == name),
                "{name} is reached from itself: {path:?}"
            );
            path.push(name.to_owned());
            for known in find(name).unwrap_or_else(|| panic!("{name} has no row")).knows {
                depth(known, path);
            }
            path.pop();
        }
        for layer in LAYERS {
            depth(layer.name, &mut Vec::new());
        }
    }
}
