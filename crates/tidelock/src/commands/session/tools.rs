//! Tool calls for people: one line each, with a little of their output.

use std::time::Duration;

use protocol::ToolState;

use super::page::{Page, Stream};
use crate::commands::plan::short;
use crate::output::Tone;
use crate::printable::cut;
use crate::units::{format_count, format_duration};

/// How many lines of a tool's output are shown. The rest are only counted, and can be read elsewhere.
const SHOWN_LINES: u64 = 8;
/// How many lines of a tool's error are shown.
const WHY_LINES: usize = 3;
/// An unterminated line is shown once it is this long.
const LINE_LIMIT_CHARACTERS: usize = 4096;
const INDENT: &str = "    ";
/// The duration of a shorter call is not shown.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// A tool call, as far as it has been shown.
#[derive(Debug, Default)]
pub(super) struct ShownTool {
    tool: String,
    /// What it is going to do; `None` before it runs.
    title: Option<String>,
    /// When it began, in milliseconds; snapshots don't include that.
    began_ms: Option<i64>,
    /// The page's mark after its line, to detect later writes.
    mark: Option<u64>,
    /// The beginning of an unterminated line.
    line: String,
    lines: u64,
    output: usize,
    ended: bool,
}

impl ShownTool {
    pub(super) fn new(tool: &str) -> ShownTool {
        ShownTool {
            tool: tool.to_owned(),
            ..ShownTool::default()
        }
    }

    fn headline(&self, columns: usize) -> String {
        let text = match self.title.as_deref() {
            None | Some("") => self.tool.clone(),
            Some(title) => title.to_owned(),
        };
        // Leave room for the result on the same line.
        cut(&text, columns.saturating_sub(20).max(20))
    }

    pub(super) fn start(&mut self, page: &mut Page, columns: usize, (title, at_ms): (&str, Option<i64>)) {
        if self.title.is_some() {
            return;
        }
        self.title = Some(title.to_owned());
        self.began_ms = at_ms;
        page.fresh(Stream::Err);
        page.put(Stream::Err, &format!("* {}", self.headline(columns)), Tone::Plain);
        self.mark = Some(page.mark());
    }

    pub(super) fn output(&mut self, page: &mut Page, columns: usize, delta: &str) {
        self.output += delta.chars().count();
        for piece in delta.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') || self.line.chars().count() >= LINE_LIMIT_CHARACTERS {
                self.show_line(page, columns);
            }
        }
    }

    /// Takes the whole output so far, part of which may already have been shown.
    pub(super) fn output_so_far(&mut self, page: &mut Page, columns: usize, output: &str) {
        let rest: String = output.chars().skip(self.output).collect();
        self.output(page, columns, &rest);
    }

    fn show_line(&mut self, page: &mut Page, columns: usize) {
        let line = std::mem::take(&mut self.line);
        if line.trim().is_empty() {
            return;
        }
        self.lines += 1;
        if self.lines <= SHOWN_LINES {
            let line = cut(&line, columns.saturating_sub(INDENT.len()).max(20));
            page.line(Stream::Err, &format!("{INDENT}{line}"), Tone::Quiet);
        }
    }

    pub(super) fn end(&mut self, page: &mut Page, columns: usize, ended: &Ended<'_>) {
        if self.ended {
            return;
        }
        self.ended = true;
        if !self.line.is_empty() {
            self.show_line(page, columns);
        }
        let (word, tone) = match ended.state {
            ToolState::Done => ("done", Tone::Good),
            ToolState::Failed => ("failed", Tone::Bad),
            ToolState::Denied => ("not allowed", Tone::Warning),
            ToolState::Cancelled => ("stopped", Tone::Warning),
        };
        let took = ended.at_ms.zip(self.began_ms).map(|(end, begin)| end - begin);
        let took = took.and_then(|ms| u64::try_from(ms).ok());
        let took = took
            .map(Duration::from_millis)
            .filter(|took| *took >= WORTH_TELLING);
        let took = took.map_or_else(String::new, |took| format!(" ({})", format_duration(took)));
        if self.mark == Some(page.mark()) {
            // Its line is still the last one.
            page.put(Stream::Err, ": ", Tone::Plain);
        } else {
            page.fresh(Stream::Err);
            let begin = if self.title.is_some() { " " } else { "*" };
            let headline = self.headline(columns);
            page.put(Stream::Err, &format!("{begin} {headline}: "), Tone::Plain);
        }
        page.put(Stream::Err, word, tone);
        page.put(Stream::Err, &format!("{took}\n"), Tone::Plain);
        self.more(page, ended);
        if ended.state != ToolState::Done && self.lines == 0 {
            for line in ended.answer.lines().take(WHY_LINES) {
                let line = cut(line, columns.saturating_sub(INDENT.len()).max(20));
                page.line(Stream::Err, &format!("{INDENT}{line}"), Tone::Quiet);
            }
        }
    }

    /// Says how much was not shown, and where to find it.
    fn more(&self, page: &mut Page, ended: &Ended<'_>) {
        let hidden = self.lines.saturating_sub(SHOWN_LINES);
        let place = match ended.full {
            Some(job) if job.starts_with("job_") => format!("`tidelock job logs {}`", short(job)),
            Some(path) => path.to_owned(),
            None => String::new(),
        };
        let text = match (hidden, place.as_str()) {
            (0, _) => return,
            (hidden, "") => format!("{INDENT}({})", format_count(hidden, "more line")),
            (hidden, place) => format!("{INDENT}({}: {place})", format_count(hidden, "more line")),
        };
        page.line(Stream::Err, &text, Tone::Quiet);
    }
}

#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) state: ToolState,
    pub(super) answer: &'a str,
    pub(super) full: Option<&'a str>,
    /// The time in milliseconds; snapshots don't include it.
    pub(super) at_ms: Option<i64>,
}
