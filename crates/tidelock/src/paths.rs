//! Paths for the daemon, which runs in another directory: absolute, without links, and existing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Exit, Failure};

/// A file that exists.
pub(crate) fn file(path: &Path) -> Result<String, Failure> {
    let found = existing(path)?;
    if Path::new(&found).is_dir() {
        return Err(unusable(path, "is a directory, not a file"));
    }
    Ok(found)
}

/// A directory that exists.
pub(crate) fn directory(path: &Path) -> Result<String, Failure> {
    let found = existing(path)?;
    if !Path::new(&found).is_dir() {
        return Err(unusable(path, "is not a directory"));
    }
    Ok(found)
}

/// A file or a directory that exists.
pub(crate) fn existing(path: &Path) -> Result<String, Failure> {
    let found = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => unusable(path, "does not exist"),
        _ => unusable(path, &format!("cannot be used: {error}")),
    })?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| unusable(path, "has a name that isn't UTF-8, so it can't be sent"))
}

pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .and_then(|directory| directory.canonicalize())
        .map_err(|error| {
            Failure::new(
                Exit::Failed,
                "path_unusable",
                format!("the current directory cannot be used: {error}"),
            )
            .advise("change to a directory that exists")
        })
}

/// The same answer with its paths relative to `directory`: in an answer they are relative to the workspace.
pub(crate) fn from(directory: &Path, answer: &Value) -> Value {
    let mut shown = answer.clone();
    if let Some(workspace) = answer.get("workspace").and_then(Value::as_str) {
        rebase(&mut shown, Path::new(workspace), directory);
    }
    shown
}

fn rebase(value: &mut Value, workspace: &Path, directory: &Path) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| rebase(item, workspace, directory)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(path) if name == "path" || name == "new_path" => {
                        *path = way(directory, &workspace.join(&*path));
                    }
                    other => rebase(other, workspace, directory),
                }
            }
        }
        _ => {}
    }
}

/// The shorter path to a file: relative or absolute.
fn way(directory: &Path, file: &Path) -> String {
    let common = directory
        .components()
        .zip(file.components())
        .take_while(|(here, there)| here == there)
        .count();
    let up = directory.components().count() - common;
    let mut from_here: PathBuf = std::iter::repeat_n("..", up).collect();
    from_here.extend(file.components().skip(common));
    let (from_here, from_top) = (from_here.to_string_lossy(), file.to_string_lossy());
    if up > 0 && from_here.len() > from_top.len() {
        from_top.into_owned()
    } else {
        from_here.into_owned()
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    let shown = path.display().to_string();
    Failure::new(
        Exit::Refused,
        "path_unusable",
        format!("`{}` {why}", shown.escape_debug()),
    )
    .advise("give the file's path relative to the current directory")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_there_is_sent_and_without_links() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        fs::write(root.join("a.rs"), "").unwrap();
        std::os::unix::fs::symlink(root.join("a.rs"), root.join("link.rs")).unwrap();
        let shown = |path: &Path| path.to_str().unwrap().to_owned();

        assert_eq!(file(&root.join("./link.rs")).unwrap(), shown(&root.join("a.rs")));
        assert_eq!(directory(&root).unwrap(), shown(&root));
        for (found, end) in [
            (file(&root.join("b.rs")), "b.rs` does not exist"),
            (file(&root), "` is a directory, not a file"),
            (directory(&root.join("a.rs")), "a.rs` is not a directory"),
        ] {
            let failure = found.unwrap_err();
            assert!(failure.message.ends_with(end), "{failure:?}");
            assert_eq!(
                (failure.exit, failure.code.as_str()),
                (Exit::Refused, "path_unusable")
            );
        }
    }

    #[test]
    fn paths_lead_there_from_where_the_user_is() {
        for (directory, path, expected) in [
            ("/w", "src/a.rs", "src/a.rs"),
            ("/w/src", "src/a.rs", "a.rs"),
            ("/w/src/deep", "src/a.rs", "../a.rs"),
            ("/w/other", "src/a.rs", "../src/a.rs"),
            ("/w/other/deep/down", "b.rs", "/w/b.rs"),
            ("/w", "/usr/lib/x.py", "/usr/lib/x.py"),
            ("/elsewhere", "a.rs", "/w/a.rs"),
        ] {
            let answer = json!({"workspace": "/w", "locations": [{"path": path, "range": 1}], "text": path});
            let expected =
                json!({"workspace": "/w", "locations": [{"path": expected, "range": 1}], "text": path});
            assert_eq!(
                from(Path::new(directory), &answer),
                expected,
                "{directory} {path}"
            );
        }
        let other = json!({"path": "a"});
        assert_eq!(from(Path::new("/w"), &other), other);
    }
}
