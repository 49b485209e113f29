//! Directories, paths and places, as a model writes them.

use std::path::{Component, Path, PathBuf};

use super::call::Call;
use super::current::Ground;
use super::error::ToolError;

/// What a place looks like, for messages.
const SHAPE: &str = "write path:line:column, such as src/main.rs:12:8";

/// The directory that a call is about: the one that it names, or that its client works in.
pub(super) async fn directory_of(call: &Call<'_>, named: Option<&str>) -> Result<PathBuf, ToolError> {
    if let Some(named) = named {
        let path = PathBuf::from(named);
        return match path.is_absolute() {
            true => Ok(path),
            false => match call.client.about.directory.as_ref() {
                Some(directory) => Ok(directory.join(path)),
                None => Err(ToolError::argument("directory", "is not an absolute path")),
            },
        };
    }
    match &call.client.about.directory {
        Some(directory) => Ok(directory.clone()),
        None => call.root().await.ok_or(ToolError::NoDirectory),
    }
}

/// A path of a plan, from the root of its workspace. One that is absolute must be below that root.
pub(super) fn path_in_plan(ground: &Ground, written: &str) -> Result<String, ToolError> {
    let path = Path::new(written);
    if !path.is_absolute() {
        return Ok(written.strip_prefix("./").unwrap_or(written).to_owned());
    }
    let below = [&ground.root, &ground.sandbox_root]
        .into_iter()
        .find_map(|root| path.strip_prefix(root).ok());
    match below {
        Some(below)
            if below
                .components()
                .all(|part| matches!(part, Component::Normal(_))) =>
        {
            Ok(below.display().to_string())
        }
        _ => {
            let why = format!("is not below the workspace `{}`", ground.root);
            Err(ToolError::argument("path", why))
        }
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    /// Reads `path:line:column` or `path:line`, whose column is 1. A path may have colons in it.
    pub(super) fn read(text: &str) -> Result<Self, ToolError> {
        let wrong = |why: String| ToolError::argument("at", format!("{why}; {SHAPE}"));
        let Some((rest, last)) = text.rsplit_once(':') else {
            return Err(wrong("the line is missing".to_owned()));
        };
        let (path, line, column) = match rest.rsplit_once(':') {
            Some((path, line)) if is_number(line) => (path, line, last),
            _ => (rest, last, "1"),
        };
        let number = |text: &str, what: &str| match text.parse::<u32>() {
            Ok(0) => Err(wrong(format!("{what}s count from 1"))),
            Ok(number) if is_number(text) => Ok(number),
            _ => Err(wrong(format!("`{text}` is not a {what} number"))),
        };
        match path {
            "" => Err(wrong("the path is missing".to_owned())),
            path => Ok(Self {
                path: path.to_owned(),
                line: number(line, "line")?,
                column: number(column, "column")?,
            }),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_their_end() {
        let place = |path: &str, line, column| {
            Ok(Place {
                path: path.to_owned(),
                line,
                column,
            })
        };
        for (text, expected) in [
            ("src/main.rs:12:8", place("src/main.rs", 12, 8)),
            ("src/main.rs:12", place("src/main.rs", 12, 1)),
            ("a:3:b.rs:12:8", place("a:3:b.rs", 12, 8)),
            ("a.rs", Err("`at`: the line is missing")),
            (":3:4", Err("`at`: the path is missing")),
            ("a.rs:0:1", Err("`at`: lines count from 1")),
            ("a.rs:1:x", Err("`at`: `x` is not a column number")),
            ("a.rs:1:+2", Err("`at`: `+2` is not a column number")),
            (
                "a.rs:99999999999:1",
                Err("`at`: `99999999999` is not a line number"),
            ),
        ] {
            match (Place::read(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(beginning)) => {
                    assert!(error.to_string().starts_with(beginning), "{text}: {error}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn paths_of_a_plan_are_from_the_root_of_its_workspace() {
        let ground = Ground {
            id: "plan_1".to_owned(),
            root: "/w".to_owned(),
            sandbox_root: "/s/1".to_owned(),
        };
        for (written, expected) in [
            ("a/b.rs", Some("a/b.rs")),
            ("./a", Some("a")),
            ("../a", Some("../a")),
            ("/w/a/b.rs", Some("a/b.rs")),
            ("/s/1/a", Some("a")),
            ("/w/../etc", None),
            ("/wx/a", None),
            ("/etc/passwd", None),
        ] {
            assert_eq!(
                path_in_plan(&ground, written).ok().as_deref(),
                expected,
                "{written}"
            );
        }
    }
}
