//! Tracks where lines begin and end, when two streams may go to one terminal.
//!
//! What an agent says goes to standard output, everything else to standard error. If both are the same terminal, file or
//! pipe, they share their lines; otherwise each has its own.

use std::io::{self, Write};

use crate::output::{Palette, Tone};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Together,
    Apart,
}

impl Layout {
    pub(super) fn here() -> Layout {
        let (out, err) = (rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr()));
        match (out, err) {
            (Ok(out), Ok(err)) if (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino) => Layout::Together,
            _ => Layout::Apart,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Open,
    Ended,
}

/// What was written, as far as it matters for the next write.
#[derive(Debug)]
pub(super) struct Page {
    layout: Layout,
    palette: Palette,
    out: Line,
    err: Line,
    last: Stream,
    writes: u64,
    /// Text that has not been written out yet.
    pending: Vec<(Stream, String)>,
}

impl Page {
    /// Creates an empty page; the palette is that of standard error.
    pub(super) fn new(layout: Layout, palette: Palette) -> Page {
        Page {
            layout,
            palette,
            out: Line::Ended,
            err: Line::Ended,
            last: Stream::Err,
            writes: 0,
            pending: Vec::new(),
        }
    }

    /// Changes with every write.
    pub(super) fn mark(&self) -> u64 {
        self.writes
    }

    pub(super) fn put(&mut self, stream: Stream, text: &str, tone: Tone) {
        if text.is_empty() {
            return;
        }
        self.writes += 1;
        self.last = stream;
        *self.line_of(stream) = if text.ends_with('\n') {
            Line::Ended
        } else {
            Line::Open
        };
        let painted = match stream {
            Stream::Out => text.to_owned(),
            Stream::Err => self.paint(text, tone),
        };
        match self.pending.last_mut() {
            Some((last, pending)) if *last == stream => pending.push_str(&painted),
            _ => self.pending.push((stream, painted)),
        }
    }

    /// Paints each line separately, so that a color never crosses a line end.
    fn paint(&self, text: &str, tone: Tone) -> String {
        text.split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some("") => "\n".to_owned(),
                Some(line) => format!("{}\n", self.palette.paint(line, tone)),
                None => self.palette.paint(line, tone),
            })
            .collect()
    }

    /// Ends the line if one is open.
    pub(super) fn fresh(&mut self, stream: Stream) {
        if *self.line_of(stream) == Line::Open {
            // If both share their lines, the stream that left it open ends it.
            let stream = match self.layout {
                Layout::Together => self.last,
                Layout::Apart => stream,
            };
            self.put(stream, "\n", Tone::Plain);
        }
    }

    /// Ends the line if the other stream has left it open.
    pub(super) fn after_the_other(&mut self, stream: Stream) {
        if self.layout == Layout::Together && self.last != stream {
            self.fresh(stream);
        }
    }

    pub(super) fn line(&mut self, stream: Stream, text: &str, tone: Tone) {
        self.fresh(stream);
        self.put(stream, &format!("{text}\n"), tone);
    }

    fn line_of(&mut self, stream: Stream) -> &mut Line {
        match (self.layout, stream) {
            (Layout::Together, _) | (Layout::Apart, Stream::Out) => &mut self.out,
            (Layout::Apart, Stream::Err) => &mut self.err,
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        for (stream, text) in std::mem::take(&mut self.pending) {
            match stream {
                Stream::Out => write(io::stdout(), &text)?,
                // If standard error is closed, no one wants the text.
                Stream::Err => drop(write(io::stderr(), &text)),
            }
        }
        Ok(())
    }

    /// What a reader of both streams has seen since the last call.
    #[cfg(test)]
    pub(super) fn taken(&mut self) -> Vec<(Stream, String)> {
        std::mem::take(&mut self.pending)
    }
}

fn write(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shared_where_the_streams_are() {
        let told = |layout| {
            let mut page = Page::new(layout, Palette::Plain);
            page.put(Stream::Out, "some text", Tone::Plain);
            page.line(Stream::Err, "a note", Tone::Quiet);
            page.put(Stream::Err, "open", Tone::Plain);
            page.after_the_other(Stream::Out);
            page.put(Stream::Out, "more\n", Tone::Plain);
            page.fresh(Stream::Err);
            page.taken()
        };
        let out = |text: &str| (Stream::Out, text.to_owned());
        let err = |text: &str| (Stream::Err, text.to_owned());
        assert_eq!(
            told(Layout::Together),
            [out("some text\n"), err("a note\nopen\n"), out("more\n")]
        );
        assert_eq!(
            told(Layout::Apart),
            [out("some text"), err("a note\nopen"), out("more\n"), err("\n")]
        );
    }

    #[test]
    fn a_colour_ends_with_its_line() {
        let mut page = Page::new(Layout::Together, Palette::Coloured);
        page.put(Stream::Err, "a\n\nb", Tone::Quiet);
        page.put(Stream::Out, "c", Tone::Quiet);
        let dim = |text: &str| format!("\u{1b}[2m{text}\u{1b}[0m");
        assert_eq!(
            page.taken(),
            [
                (Stream::Err, format!("{}\n\n{}", dim("a"), dim("b"))),
                (Stream::Out, "c".to_owned())
            ]
        );
    }
}
