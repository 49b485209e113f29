//! The arguments of `tidelock plan record`: one write to a file of a sandbox.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::plan::PlanArguments;

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct PlanRecordArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// The tool that makes the change, recorded in the plan
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tool: Option<String>,
    /// The reason for the change, recorded in the plan
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    operation: OperationArguments,
    /// The content to write: a file, or `-` for standard input; by default, the file is empty
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The text to replace; it must occur exactly once
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    find: Option<String>,
    /// The replacement text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    replace: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct OperationArguments {
    /// Write a file, creating parent directories as needed
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,
    /// Delete a file, a symlink, or a directory with its contents
    #[arg(long, value_name = "PATH")]
    delete: Option<PathBuf>,
    /// Move or rename a file or directory
    #[arg(long, value_names = ["FROM", "TO"], num_args = 2)]
    rename: Option<Vec<PathBuf>>,
    /// Create a symlink, or change its target
    #[arg(long, value_names = ["PATH", "TARGET"], num_args = 2)]
    symlink: Option<Vec<PathBuf>>,
    /// Make a file executable (`+x`) or not executable (`-x`)
    #[arg(long, value_names = ["PATH", "+x|-x"], num_args = 2, allow_hyphen_values = true)]
    chmod: Option<Vec<PathBuf>>,
    /// Replace text in a file, with --find and --replace
    #[arg(long, value_name = "PATH", requires = "find", requires = "replace")]
    edit: Option<PathBuf>,
}

/// One write to a sandbox, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write {
        path: PathBuf,
        from: Option<PathBuf>,
    },
    Delete {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        path: PathBuf,
    },
    Symlink {
        path: PathBuf,
        target: PathBuf,
    },
    Chmod {
        path: PathBuf,
        executable: bool,
    },
    Edit {
        path: PathBuf,
        find: String,
        replace: String,
    },
}

impl PlanRecordArguments {
    /// What is asked for.
    ///
    /// # Errors
    /// A sentence for the user when the parser cannot see what is wrong.
    pub(crate) fn operation(&self) -> Result<Operation, String> {
        let pair = |pair: &Option<Vec<PathBuf>>| match pair.as_deref() {
            Some([first, second]) => Some((first.clone(), second.clone())),
            _ => None,
        };
        let wanted = &self.operation;
        // The parser forgets what an argument requires once another operation is given.
        if self.from.is_some() && wanted.write.is_none() {
            return Err("--from belongs to --write".to_owned());
        }
        if (self.find.is_some() || self.replace.is_some()) && wanted.edit.is_none() {
            return Err("--find and --replace belong to --edit".to_owned());
        }
        if let Some(path) = &wanted.write {
            return Ok(Operation::Write {
                path: path.clone(),
                from: self.from.clone(),
            });
        }
        if let Some(path) = &wanted.delete {
            return Ok(Operation::Delete { path: path.clone() });
        }
        if let Some((from, path)) = pair(&wanted.rename) {
            return Ok(Operation::Rename { from, path });
        }
        if let Some((path, target)) = pair(&wanted.symlink) {
            return Ok(Operation::Symlink { path, target });
        }
        if let Some((path, mode)) = pair(&wanted.chmod) {
            let executable = match mode.to_str() {
                Some("+x") => true,
                Some("-x") => false,
                _ => return Err("--chmod takes a path and +x or -x".to_owned()),
            };
            return Ok(Operation::Chmod { path, executable });
        }
        match (&wanted.edit, &self.find, &self.replace) {
            (Some(path), Some(find), Some(replace)) => Ok(Operation::Edit {
                path: path.clone(),
                find: find.clone(),
                replace: replace.clone(),
            }),
            _ => {
                Err("say what to write: --write, --delete, --rename, --symlink, --chmod or --edit".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command, PlanCommand};

    fn parse(line: &[&str]) -> Result<Operation, String> {
        let words = ["tidelock", "plan", "record", "@"].iter().chain(line);
        let cli = Cli::try_parse_from(words).map_err(|error| {
            let text = error.render().to_string();
            text.lines().next().unwrap_or_default().to_owned()
        })?;
        match cli.command {
            Command::Plan(PlanCommand::Record(arguments)) => arguments.operation(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_write_is_understood_and_several_are_refused() {
        let path = PathBuf::from;
        for (line, expected) in [
            (
                &["--write", "a"][..],
                Ok(Operation::Write {
                    path: path("a"),
                    from: None,
                }),
            ),
            (
                &["--write", "a", "--from", "-"],
                Ok(Operation::Write {
                    path: path("a"),
                    from: Some(path("-")),
                }),
            ),
            (&["--delete", "a b"], Ok(Operation::Delete { path: path("a b") })),
            (
                &["--rename", "a", "b"],
                Ok(Operation::Rename {
                    from: path("a"),
                    path: path("b"),
                }),
            ),
            (
                &["--symlink", "a", "../b"],
                Ok(Operation::Symlink {
                    path: path("a"),
                    target: path("../b"),
                }),
            ),
            (
                &["--chmod", "a", "+x"],
                Ok(Operation::Chmod {
                    path: path("a"),
                    executable: true,
                }),
            ),
            (
                &["--chmod", "a", "-x"],
                Ok(Operation::Chmod {
                    path: path("a"),
                    executable: false,
                }),
            ),
            (
                &["--edit", "a", "--find", "x", "--replace", "-y"],
                Ok(Operation::Edit {
                    path: path("a"),
                    find: "x".to_owned(),
                    replace: "-y".to_owned(),
                }),
            ),
            (
                &["--edit", "a", "--find", "x", "--replace", ""],
                Ok(Operation::Edit {
                    path: path("a"),
                    find: "x".to_owned(),
                    replace: String::new(),
                }),
            ),
            (&["--chmod", "a", "755"], Err("--chmod takes a path and +x or -x")),
            (
                &["--edit", "a", "--find", "x"],
                Err("error: the following required arguments"),
            ),
            (
                &["--edit", "a", "--find", "", "--replace", "y"],
                Err("error: a value is required"),
            ),
            (
                &["--delete", "a", "--from", "b"],
                Err("--from belongs to --write"),
            ),
            (
                &["--write", "a", "--find", "b"],
                Err("--find and --replace belong to --edit"),
            ),
            (&["--rename", "a"], Err("error: 2 values required for '--rename")),
            (
                &["--write", "a", "--delete", "b"],
                Err("error: the argument '--write <PATH>' cannot be used with"),
            ),
            (&[], Err("error: the following required arguments")),
        ] {
            match (parse(line), expected) {
                (Err(found), Err(beginning)) => {
                    assert!(found.starts_with(beginning), "{line:?}: {found}");
                }
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{line:?}"),
            }
        }
    }
}
