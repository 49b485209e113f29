//! `search`: which lines of which files contain a text or match a regular expression.

use std::ops::ControlFlow;

use async_trait::async_trait;
use plans::{Explorer, FileKind, RelPath, TreeError, WalkOver};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::error::ToolError;
use super::matching::PathPattern;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::read::is_binary;
use super::running::{self, Patience, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::{SHOWN_LIMIT_BYTES, beginning, one_line};
use super::tool::{About, Tool, ToolOutput};
use crate::permissions::Readable;
use crate::ports::Ports;

/// The largest file to search. Larger ones are data, and are only counted in the answer.
const FILE_LIMIT_BYTES: u64 = 8 * 1024 * 1024;
/// The most lines of an answer. If there are more, the query was too broad.
const MATCH_LIMIT: usize = 300;
/// How much of a line is shown.
const LINE_LIMIT_BYTES: usize = 300;
/// The longest expression, and the most memory that a compiled one may take.
const EXPRESSION_LIMIT_BYTES: usize = 16 * 1024;
const COMPILED_LIMIT_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Search {
    expression: Regex,
    shown: String,
    place: SandboxPath,
    pattern: Option<PathPattern>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    literal: Option<bool>,
    ignore_case: Option<bool>,
}

#[async_trait]
impl Tool for Search {
    type Arguments = Arguments;
    const NAME: &'static str = "search";
    const DESCRIPTION: &'static str = "Searches the files of the workspace, except those that git ignores, for a regular \
        expression. Returns `path:line:text`, sorted by path.";
    const ACCESS: Access = Access::Reads;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required(
                "pattern",
                Takes::Text,
                "A regular expression (no look-around, no back references), matched line by line.",
            ),
            optional(
                "path",
                Takes::Text,
                "A directory or a file. Default: the whole workspace.",
            ),
            optional(
                "glob",
                Takes::Text,
                "Only files with a matching path, for example `*.rs`.",
            ),
            optional(
                "literal",
                Takes::YesOrNo,
                "Whether the pattern is plain text, not a regular expression.",
            ),
            optional("ignore_case", Takes::YesOrNo, "Whether to ignore case."),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        let expression = compile(&arguments)?;
        let pattern = arguments.glob.as_deref().map(PathPattern::new).transpose()?;
        Ok(Self {
            expression,
            shown: one_line(&arguments.pattern),
            place: running::place_or_root(options, arguments.path.as_deref()).await?,
            pattern,
        })
    }

    fn about(&self) -> About {
        About {
            title: one_line(&format!("search {} in {}", self.shown, self.place)),
            subjects: vec![self.place.to_string()],
            touches: Touches::Reads(vec![self.place.clone()]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let readable = Readable::by(Self::NAME, running.rules.clone());
        running
            .explore(move |explorer, patience| self.look(explorer, &readable, patience))
            .await
    }
}

fn compile(arguments: &Arguments) -> Result<Regex, ToolError> {
    let refused = |why: &str| {
        ToolError::Refused(format!(
            "`pattern` cannot be used: {why}. For a plain text set `literal` to true."
        ))
    };
    if arguments.pattern.is_empty() {
        return Err(refused("it is empty"));
    }
    if arguments.pattern.len() > EXPRESSION_LIMIT_BYTES {
        return Err(refused("it is too long"));
    }
    let expression = if arguments.literal == Some(true) {
        regex::escape(&arguments.pattern)
    } else {
        arguments.pattern.clone()
    };
    RegexBuilder::new(&expression)
        .case_insensitive(arguments.ignore_case == Some(true))
        .multi_line(true)
        .crlf(true)
        .size_limit(COMPILED_LIMIT_BYTES)
        .build()
        .map_err(|error| refused(last_line(&error.to_string())))
}

/// The last line of the regex error says what is wrong; the lines before it point at the position.
fn last_line(text: &str) -> &str {
    let last = text.lines().last().unwrap_or(text);
    last.strip_prefix("error: ").unwrap_or(last)
}

/// What was found so far.
#[derive(Debug, Default)]
struct Matches {
    text: String,
    matches: usize,
    files: u64,
    too_large: u64,
    not_allowed: u64,
    is_full: bool,
}

impl Search {
    fn look(
        &self,
        explorer: &mut Explorer<'_, '_>,
        readable: &Readable,
        patience: &Patience,
    ) -> Result<ToolOutput, ToolError> {
        let (mut found, mut paths) = (Matches::default(), Vec::new());
        let mut stopped = Ok(());
        explorer.walk(self.place.as_path(), WalkOver::WhatCounts, &mut |path, kind| {
            stopped = patience.check();
            let is_meant = kind == FileKind::File
                && self
                    .pattern
                    .as_ref()
                    .is_none_or(|pattern| pattern.matches(&self.place, path));
            if is_meant {
                paths.push(path.clone());
            }
            match stopped {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        stopped?;
        for path in &paths {
            patience.check()?;
            if found.is_full {
                break;
            }
            if !readable.allows(&path.to_string()) {
                found.not_allowed += 1;
                continue;
            }
            match explorer.tree().read(path, FILE_LIMIT_BYTES) {
                Ok(content) if is_binary(&content) => {}
                Ok(content) => self.look_into(path, &content, &mut found),
                Err(TreeError::TooLarge { .. }) => found.too_large += 1,
                // It disappeared since the walk, or must not be read.
                Err(_) => {}
            }
        }
        Ok(self.output(found))
    }

    fn look_into(&self, path: &RelPath, content: &[u8], found: &mut Matches) {
        let (mut line_number, mut counted_to, mut is_first) = (1, 0, true);
        let mut from = 0;
        while let Some(matched) = self.expression.find_at(content, from) {
            let begin = content[..matched.start()]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |newline| newline + 1);
            let end = content[matched.start()..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(content.len(), |newline| matched.start() + newline);
            if begin == content.len() {
                // There is no line after the last line break, nor in an empty file.
                return;
            }
            line_number += content[counted_to..begin]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            counted_to = begin;
            if is_first {
                found.files += 1;
                is_first = false;
            }
            found.push(path, line_number, &content[begin..end]);
            // Each line is shown once.
            from = end + 1;
            if found.is_full || from > content.len() {
                return;
            }
        }
    }

    fn output(&self, found: Matches) -> ToolOutput {
        let mut text = found.text;
        let mut notes = Vec::new();
        if found.matches == 0 {
            notes.push(format!("nothing in `{}` matches", self.place));
        }
        if found.is_full {
            notes.push(format!(
                "only the first {} lines are shown; search for something narrower, in a `path`, or with a `glob`",
                found.matches
            ));
        }
        if found.too_large > 0 {
            notes.push(format!(
                "{} files of more than {} MiB were not searched",
                found.too_large,
                FILE_LIMIT_BYTES / (1024 * 1024)
            ));
        }
        if found.not_allowed > 0 {
            notes.push(format!(
                "{} files were not searched: the rules do not allow to read them without asking",
                found.not_allowed
            ));
        }
        if !notes.is_empty() {
            text.push_str(&format!("[{}]", notes.join("; ")));
        }
        let told = ToolOutput::done(text);
        if found.is_full {
            told.with_full(self.place.to_string())
        } else {
            told
        }
    }
}

impl Matches {
    fn push(&mut self, path: &RelPath, line_number: usize, line: &[u8]) {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let (shown, is_cut) = beginning(&line, LINE_LIMIT_BYTES);
        let cut = if is_cut { " [...]" } else { "" };
        let row = format!("{path}:{line_number}:{shown}{cut}\n");
        if self.matches == MATCH_LIMIT || self.text.len() + row.len() > SHOWN_LIMIT_BYTES {
            self.is_full = true;
            return;
        }
        self.text.push_str(&row);
        self.matches += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pattern: &str, content: &str) -> String {
        let arguments = Arguments {
            pattern: pattern.to_owned(),
            path: None,
            glob: None,
            literal: None,
            ignore_case: None,
        };
        let search = Search {
            expression: compile(&arguments).unwrap(),
            shown: String::new(),
            place: SandboxPath::Root,
            pattern: None,
        };
        let mut found = Matches::default();
        search.look_into(&"f".parse().unwrap(), content.as_bytes(), &mut found);
        found.text
    }

    #[test]
    fn every_line_that_matches_is_found_once() {
        let cases = [
            ("b", "a\nb\ncb\n", "f:2:b\nf:3:cb\n"),
            ("b", "b b b", "f:1:b b b\n"),
            ("^b$", "b\r\nab\r\nb\r\n", "f:1:b\nf:3:b\n"),
            ("^", "a\n\nb\n", "f:1:a\nf:2:\nf:3:b\n"),
            ("$", "a\n\nb", "f:1:a\nf:2:\nf:3:b\n"),
            ("x*", "a\nb\n", "f:1:a\nf:2:b\n"),
            ("x*", "", ""),
            ("a\nb", "a\nb\n", "f:1:a\n"),
            ("\u{e4}", "\u{e4}\n", "f:1:\u{e4}\n"),
        ];
        for (pattern, content, expected) in cases {
            assert_eq!(lines(pattern, content), expected, "{pattern:?} in {content:?}");
        }
    }

    #[test]
    fn the_reason_is_what_a_bad_expression_is_refused_with() {
        let arguments = Arguments {
            pattern: "(".to_owned(),
            path: None,
            glob: None,
            literal: None,
            ignore_case: None,
        };
        assert_eq!(
            compile(&arguments).unwrap_err().to_string(),
            "`pattern` cannot be used: unclosed group. For a plain text set `literal` to true."
        );
    }
}
