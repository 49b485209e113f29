//! From the text of a file to captures, within limits.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;

use kernel::{Deadline, Scope, SystemClock};
use tree_sitter::{
    Node, ParseOptions, Parser, QueryCursor, QueryCursorOptions, QueryMatch, StreamingIterator, Tree,
};

use super::assemble::{CapturedDefinition, Captures, Rows, assemble};
use super::grammar::{Capture, Grammar};
use super::types::{Language, Outline};
use crate::path::TreePath;
use crate::view::FILE_LIMIT_BYTES;

/// The work limit of a file, in steps of a hundred operations: a base, plus some for each kilobyte. Code takes a tenth
/// of that. This limits work rather than time, so that a busy machine finds the same as an idle one.
const STEPS: usize = 1000;
const STEPS_FOR_KILOBYTE: usize = 100;
/// The time limit of a file, for input that costs more than its steps suggest, such as thousands of brackets in a row.
/// Even a busy machine doesn't come near it.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// A sequence of this many parse errors isn't code. Searching it would take quadratic time.
const NONSENSE_LIMIT: u32 = 20_000;
const NONSENSE_LOOK: u32 = 8;
/// How many patterns may be partially matched at once. Code needs a few dozen; beyond that, the oldest is dropped, and
/// a definition is missing.
const MATCH_LIMIT: u32 = 1024;
/// The most captures of a file: one for every four bytes of the largest. Later ones are ignored.
const CAPTURE_LIMIT: usize = 256 * 1024;

thread_local! {
    /// Reused by each thread: creating them costs more than parsing most files.
    static TOOLS: RefCell<Tools> = RefCell::default();
}

#[derive(Default)]
struct Tools {
    parser: Parser,
    cursor: QueryCursor,
    language: Option<Language>,
}

/// The outline of a text; `None` if the language is unknown, the file is too large or too much work, or the scope was
/// cancelled.
#[must_use]
pub fn outline(path: &TreePath, text: &str, scope: &Scope) -> Option<Outline> {
    let limit = usize::try_from(FILE_LIMIT_BYTES).unwrap_or(usize::MAX);
    if text.len() > limit || scope.is_cancelled() {
        return None;
    }
    let language = Language::of(path, text)?;
    let grammar = Grammar::of(language)?;
    let limit = STEPS + text.len() / 1024 * STEPS_FOR_KILOBYTE;
    let captures = TOOLS.with_borrow_mut(|tools| {
        let deadline = Deadline::after(&SystemClock::shared(), TIME_LIMIT);
        let mut go_on = steps(limit, scope, &deadline);
        let tree = tools.parse(language, grammar, text, &mut go_on)?;
        if is_nonsense(&tree) {
            return None;
        }
        tools.captures(grammar, &tree, text, &mut steps(limit, scope, &deadline))
    })?;
    Some(assemble(language, text, captures))
}

/// Whether a long file consists mostly of parse errors.
fn is_nonsense(tree: &Tree) -> bool {
    let root = tree.root_node();
    let parts = (0..NONSENSE_LOOK).map_while(|place| root.child(place));
    let is_it = |node: Node<'_>| node.is_error() && node.child_count() > NONSENSE_LIMIT;
    std::iter::once(root).chain(parts).any(is_it)
}

/// Continues for this many steps, unless the scope is cancelled or the time is over.
fn steps(limit: usize, scope: &Scope, deadline: &Deadline) -> impl FnMut() -> ControlFlow<()> {
    let mut left = limit;
    move || {
        if left == 0 || scope.is_cancelled() || deadline.has_passed() {
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    }
}

impl Tools {
    fn parse(
        &mut self,
        language: Language,
        grammar: &Grammar,
        text: &str,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Tree> {
        if self.language != Some(language) {
            self.parser.set_language(&grammar.syntax).ok()?;
            self.language = Some(language);
        }
        let mut progress = |_: &_| go_on();
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = text.as_bytes();
        let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
        let tree = self.parser.parse_with_options(&mut read, None, Some(options));
        if tree.is_none() {
            // Otherwise the parser would continue with this text next time.
            self.parser.reset();
        }
        tree
    }

    fn captures(
        &mut self,
        grammar: &Grammar,
        tree: &Tree,
        text: &str,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Captures> {
        let mut captures = Captures::default();
        let mut stopped = false;
        let mut progress = |_: &_| {
            let flow = go_on();
            stopped |= flow.is_break();
            flow
        };
        let options = QueryCursorOptions::new().progress_callback(&mut progress);
        self.cursor.set_match_limit(MATCH_LIMIT);
        let root = tree.root_node();
        let mut matches = self
            .cursor
            .matches_with_options(&grammar.query, root, text.as_bytes(), options);
        while let Some(found) = matches.next() {
            take(grammar, found, text, &mut captures);
            if captures.len() >= CAPTURE_LIMIT {
                break;
            }
        }
        drop(matches);
        (!stopped).then_some(captures)
    }
}

fn take(grammar: &Grammar, found: &QueryMatch<'_, '_>, text: &str, into: &mut Captures) {
    let (mut definition, mut name, mut body) = (None, None, None);
    for capture in found.captures() {
        let node = capture.node;
        match grammar.meaning(capture.index) {
            Some(Capture::Definition(kind)) => definition = Some((kind, node)),
            Some(Capture::Name) => name = Some(node.byte_range()),
            Some(Capture::Body) => body = Some(node.start_byte()),
            Some(Capture::Reference) => into.references.push(node.byte_range()),
            Some(Capture::CapitalReference) => {
                let range = node.byte_range();
                let first = text.as_bytes().get(range.start);
                if first.is_some_and(u8::is_ascii_uppercase) {
                    into.references.push(range);
                }
            }
            Some(Capture::Above) => into.above.push((node.byte_range(), rows(&node))),
            None => {}
        }
    }
    if let (Some((kind, node)), Some(name)) = (definition, name) {
        into.definitions.push(CapturedDefinition {
            kind,
            name,
            bytes: node.byte_range(),
            rows: rows(&node),
            body,
        });
    }
}

/// From the row of the first byte of a node to that of the last. Some nodes end with the end of their line.
fn rows(node: &Node<'_>) -> Rows {
    let (start, end) = (node.start_position(), node.end_position());
    let last = match end.column {
        0 if end.row > start.row => end.row - 1,
        _ => end.row,
    };
    let number = |row| u32::try_from(row).unwrap_or(u32::MAX);
    (number(start.row), number(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_that_was_stopped_begins_anew() {
        let grammar = Grammar::of(Language::Rust).unwrap();
        let mut tools = Tools::default();
        let mut parse = |text: &str, limit: usize| {
            let scope = kernel::CancellationToken::new().scope();
            let deadline = Deadline::never();
            let mut go_on = steps(limit, &scope, &deadline);
            let tree = tools.parse(Language::Rust, grammar, text, &mut go_on);
            tree.map(|tree| tree.root_node().to_sexp())
        };
        let (long, short) = ("fn first() {}\n".repeat(1000), "struct Second;\n".repeat(1000));
        let expected = parse(&short, usize::MAX);
        assert_eq!(parse(&long, 3), None);
        assert_eq!(parse(&short, usize::MAX), expected);
    }
}
