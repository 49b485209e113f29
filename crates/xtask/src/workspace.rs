//! The workspace as cargo sees it: packages, their dependencies and targets, and other files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target_directory: PathBuf,
    pub(crate) packages: Vec<Package>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// The normal dependencies, without development and build dependencies.
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A normal dependency, by the name of the requested package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Ours,
    External,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: TargetKind,
    pub(crate) root: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Product,
    Test,
    Support,
}

impl Workspace {
    /// Asks cargo. This takes tens of milliseconds, since dependencies are not resolved.
    pub(crate) fn load() -> Result<Self> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()?;
        if !output.status.success() {
            bail!(
                "cargo metadata failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Self::parse(&output.stdout)
    }

    fn parse(metadata: &[u8]) -> Result<Self> {
        let metadata: Value = serde_json::from_slice(metadata).context("cargo metadata is not JSON")?;
        let packages = array(&metadata["packages"])
            .iter()
            .map(package)
            .collect::<Result<_>>()?;
        Ok(Self {
            root: text(&metadata["workspace_root"])?.into(),
            target_directory: text(&metadata["target_directory"])?.into(),
            packages,
        })
    }

    /// The path as people write it: relative to the root.
    pub(crate) fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// The cargo that runs us, so that the selected toolchain is kept.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn package(value: &Value) -> Result<Package> {
    let manifest = Path::new(text(&value["manifest_path"])?);
    let dependencies = array(&value["dependencies"])
        .iter()
        // A kind of null is a normal dependency; the others are "dev" and "build".
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| {
            let origin = if dependency["path"].is_string() {
                Origin::Ours
            } else {
                Origin::External
            };
            Ok(Dependency {
                name: text(&dependency["name"])?.to_owned(),
                origin,
            })
        })
        .collect::<Result<_>>()?;
    Ok(Package {
        name: text(&value["name"])?.to_owned(),
        directory: manifest
            .parent()
            .context("a manifest has a directory")?
            .to_owned(),
        dependencies,
        targets: array(&value["targets"])
            .iter()
            .map(target)
            .collect::<Result<_>>()?,
    })
}

fn target(value: &Value) -> Result<Target> {
    let kind = match value["kind"][0].as_str() {
        Some("test") => TargetKind::Test,
        Some("bench" | "example" | "custom-build") => TargetKind::Support,
        _ => TargetKind::Product,
    };
    Ok(Target {
        name: text(&value["name"])?.to_owned(),
        kind,
        root: text(&value["src_path"])?.into(),
    })
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .context("cargo metadata lacks a field that we read")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_reduced_to_what_the_checks_read() {
        let metadata = br#"{
            "workspace_root": "/r", "target_directory": "/r/target",
            "packages": [{
                "name": "log", "manifest_path": "/r/crates/log/Cargo.toml",
                "dependencies": [
                    {"name": "kernel", "kind": null, "path": "/r/crates/kernel"},
                    {"name": "rusqlite", "kind": null},
                    {"name": "proptest", "kind": "dev"},
                    {"name": "cc", "kind": "build"}
                ],
                "targets": [
                    {"name": "log", "kind": ["lib"], "src_path": "/r/crates/log/src/lib.rs"},
                    {"name": "it", "kind": ["test"], "src_path": "/r/crates/log/tests/it/main.rs"}
                ]
            }]
        }"#;
        let workspace = Workspace::parse(metadata).unwrap();
        let expected = Package {
            name: "log".to_owned(),
            directory: "/r/crates/log".into(),
            dependencies: vec![
                Dependency {
                    name: "kernel".to_owned(),
                    origin: Origin::Ours,
                },
                Dependency {
                    name: "rusqlite".to_owned(),
                    origin: Origin::External,
                },
            ],
            targets: vec![
                Target {
                    name: "log".to_owned(),
                    kind: TargetKind::Product,
                    root: "/r/crates/log/src/lib.rs".into(),
                },
                Target {
                    name: "it".to_owned(),
                    kind: TargetKind::Test,
                    root: "/r/crates/log/tests/it/main.rs".into(),
                },
            ],
        };
        assert_eq!(workspace.packages, [expected]);
        assert_eq!(
            workspace.relative(Path::new("/r/docs/races.md")),
            Path::new("docs/races.md")
        );
    }
}
