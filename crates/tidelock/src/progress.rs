//! The progress of long operations, for someone who watches a terminal. It is shown nowhere else.

use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

use crate::output;
use crate::units::format_bytes;

const REFRESH: Duration = Duration::from_millis(200);

/// A progress line on the terminal. Dropping it erases it.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    bytes: u64,
    shown: Option<Instant>,
    audience: Audience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Terminal,
    Nobody,
}

impl Progress {
    /// `what` is a word such as `exported`.
    pub(crate) fn new(what: &'static str) -> Progress {
        let audience = if io::stderr().is_terminal() {
            Audience::Terminal
        } else {
            Audience::Nobody
        };
        Progress {
            what,
            bytes: 0,
            shown: None,
            audience,
        }
    }

    /// Shows what is going on, for work that can't be measured.
    pub(crate) fn begin(&mut self, text: &str) {
        if self.audience == Audience::Terminal {
            self.shown = Some(Instant::now());
            // Progress that cannot be shown is no reason to stop.
            drop(output::write(io::stderr(), &format!("\r{text}")));
        }
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= REFRESH);
        if is_due {
            let line = format!("{} {}", format_bytes(self.bytes), self.what);
            self.begin(&line);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            drop(output::write(io::stderr(), "\r\u{1b}[K"));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Watched<R> {
    pub(crate) source: R,
    pub(crate) progress: Progress,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.progress.advance(count);
        Ok(count)
    }
}
