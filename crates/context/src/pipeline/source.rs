//! The files with hits, read once per answer.

use std::sync::Arc;

use kernel::{Deadline, Scope};

use crate::lines::Lines;
use crate::outline::{Definition, Outline, outline};
use crate::path::TreePath;
use crate::strategy::SearchTree;
use crate::view::FileText;

/// How many bytes are read for one answer. Files with hundreds of locations have a few megabytes in total; beyond
/// this they are data, and their hits are left out.
const READ_LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// How many bytes are parsed for one answer, the best files first: about a fifth of a second. If an index knows
/// the files, only recently changed ones are parsed. Hits in files that aren't parsed are shown with the lines
/// around them.
const PARSE_LIMIT_BYTES: usize = 2 * 1024 * 1024;
/// Longer lines are cut. They are data or generated, and one of them could fill a whole answer.
const LINE_LIMIT_BYTES: usize = 1000;

#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: TreePath,
    pub(super) outline: Option<Outline>,
    text: FileText,
    starts: Vec<usize>,
}

impl Source {
    pub(super) fn new(path: TreePath, text: FileText, outline: Option<Outline>) -> Self {
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let mut starts: Vec<usize> = std::iter::once(0).chain(newlines).collect();
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        Self {
            path,
            outline,
            text,
            starts,
        }
    }

    /// All lines, unless it is empty.
    pub(super) fn all(&self) -> Option<Lines> {
        Lines::new(1, u32::try_from(self.starts.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn clamp(&self, lines: Lines) -> Option<Lines> {
        let last = self.all()?.last();
        Lines::new(lines.first(), lines.last().min(last))
    }

    /// A line of the file, without its line end. Empty if there is no such line.
    pub(super) fn line(&self, line: u32) -> &str {
        let place = line as usize;
        let start = place.checked_sub(1).and_then(|place| self.starts.get(place));
        let end = self.starts.get(place).copied().unwrap_or(self.text.len());
        let line = start.map_or("", |start| &self.text[*start..end]);
        line.trim_end_matches(['\n', '\r'])
    }

    /// The lines without empty ones at both ends; `None` if all of them are empty.
    pub(super) fn trim(&self, lines: Lines) -> Option<Lines> {
        let is_text = |line: &u32| !self.line(*line).trim().is_empty();
        let first = (lines.first()..=lines.last()).find(is_text)?;
        let last = (first..=lines.last()).rev().find(is_text)?;
        Lines::new(first, last)
    }

    /// Appends lines to a text, each with its line end. Long ones are cut.
    pub(super) fn add(&self, lines: Lines, text: &mut String) {
        for line in lines.first()..=lines.last() {
            let line = self.line(line);
            if line.len() <= LINE_LIMIT_BYTES {
                text.push_str(line);
            } else {
                text.push_str(&line[..line.floor_char_boundary(LINE_LIMIT_BYTES)]);
                text.push_str(" …");
            }
            text.push('\n');
        }
    }

    pub(super) fn definition(&self, place: usize) -> Option<&Definition> {
        self.outline.as_ref()?.definitions.get(place)
    }

    /// Whether the outline matches this text, as far as these lines show: the names of the definitions there must
    /// appear in them.
    fn fits(&self, outline: &Outline, hits: &[Lines]) -> bool {
        let is_named = |definition: &Definition| {
            let signature = self.clamp(definition.signature);
            let name = definition.name.rsplit(['.', ':', ' ']).next().unwrap_or_default();
            signature.is_some_and(|lines| {
                (lines.first()..=lines.last()).any(|line| self.line(line).contains(name))
            })
        };
        let holds_hit = |definition: &&Definition| hits.iter().any(|hit| definition.lines.overlaps(*hit));
        outline.definitions.iter().filter(holds_hit).all(is_named)
    }
}

#[derive(Debug)]
pub(super) struct Sources<'a> {
    searched: &'a SearchTree,
    deadline: &'a Deadline,
    scope: &'a Scope,
    read_left: usize,
    parse_left: usize,
}

impl<'a> Sources<'a> {
    pub(super) fn new(searched: &'a SearchTree, deadline: &'a Deadline, scope: &'a Scope) -> Self {
        Self {
            searched,
            deadline,
            scope,
            read_left: READ_LIMIT_BYTES,
            parse_left: PARSE_LIMIT_BYTES,
        }
    }

    pub(super) fn has_time(&self) -> bool {
        !self.deadline.has_passed() && !self.scope.is_cancelled()
    }

    /// Reads a file with these hits. `None` if it has no text to show, or too much was already read.
    pub(super) fn read(&mut self, path: &TreePath, hits: &[Lines]) -> Option<Arc<Source>> {
        let text = self.searched.view.read(path).ok()?;
        self.read_left = self.read_left.checked_sub(text.len())?;
        let mut source = Source::new(path.clone(), text, None);
        let known = self.known(path).filter(|known| source.fits(known, hits));
        source.outline = known.or_else(|| self.parse(path, &source.text));
        Some(Arc::new(source))
    }

    fn known(&self, path: &TreePath) -> Option<Outline> {
        let index = self.searched.index.as_ref()?;
        if self.searched.beside_index.binary_search(path).is_ok() {
            return None;
        }
        index.outline(index.file(path)?).ok()?
    }

    fn parse(&mut self, path: &TreePath, text: &str) -> Option<Outline> {
        self.parse_left = self.parse_left.checked_sub(text.len())?;
        outline(path, text, self.scope)
    }
}

#[cfg(test)]
mod tests {
    use super::Source;
    use crate::lines::Lines;
    use crate::outline::{Definition, Language, Outline, SymbolKind};
    use crate::path::TreePath;

    fn lines(first: u32, last: u32) -> Lines {
        Lines::new(first, last).unwrap()
    }

    fn source(text: &str) -> Source {
        Source::new(TreePath::new("a.rs").unwrap(), text.into(), None)
    }

    #[test]
    fn lines_are_counted_as_people_do() {
        for (text, count, second) in [
            ("", None, ""),
            ("a", Some(1), ""),
            ("a\n", Some(1), ""),
            ("a\nb", Some(2), "b"),
            ("a\r\nb\r\n", Some(2), "b"),
            ("a\n\n", Some(2), ""),
        ] {
            let source = source(text);
            let all = source.all().map(Lines::count);
            assert_eq!((all, source.line(2)), (count, second), "{text:?}");
            assert_eq!((source.line(0), source.line(u32::MAX)), ("", ""));
        }
    }

    /// The index is slightly out of date: a definition is trusted only if its name is there.
    #[test]
    fn an_outline_of_another_text_is_not_believed() {
        let definition = |name: &str, first, last| Definition {
            name: name.to_owned(),
            kind: SymbolKind::Function,
            lines: lines(first, last),
            signature: lines(first, first),
            parent: None,
        };
        let outline = Outline {
            language: Language::Rust,
            definitions: vec![definition("one", 1, 3), definition("two", 5, 7)],
            references: Vec::new(),
        };
        let same = "fn one() {\n\n}\n\nfn two() {\n\n}\n";
        let moved = "// new\nfn one() {\n\n}\n\nfn two() {\n\n}\n";
        let shorter = "fn one() {\n\n}\n";
        for (text, hit, fits) in [
            (same, 2, true),
            (same, 6, true),
            (same, 4, true),
            (moved, 2, false),
            (moved, 6, false),
            (shorter, 2, true),
            (shorter, 6, false),
        ] {
            let found = source(text).fits(&outline, &[lines(hit, hit)]);
            assert_eq!(found, fits, "{text:?} {hit}");
        }
    }
}
