//! Colors a patch and makes it safe for a terminal, as it streams.

use crate::output::{Palette, Tone, speaks_to_terminal};

/// The longest line that is kept whole. People don't read longer ones.
const LINE_LIMIT_BYTES: usize = 64 * 1024;

/// The current position in a patch. A line of a file may look like a header, so the counts of a hunk decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Head,
    /// In a hunk with this many old and new lines left.
    Hunk { old: u64, new: u64 },
}

#[derive(Debug)]
pub(super) struct Painter {
    palette: Palette,
    line: Vec<u8>,
    within: Within,
}

impl Painter {
    pub(super) fn new(palette: Palette) -> Painter {
        Painter {
            palette,
            line: Vec::new(),
            within: Within::default(),
        }
    }

    pub(super) fn paint(&mut self, piece: &[u8]) -> String {
        let mut painted = String::new();
        for byte in piece {
            match byte {
                b'\n' => painted.push_str(&self.end_line()),
                byte if self.line.len() < LINE_LIMIT_BYTES => self.line.push(*byte),
                _ => {}
            }
        }
        painted
    }

    /// Returns what is left at the end of the input.
    pub(super) fn finish(mut self) -> String {
        if self.line.is_empty() {
            String::new()
        } else {
            self.end_line()
        }
    }

    fn end_line(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        let line = harmless(&String::from_utf8_lossy(&line));
        let tone = self.tone(&line);
        let mut painted = match tone {
            _ if line.is_empty() => line,
            Colour::Tone(tone) => self.palette.paint(&line, tone),
            Colour::Bold => code(self.palette, "1", &line),
            Colour::Cyan => code(self.palette, "36", &line),
        };
        painted.push('\n');
        painted
    }

    fn tone(&mut self, line: &str) -> Colour {
        if let Within::Hunk { old, new } = self.within {
            let (old_left, new_left, colour) = match line.bytes().next() {
                Some(b'+') => (old, new.saturating_sub(1), Colour::Tone(Tone::Good)),
                Some(b'-') => (old.saturating_sub(1), new, Colour::Tone(Tone::Bad)),
                // The note about a missing newline is not a line of the hunk.
                Some(b'\\') => (old, new, Colour::Tone(Tone::Quiet)),
                _ => (
                    old.saturating_sub(1),
                    new.saturating_sub(1),
                    Colour::Tone(Tone::Plain),
                ),
            };
            self.within = if (old_left, new_left) == (0, 0) {
                Within::Head
            } else {
                Within::Hunk {
                    old: old_left,
                    new: new_left,
                }
            };
            return colour;
        }
        if let Some((old, new)) = hunk_lines(line) {
            self.within = Within::Hunk { old, new };
            return Colour::Cyan;
        }
        if line.starts_with('\\') {
            return Colour::Tone(Tone::Quiet);
        }
        Colour::Bold
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Tone(Tone),
    Bold,
    Cyan,
}

fn code(palette: Palette, code: &str, line: &str) -> String {
    match palette {
        Palette::Plain => line.to_owned(),
        Palette::Coloured => format!("\u{1b}[{code}m{line}\u{1b}[0m"),
    }
}

/// The number of old and new lines of a hunk, if the line starts one: `@@ -1,3 +1,4 @@`.
fn hunk_lines(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old)?, count(new)?))
}

/// A line of a file must not control the terminal.
fn harmless(line: &str) -> String {
    line.strip_suffix('\r')
        .unwrap_or(line)
        .chars()
        .map(|character| match character {
            '\t' => character,
            other if speaks_to_terminal(other) => '\u{fffd}',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/a.sql b/a.sql
index 1..2 100644
--- a/a.sql
+++ b/a.sql
@@ -1,3 +1,3 @@ create
 one
--- a comment
+++ b
 \u{1b}[31mthree\r
\\ No newline at end of file
diff --git a/b b/b
@@ -0,0 +1 @@
+@@ -1 +1 @@
";

    #[test]
    fn lines_are_told_apart_by_the_counts_of_their_hunk_wherever_the_pieces_end() {
        let expected = [
            ("1", "diff --git a/a.sql b/a.sql"),
            ("1", "index 1..2 100644"),
            ("1", "--- a/a.sql"),
            ("1", "+++ b/a.sql"),
            ("36", "@@ -1,3 +1,3 @@ create"),
            ("", " one"),
            ("31", "--- a comment"),
            ("32", "+++ b"),
            ("", " \u{fffd}[31mthree"),
            ("2", "\\ No newline at end of file"),
            ("1", "diff --git a/b b/b"),
            ("36", "@@ -0,0 +1 @@"),
            ("32", "+@@ -1 +1 @@"),
        ];
        let expected: String = expected
            .iter()
            .map(|(code, line)| match *code {
                "" => format!("{line}\n"),
                code => format!("\u{1b}[{code}m{line}\u{1b}[0m\n"),
            })
            .collect();
        for size in [1, 3, 7, PATCH.len()] {
            let mut painter = Painter::new(Palette::Coloured);
            let mut painted: String = PATCH
                .as_bytes()
                .chunks(size)
                .map(|piece| painter.paint(piece))
                .collect();
            painted.push_str(&painter.finish());
            assert_eq!(painted, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_lost() {
        let mut painter = Painter::new(Palette::Plain);
        assert_eq!(painter.paint(b"a\nb"), "a\n");
        assert_eq!(painter.finish(), "b\n");
    }
}
