//! `cargo xtask tidy`: the project's rules that no compiler checks.
//!
//! Each rule has its own file and turns what it reads into findings; this file reads the tree once, runs all rules,
//! and prints. A finding fails the command, the size report does not.

mod files;
mod hosts;
mod layers;
mod links;
mod modules;
mod patterns;
mod races;
mod scrub;
mod sizes;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use files::Tree;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    /// Counted from one; `None` if the finding is about the whole file.
    line: Option<usize>,
    message: String,
}

impl Finding {
    fn in_file(path: &Path, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.into(),
        }
    }

    fn on_line(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: Some(line),
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.message),
            None => write!(f, "{}: {}", self.path.display(), self.message),
        }
    }
}

/// Checks the whole tree and prints the findings and the sizes of the files.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::read(&workspace.root)?;
    let modules = modules::walk(workspace, &tree);
    let sizes = sizes::Report::new(&tree);
    let mut findings = layers::check(workspace);
    findings.extend(modules.forgotten(workspace, &tree));
    findings.extend(patterns::check(&tree, &modules));
    findings.extend(races::check(&tree));
    findings.extend(hosts::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(sizes.findings());
    findings.sort();
    print!("{sizes}");
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found 1 thing to fix"),
        count => bail!("tidy found {count} things to fix"),
    }
}
