//! `list`: what is in a directory, or which files match a pattern.

use std::ops::ControlFlow;

use async_trait::async_trait;
use plans::{Explorer, FileKind, RelPath, Tree, WalkOver};
use serde::Deserialize;

use super::error::ToolError;
use super::matching::PathPattern;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional};
use super::path::SandboxPath;
use super::running::{self, Patience, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::SHOWN_LIMIT_BYTES;
use super::tool::{About, Tool, ToolOutput};
use crate::ports::Ports;

#[derive(Debug)]
pub(super) struct List {
    place: SandboxPath,
    pattern: Option<PathPattern>,
    shown_pattern: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: Option<String>,
    glob: Option<String>,
}

#[async_trait]
impl Tool for List {
    type Arguments = Arguments;
    const NAME: &'static str = "list";
    const DESCRIPTION: &'static str = "Lists a directory; names of directories end with a slash. With `glob`, lists all files \
        at any depth with a matching path, except those that git ignores.";
    const ACCESS: Access = Access::Reads;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            optional(
                "path",
                Takes::Text,
                "The directory. Default: the root of the workspace.",
            ),
            optional(
                "glob",
                Takes::Text,
                "For example `*.rs` for names at any depth, or `src/**/*.rs` for paths below the directory.",
            ),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        let pattern = arguments.glob.as_deref().map(PathPattern::new).transpose()?;
        Ok(Self {
            place: running::place_or_root(options, arguments.path.as_deref()).await?,
            pattern,
            shown_pattern: arguments.glob.unwrap_or_default(),
        })
    }

    fn about(&self) -> About {
        let title = match &self.pattern {
            None => format!("list {}", self.place),
            Some(_) => format!("list {} in {}", self.shown_pattern, self.place),
        };
        About {
            title: super::text::one_line(&title),
            subjects: vec![self.place.to_string()],
            touches: Touches::Reads(vec![self.place.clone()]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        running
            .explore(move |explorer, patience| match &self.pattern {
                None => names(explorer.tree(), &self.place),
                Some(pattern) => self.files(explorer, pattern, patience),
            })
            .await
    }
}

impl List {
    fn files(
        &self,
        explorer: &mut Explorer<'_, '_>,
        pattern: &PathPattern,
        patience: &Patience,
    ) -> Result<ToolOutput, ToolError> {
        let (mut found, mut stopped) = (Lines::default(), Ok(()));
        explorer.walk(self.place.as_path(), WalkOver::WhatCounts, &mut |path, kind| {
            stopped = patience.check();
            if kind != FileKind::Directory && pattern.matches(&self.place, path) {
                found.push(&path.to_string());
            }
            match stopped {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        stopped?;
        Ok(found.output(&format!("[no file in `{}` matches]", self.place), &self.place))
    }
}

/// The entries of a directory, by name; directories end in a slash.
pub(super) fn names(tree: &Tree, place: &SandboxPath) -> Result<ToolOutput, ToolError> {
    let failed = |error: plans::TreeError| match place {
        SandboxPath::Path(path) => ToolError::of_tree(path, &error),
        SandboxPath::Root => ToolError::Refused(error.to_string()),
    };
    let mut names: Vec<String> = tree
        .list(place.as_path())
        .map_err(failed)?
        .into_iter()
        .filter_map(|(name, kind)| {
            // Entries that can't be part of a path, such as git's own directory, are left out.
            let name = RelPath::from_path(name.as_ref()).ok()?;
            Some(match kind {
                FileKind::Directory => format!("{name}/"),
                FileKind::File | FileKind::Symlink | FileKind::Special => name.to_string(),
            })
        })
        .collect();
    names.sort();
    let mut lines = Lines::default();
    names.iter().for_each(|name| lines.push(name));
    Ok(lines.output("[the directory is empty]", place))
}

/// The lines of an answer, as many as fit.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    left_out: u64,
}

impl Lines {
    fn push(&mut self, line: &str) {
        if self.left_out == 0 && self.text.len() + line.len() < SHOWN_LIMIT_BYTES {
            self.text.push_str(line);
            self.text.push('\n');
        } else {
            self.left_out += 1;
        }
    }

    fn output(mut self, nothing: &str, place: &SandboxPath) -> ToolOutput {
        if self.text.is_empty() && self.left_out == 0 {
            return ToolOutput::done(nothing);
        }
        if self.left_out == 0 {
            return ToolOutput::done(self.text);
        }
        self.text.push_str(&format!(
            "[{} more were left out; name a directory in `{place}`, or a narrower `glob`]",
            self.left_out
        ));
        ToolOutput::done(self.text).with_full(place.to_string())
    }
}
