//! The only place that writes to the terminal.
//!
//! A report has two forms, text for people and one JSON object for programs, and only one of them is printed. If a
//! reader closes the pipe early, it has seen enough: that is not an error.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Exit, Failure};
use crate::printable::Answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Human,
    Json,
}

/// The output of a command that succeeded.
#[derive(Debug)]
pub(crate) struct Report {
    /// One object, or null if everything has already been printed.
    pub(crate) value: Value,
    /// Lines, each with its newline.
    pub(crate) text: String,
    /// Additional notes for people; they go to standard error, and programs find them in the object.
    pub(crate) notes: Vec<String>,
    pub(crate) exit: Exit,
}

impl Report {
    pub(crate) fn success(value: Value, text: String) -> Report {
        Report {
            value,
            text,
            notes: Vec::new(),
            exit: Exit::Success,
        }
    }

    /// An answer of the daemon, with its text for people.
    pub(crate) fn shown<T>(text: String, answer: Answer<T>) -> Report {
        Report::success(answer.sent, text)
    }

    pub(crate) fn with_notes(mut self, notes: Vec<String>) -> Report {
        self.notes = notes;
        self
    }

    pub(crate) fn with_exit(mut self, exit: Exit) -> Report {
        self.exit = exit;
        self
    }

    /// For a command that printed everything while it ran.
    pub(crate) fn already_told() -> Report {
        Report::success(Value::Null, String::new())
    }
}

/// Whether a character in untrusted text would control the terminal, or reorder the text shown there.
///
/// This includes newlines and tabs: callers that allow them have to say so.
pub(crate) fn speaks_to_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn finish(format: Format, report: &Report) -> ExitCode {
    let written = match format {
        Format::Human => write(io::stdout(), &report.text).map(|()| {
            let notes: String = report
                .notes
                .iter()
                .map(|note| format!("note: {note}\n"))
                .collect();
            // The result is already printed; failing to print a note is no reason to fail.
            drop(write(io::stderr(), &notes));
        }),
        Format::Json if report.value.is_null() => Ok(()),
        Format::Json => write(io::stdout(), &json_line(&report.value)),
    };
    match written {
        Ok(()) => report.exit.into(),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => report.exit.into(),
        Err(error) => {
            // If standard error is gone as well, only the exit code is left.
            drop(write(
                io::stderr(),
                &format!("error: the output cannot be written: {error}\n"),
            ));
            Exit::Failed.into()
        }
    }
}

pub(crate) fn fail(format: Format, failure: &Failure) -> ExitCode {
    #[derive(Serialize)]
    struct Envelope<'a> {
        error: &'a Failure,
    }
    // If it can't be printed, the exit code still tells.
    drop(match format {
        Format::Human => write(io::stderr(), &describe(failure)),
        Format::Json => write(io::stdout(), &json_line(&Envelope { error: failure })),
    });
    failure.exit.into()
}

/// A failure in two or three lines for people.
fn describe(failure: &Failure) -> String {
    let mut text = format!("error: {}\n", failure.message);
    if let Some(advice) = &failure.advice {
        text.push_str(&format!("hint: {advice}\n"));
    }
    if let Some(request_id) = &failure.request_id {
        text.push_str(&format!("request: {request_id}\n"));
    }
    // It may repeat what the user typed or what a file contains.
    text.replace(
        |letter| !matches!(letter, '\n' | '\t') && speaks_to_terminal(letter),
        "\u{fffd}",
    )
}

pub(crate) fn json_line(value: &impl Serialize) -> String {
    // Only maps with keys that are not strings and failing `Serialize` implementations could fail; there are none.
    let mut line = serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    line.push('\n');
    line
}

/// Writes everything at once, so that a reader sees all of it or nothing.
pub(crate) fn write(stream: impl Write, text: &str) -> io::Result<()> {
    write_bytes(stream, text.as_bytes())
}

/// Like `write`, for bytes that need not be text.
pub(crate) fn write_bytes(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Warning,
    Bad,
    Quiet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    Plain,
    Coloured,
}

