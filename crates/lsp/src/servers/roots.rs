//! Where a server's project begins.
//!
//! A root is a canonical path, so that two paths to one directory share a server. It is never above the workspace: a
//! server with such a root would read, and perhaps build, files that the user hasn't opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cargo_manifest;

/// How a root is found. The steps are tried in order; [`RootStep`] describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootRule {
    pub steps: Vec<RootStep>,
}

/// One way to find a root. A marker is a file name; one that begins with `*` is a suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootStep {
    /// The nearest directory, upwards from the file, that contains any of these.
    Nearest(Vec<String>),
    /// The outermost such directory, as with the modules of a Maven build.
    Outermost(Vec<String>),
    /// The Cargo workspace that the nearest manifest belongs to, as Cargo decides it.
    CargoWorkspace,
    Directory(PathBuf),
}

/// How far up the search may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds<'a> {
    /// The top; also the root of files outside of it, such as a dependency's source.
    pub workspace: Option<&'a Path>,
    /// Without a workspace: this directory and those above it are never a project, whatever they contain.
    pub home: Option<&'a Path>,
}

/// A root, and why it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub path: Arc<Path>,
    pub found_by: FoundBy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundBy {
    Marker(String),
    Configuration,
    /// There was no marker; this is the top of the repository.
    Repository,
    /// There was neither a marker nor a repository; this is the workspace.
    Workspace,
    /// Nothing was found; this is the file's directory.
    FileDirectory,
}

/// Why no root could be found.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("cannot look at {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the root {} is outside of the workspace {}", root.display(), workspace.display())]
    Outside { root: PathBuf, workspace: PathBuf },
}

/// Finds the root for a file or a directory. A file that doesn't exist yet is treated as if it did.
pub fn find(rule: &RootRule, file: &Path, bounds: Bounds<'_>) -> Result<Root, RootError> {
    let workspace = bounds.workspace.map(canonical).transpose()?;
    let home = bounds.home.and_then(|home| fs::canonicalize(home).ok());
    let mut start = directory_of(file)?;
    if let Some(workspace) = &workspace
        && !start.starts_with(workspace)
    {
        start.clone_from(workspace);
    }
    let is_inside = |directory: &Path| match (&workspace, &home) {
        (Some(workspace), _) => directory.starts_with(workspace),
        (None, Some(home)) => !home.starts_with(directory),
        (None, None) => true,
    };
    let upwards: Vec<&Path> = start
        .ancestors()
        .take_while(|directory| is_inside(directory))
        .collect();

    for step in &rule.steps {
        if let RootStep::Directory(named) = step {
            return named_directory(named, workspace.as_deref());
        }
        if let Some((directory, marker)) = step.search(&upwards) {
            return Ok(Root {
                path: Arc::from(directory),
                found_by: FoundBy::Marker(marker),
            });
        }
    }
    let repository = upwards
        .iter()
        .find(|directory| directory.join(".git").exists())
        .map(|directory| (directory.to_path_buf(), FoundBy::Repository));
    let (path, found_by) = repository
        .or_else(|| workspace.map(|workspace| (workspace, FoundBy::Workspace)))
        .unwrap_or((start, FoundBy::FileDirectory));
    Ok(Root {
        path: Arc::from(path),
        found_by,
    })
}

impl RootStep {
    fn search(&self, upwards: &[&Path]) -> Option<(PathBuf, String)> {
        let holding = |markers: &[String], directory: &Path| {
            let marker = marker_in(directory, markers)?;
            Some((directory.to_path_buf(), marker))
        };
        match self {
            Self::Nearest(markers) => upwards.iter().find_map(|directory| holding(markers, directory)),
            Self::Outermost(markers) => upwards
                .iter()
                .rev()
                .find_map(|directory| holding(markers, directory)),
            Self::CargoWorkspace => {
                let root = cargo_manifest::workspace_root(upwards)?;
                Some((root, cargo_manifest::NAME.to_owned()))
            }
            Self::Directory(_) => None,
        }
    }
}

/// The first marker, in the given order, that the directory contains.
fn marker_in(directory: &Path, markers: &[String]) -> Option<String> {
    let holds = |marker: &&String| match marker.strip_prefix('*') {
        None => directory.join(marker).exists(),
        Some(end) => fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().ends_with(end)),
    };
    markers.iter().find(holds).cloned()
}

fn named_directory(named: &Path, workspace: Option<&Path>) -> Result<Root, RootError> {
    let joined = workspace.map_or_else(|| named.to_path_buf(), |workspace| workspace.join(named));
    let root = canonical(&joined)?;
    if let Some(workspace) = workspace
        && !root.starts_with(workspace)
    {
        return Err(RootError::Outside {
            root,
            workspace: workspace.to_path_buf(),
        });
    }
    Ok(Root {
        path: Arc::from(root),
        found_by: FoundBy::Configuration,
    })
}

/// The canonical directory that a path is in, or that it is. For a path that doesn't exist yet, the nearest existing
/// ancestor.
fn directory_of(path: &Path) -> Result<PathBuf, RootError> {
    let mut missing = None;
    for ancestor in path.ancestors() {
        match fs::canonicalize(ancestor) {
            Ok(found) if found.is_dir() => return Ok(found),
            Ok(_) => {}
            Err(error) => missing = missing.or(Some(error)),
        }
    }
    Err(RootError::Unreadable {
        path: path.to_path_buf(),
        source: missing.unwrap_or_else(|| io::ErrorKind::NotFound.into()),
    })
}

fn canonical(path: &Path) -> Result<PathBuf, RootError> {
    fs::canonicalize(path).map_err(|source| RootError::Unreadable {
        path: path.to_path_buf(),
        source,
    })
}
