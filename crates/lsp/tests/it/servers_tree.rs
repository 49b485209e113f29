//! A directory of our own, with files and programs in it, and a registry that sees nothing else.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp::{ConfigHash, Environment, Registry, RegistrySettings, Selection};
use tempfile::TempDir;

/// Holds `workspace`, `home`, `bin` (the `PATH`), `user.json` and `data`.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Removed with the value.
    _directory: TempDir,
    /// Canonical.
    pub(crate) top: PathBuf,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(directory.path()).unwrap();
        for name in ["workspace", "home", "bin"] {
            fs::create_dir(top.join(name)).unwrap();
        }
        Self {
            _directory: directory,
            top,
        }
    }

    /// With these files, by their path from the top.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let tree = Self::new();
        for (path, content) in files {
            tree.write(path, content);
        }
        tree
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A script that can be run.
    pub(crate) fn program(&self, path: &str, script: &str) {
        self.write(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn programs(&self, paths: &[&str]) {
        for path in paths {
            self.program(path, "exit 1");
        }
    }

    pub(crate) fn environment(&self) -> Environment {
        let variables = [
            ("PATH", self.path("bin")),
            ("HOME", self.path("home")),
            ("LANG", PathBuf::from("C.UTF-8")),
            ("SECRET", PathBuf::from("not for servers")),
        ];
        Environment::new(variables.map(|(name, value)| (OsString::from(name), value.into_os_string())))
    }

    pub(crate) fn registry(&self, trust: impl Fn(&ConfigHash) -> bool + Send + Sync + 'static) -> Registry {
        let settings = RegistrySettings {
            environment: self.environment(),
            user_configuration: Some(self.path("user.json")),
            data_directory: self.path("data"),
        };
        Registry::new(settings, Arc::new(trust))
    }

    /// The choice for a file of the workspace, in a workspace that nobody trusts.
    pub(crate) fn select(&self, file: &str) -> Selection {
        self.registry(nothing)
            .servers_for(&self.workspace().join(file), &self.workspace())
            .unwrap()
    }

    /// The same in one that is trusted, whatever it holds.
    pub(crate) fn select_trusted(&self, file: &str) -> Selection {
        let registry = self.registry(everything);
        registry
            .servers_for(&self.workspace().join(file), &self.workspace())
            .unwrap()
    }

    /// A path as tests write it, whatever the directory is called.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.top).unwrap_or(path);
        path.display().to_string()
    }
}

pub(crate) fn nothing(_: &ConfigHash) -> bool {
    false
}

pub(crate) fn everything(_: &ConfigHash) -> bool {
    true
}

/// The primary server and the supplements, by name.
pub(crate) fn names(selection: &Selection) -> (Option<String>, Vec<String>) {
    let primary = selection.primary.as_ref().map(|chosen| chosen.name.to_string());
    let supplements = selection.supplements.iter();
    (
        primary,
        supplements.map(|chosen| chosen.name.to_string()).collect(),
    )
}