impl Palette {
    /// Colors on a terminal, unless `NO_COLOR` is set to anything or the terminal is dumb.
    pub(crate) fn choose(variable: &dyn Fn(&str) -> Option<OsString>) -> Palette {
        Palette::of(&io::stdout(), variable)
    }

    /// Like `choose`, for standard error.
    pub(crate) fn for_stderr() -> Palette {
        Palette::of(&io::stderr(), &|name| std::env::var_os(name))
    }

    fn of(stream: &impl IsTerminal, variable: &dyn Fn(&str) -> Option<OsString>) -> Palette {
        let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty())
            || variable("TERM").is_some_and(|value| value == "dumb");
        if stream.is_terminal() && !unwanted {
            Palette::Coloured
        } else {
            Palette::Plain
        }
    }

    pub(crate) fn paint(self, word: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return word.to_owned(),
            Tone::Good => "32",
            Tone::Warning => "33",
            Tone::Bad => "31",
            Tone::Quiet => "2",
        };
        match self {
            Palette::Plain => word.to_owned(),
            Palette::Coloured => format!("\u{1b}[{code}m{word}\u{1b}[0m"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Cell {
        Cell::toned(text, Tone::Plain)
    }

    /// A value that may not be known.
    pub(crate) fn or_dash(text: Option<String>) -> Cell {
        Cell::new(text.unwrap_or_else(|| "-".to_owned()))
    }

    /// The text may come from anyone: characters that would control the terminal are replaced.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell {
            text: text.into().replace(speaks_to_terminal, "\u{fffd}"),
            tone,
        }
    }
}

/// Rows with aligned columns, two spaces apart, without trailing spaces.
pub(crate) fn table(palette: Palette, rows: &[Vec<Cell>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let last = row
            .iter()
            .rposition(|cell| !cell.text.is_empty())
            .map_or(0, |position| position + 1);
        for (position, cell) in row.iter().take(last).enumerate() {
            text.push_str(&palette.paint(&cell.text, cell.tone));
            if position + 1 < last {
                let padding = widths[position] - cell.text.chars().count() + 2;
                text.extend(std::iter::repeat_n(' ', padding));
            }
        }
        text.push('\n');
    }
    text
}

/// Rows below a heading, or the given line if there are none. Without such a line, only the heading is shown.
pub(crate) fn list(palette: Palette, heading: &[&str], rows: Vec<Vec<Cell>>, none: &str) -> String {
    if rows.is_empty() && !none.is_empty() {
        return format!("{none}\n");
    }
    let heading = heading
        .iter()
        .map(|word| Cell::toned(*word, Tone::Quiet))
        .collect();
    let rows: Vec<Vec<Cell>> = std::iter::once(heading).chain(rows).collect();
    table(palette, &rows)
}

/// Names and values, one pair per line.
pub(crate) fn fields(palette: Palette, pairs: Vec<(&str, Cell)>) -> String {
    let rows: Vec<Vec<Cell>> = pairs
        .into_iter()
        .map(|(name, value)| vec![Cell::toned(name, Tone::Quiet), value])
        .collect();
    table(palette, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_and_with_colours() {
        let rows = || {
            [
                vec![Cell::new("NAME"), Cell::new("STATE"), Cell::new("NOTE")],
                vec![Cell::new("größe"), Cell::toned("open", Tone::Bad), Cell::new("")],
                vec![],
                vec![Cell::new("b"), Cell::new("half_open"), Cell::new("soon")],
            ]
        };
        let plain = "NAME   STATE      NOTE\ngröße  open\n\nb      half_open  soon\n";
        assert_eq!(table(Palette::Plain, &rows()), plain);
        let coloured = plain.replace("open\n\n", "\u{1b}[31mopen\u{1b}[0m\n\n");
        assert_eq!(table(Palette::Coloured, &rows()), coloured);
    }

    #[test]
    fn a_failure_is_an_error_and_a_hint() {
        let failure = Failure::new(Exit::Failed, "code", "it broke").advise("mend it");
        assert_eq!(describe(&failure), "error: it broke\nhint: mend it\n");
    }
}
