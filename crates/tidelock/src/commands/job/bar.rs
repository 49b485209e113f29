//! A job's progress, in the last line of a terminal. It is shown nowhere else.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use protocol::JobProgress;

use crate::output::{self, Format};
use crate::printable::cut;

const REFRESH: Duration = Duration::from_millis(100);
const WIDTH: u64 = 24;
/// The assumed width of a terminal that does not report one.
const USUAL_COLUMNS: usize = 80;

/// A line that is erased before anything else is written, and on drop.
#[derive(Debug)]
pub(super) struct Bar {
    audience: Audience,
    last: Option<JobProgress>,
    shown: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Terminal,
    Nobody,
}

impl Bar {
    pub(super) fn new(format: Format) -> Bar {
        let audience = if format == Format::Human && io::stderr().is_terminal() {
            Audience::Terminal
        } else {
            Audience::Nobody
        };
        Bar {
            audience,
            last: None,
            shown: None,
        }
    }

    pub(super) fn show(&mut self, progress: &JobProgress) {
        self.last = Some(progress.clone());
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= REFRESH);
        if self.audience == Audience::Terminal && is_due {
            self.shown = Some(Instant::now());
            let columns = rustix::termios::tcgetwinsize(io::stderr())
                .map(|size| usize::from(size.ws_col))
                .ok()
                .filter(|columns| *columns > 0)
                .unwrap_or(USUAL_COLUMNS);
            let line = draw(progress, columns.saturating_sub(1));
            // Progress that cannot be shown is no reason to stop.
            drop(output::write(io::stderr(), &format!("\r\u{1b}[K{line}")));
        }
    }

    /// Shows it again below the new output.
    pub(super) fn show_again(&mut self) {
        if let Some(progress) = self.last.take() {
            self.show(&progress);
        }
    }

    pub(super) fn hide(&mut self) {
        if self.shown.take().is_some() {
            drop(output::write(io::stderr(), "\r\u{1b}[K"));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Draws one line of at most `columns` characters.
fn draw(progress: &JobProgress, columns: usize) -> String {
    let text: String = progress
        .text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let far = match progress.total {
        Some(total) if total > 0 => {
            let done = progress.done.min(total);
            let share = |of: u64| u64::try_from(u128::from(done) * u128::from(of) / u128::from(total));
            let full = share(WIDTH).unwrap_or(WIDTH);
            let bar: String = (0..WIDTH).map(|at| if at < full { '█' } else { '░' }).collect();
            let percentage = share(100).unwrap_or(100);
            format!("{bar} {percentage:>3} %  {}/{total}", progress.done)
        }
        _ => format!("{} done", progress.done),
    };
    cut(format!("{far}  {text}").trim_end(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_fits() {
        let progress = |done, total, text: &str| JobProgress {
            done,
            total,
            text: text.to_owned(),
        };
        for (progress, columns, expected) in [
            (
                progress(0, Some(3), "begin"),
                80,
                "░░░░░░░░░░░░░░░░░░░░░░░░   0 %  0/3  begin",
            ),
            (
                progress(3, Some(4), "a\u{1b}b"),
                80,
                "██████████████████░░░░░░  75 %  3/4  a b",
            ),
            (
                progress(9, Some(4), ""),
                80,
                "████████████████████████ 100 %  9/4",
            ),
            (progress(7, None, "files"), 80, "7 done  files"),
            (progress(7, Some(0), ""), 80, "7 done"),
            (progress(7, None, "a long text"), 12, "7 done  a l…"),
            (
                progress(u64::MAX, Some(u64::MAX), ""),
                30,
                "████████████████████████ 100 …",
            ),
        ] {
            assert_eq!(draw(&progress, columns), expected);
        }
    }
}
