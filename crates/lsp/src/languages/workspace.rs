//! Which workspace a path is in.

use std::path::{Path, PathBuf};

/// A file or directory, and the workspace around it. Both are canonical.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Placed {
    pub(super) path: PathBuf,
    pub(super) workspace: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The daemon's working directory isn't the caller's.
    #[error("`{}` is not an absolute path", path.display())]
    NotAbsolute { path: PathBuf },
    #[error("`{}` cannot be found: {source}", path.display())]
    NotFound { path: PathBuf, source: std::io::Error },
    #[error("`{}` is not in the workspace `{}`", path.display(), workspace.display())]
    Outside { path: PathBuf, workspace: PathBuf },
}

/// Files at the top of a project outside of any repository.
const PROJECT_FILES: &[&str] = &[
    ".hg",
    ".lsp.json",
    ".svn",
    "CMakeLists.txt",
    "Cargo.toml",
    "Gemfile",
    "Makefile",
    "build.gradle",
    "build.gradle.kts",
    "compile_commands.json",
    "compile_flags.txt",
    "composer.json",
    "deno.json",
    "dune-project",
    "go.mod",
    "go.work",
    "jsconfig.json",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "setup.py",
    "tsconfig.json",
];

/// Finds the workspace of a path: the named one, else the repository around it, else the outermost project below the
/// user's home, else its directory. Blocks.
pub(super) fn place(path: &Path, workspace: Option<&Path>, home: Option<&Path>) -> Result<Placed, PathError> {
    let path = canonical(path)?;
    let workspace = match workspace {
        Some(workspace) => canonical(workspace)?,
        None => around(&path, home),
    };
    if !path.starts_with(&workspace) {
        return Err(PathError::Outside { path, workspace });
    }
    Ok(Placed { path, workspace })
}

fn canonical(path: &Path) -> Result<PathBuf, PathError> {
    if !path.is_absolute() {
        return Err(PathError::NotAbsolute {
            path: path.to_owned(),
        });
    }
    std::fs::canonicalize(path).map_err(|source| PathError::NotFound {
        path: path.to_owned(),
        source,
    })
}

/// The repository or project around a path. Worktrees and submodules have a `.git` file instead of a directory.
fn around(path: &Path, home: Option<&Path>) -> PathBuf {
    let directory = if path.is_dir() { Some(path) } else { path.parent() };
    let directory = directory.unwrap_or(path);
    let repository = directory
        .ancestors()
        .find(|ancestor| ancestor.join(".git").exists());
    if let Some(repository) = repository {
        return repository.to_owned();
    }
    let home = home.and_then(|home| std::fs::canonicalize(home).ok());
    // A stray file in the home directory, or at the top of the disk, doesn't turn everything below into a
    // project.
    let project = directory
        .ancestors()
        .take_while(|ancestor| home.as_deref() != Some(*ancestor) && ancestor.components().count() > 2)
        .filter(|ancestor| PROJECT_FILES.iter().any(|file| ancestor.join(file).exists()))
        .last();
    project.unwrap_or(directory).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_workspace_is_named_or_found() {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        for path in [
            "repo/.git",
            "repo/src/deep",
            "loose",
            "home/project/crates/part/src",
        ] {
            fs::create_dir_all(base.join(path)).unwrap();
        }
        let project = [
            "home/package.json",
            "home/project/Cargo.toml",
            "home/project/crates/part/Cargo.toml",
        ];
        for path in [
            "repo/src/deep/a.rs",
            "loose/b.py",
            "home/project/crates/part/src/c.rs",
        ]
        .into_iter()
        .chain(project)
        {
            fs::write(base.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink(base.join("repo"), base.join("link")).unwrap();
        for (path, workspace, expected) in [
            ("repo/src/deep/a.rs", None, Ok(("repo/src/deep/a.rs", "repo"))),
            ("link/src/deep/a.rs", None, Ok(("repo/src/deep/a.rs", "repo"))),
            ("repo/src", None, Ok(("repo/src", "repo"))),
            ("loose/b.py", None, Ok(("loose/b.py", "loose"))),
            (
                "repo/src/deep/a.rs",
                Some("repo/src"),
                Ok(("repo/src/deep/a.rs", "repo/src")),
            ),
            (
                "repo/src/deep/a.rs",
                Some("link"),
                Ok(("repo/src/deep/a.rs", "repo")),
            ),
            ("loose/b.py", Some("repo"), Err("outside")),
            ("loose/c.py", None, Err("not found")),
        ] {
            let workspace = workspace.map(|workspace| base.join(workspace));
            let placed = place(&base.join(path), workspace.as_deref(), Some(&base.join("home")));
            let placed = placed.map_err(|error| match error {
                PathError::NotAbsolute { .. } => "relative",
                PathError::NotFound { .. } => "not found",
                PathError::Outside { .. } => "outside",
            });
            let expected = expected.map(|(path, workspace)| Placed {
                path: base.join(path),
                workspace: base.join(workspace),
            });
            assert_eq!(placed, expected, "{path}");
        }
        assert!(matches!(
            place(Path::new("a.rs"), None, None),
            Err(PathError::NotAbsolute { .. })
        ));
    }
}
