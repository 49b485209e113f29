//! What a terminal would show of a text, as plain lines: colours and other escapes are removed, and a carriage return
//! goes back to the start of the line, as the progress bars of tools expect.
//!
//! `web/ansi.js` does the same and keeps the colours. `ansi_cases.json` has the cases that both must agree on. The text
//! may come from an attacker, so none of it is trusted: an unterminated sequence swallows at most its own line, and an
//! unterminated line is cut. `anstyle-parse` and `vte` guarantee neither, and don't agree with the script on the cases.

/// How many characters of a line are shown. A tool that writes everything into one line would fill the page.
const LINE_CHARACTERS: usize = 4000;

/// How much of a sequence's parameters is read. We understand no sequence that needs more.
const PARAMETER_CHARACTERS: usize = 64;

/// Builds lines from pieces of a text. A piece may end anywhere between two characters.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<char>,
    /// Where the next character goes; may be past the end of the line.
    cursor: usize,
    /// Whether anything was written to the line, even if it was erased again.
    is_begun: bool,
    is_cut: bool,
    within: Within,
}

#[derive(Debug, Default)]
enum Within {
    #[default]
    Text,
    Escape,
    Sequence(String),
    /// A string for the terminal, such as a title for its window.
    Words,
}

impl Lines {
    pub(crate) fn feed(&mut self, piece: &str) -> Vec<String> {
        let mut ended = Vec::new();
        for character in piece.chars() {
            if character == '\n' {
                ended.push(self.shown());
                *self = Self::default();
            } else {
                self.take(character);
            }
        }
        ended
    }

    /// The unfinished line; `None` if nothing has been written since the last line break.
    pub(crate) fn open(&self) -> Option<String> {
        self.is_begun.then(|| self.shown())
    }

    fn shown(&self) -> String {
        let mut shown: String = self.line.iter().collect();
        if self.is_cut {
            shown.push('…');
        }
        shown
    }

    fn take(&mut self, character: char) {
        match (&mut self.within, character) {
            (_, '\u{1b}') => self.within = Within::Escape,
            (Within::Text, _) => self.take_text(character),
            (Within::Escape, '[') => self.within = Within::Sequence(String::new()),
            (Within::Escape, ']' | 'P' | 'X' | '^' | '_') => self.within = Within::Words,
            // The sequence continues: its final character comes after these.
            (Within::Escape, ' '..='/') => {}
            (Within::Escape, _) => self.within = Within::Text,
            (Within::Sequence(parameters), ' '..='?') => {
                if parameters.len() < PARAMETER_CHARACTERS {
                    parameters.push(character);
                }
            }
            (Within::Sequence(parameters), '@'..='~') => {
                let erase = (character == 'K').then(|| std::mem::take(parameters));
                self.within = Within::Text;
                if let Some(which) = erase {
                    self.erase(&which);
                }
            }
            (Within::Sequence(_), _) if is_hidden(character) => {}
            (Within::Sequence(_), _) => {
                self.within = Within::Text;
                self.take_text(character);
            }
            (Within::Words, '\u{7}' | '\u{9c}') => self.within = Within::Text,
            (Within::Words, _) => {}
        }
    }

    fn take_text(&mut self, character: char) {
        match character {
            '\r' => self.cursor = 0,
            '\u{8}' => self.cursor = self.cursor.saturating_sub(1),
            '\t' => self.put(character),
            _ if is_hidden(character) => {}
            _ => self.put(character),
        }
    }

    fn put(&mut self, character: char) {
        self.is_begun = true;
        if self.cursor >= LINE_CHARACTERS {
            self.is_cut = true;
            return;
        }
        if self.cursor >= self.line.len() {
            self.line.resize(self.cursor + 1, ' ');
        }
        self.line[self.cursor] = character;
        self.cursor += 1;
    }

    fn erase(&mut self, which: &str) {
        match which {
            "" | "0" => self.line.truncate(self.cursor),
            "1" => {
                let end = (self.cursor + 1).min(self.line.len());
                self.line[..end].fill(' ');
            }
            "2" => self.line.clear(),
            _ => {}
        }
    }
}

/// Whether a character is never shown: it controls a terminal, or changes the direction of the text around it.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn one_line(text: &str) -> String {
    let mut lines = Lines::default();
    let mut shown = lines.feed(text);
    shown.extend(lines.open());
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        why: String,
        pieces: Vec<String>,
        lines: Vec<String>,
    }

    fn shown<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut lines = Lines::default();
        let mut shown: Vec<String> = pieces.into_iter().flat_map(|piece| lines.feed(piece)).collect();
        shown.extend(lines.open());
        shown
    }

    #[test]
    fn a_text_is_shown_as_a_terminal_would() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("ansi_cases.json")).unwrap();
        assert!(cases.len() > 20);
        for case in &cases {
            assert_eq!(
                shown(case.pieces.iter().map(String::as_str)),
                case.lines,
                "{}",
                case.why
            );
            // Where a piece ends makes no difference.
            let whole = case.pieces.concat();
            let single: Vec<String> = whole.chars().map(String::from).collect();
            assert_eq!(
                shown(single.iter().map(String::as_str)),
                case.lines,
                "one by one: {}",
                case.why
            );
        }
    }

    #[test]
    fn what_has_no_end_is_cut() {
        let long = "ü".repeat(LINE_CHARACTERS + 1);
        let cut = format!("{}…", "ü".repeat(LINE_CHARACTERS));
        let sequence = format!("a\u{1b}[{}mb", "1;".repeat(10_000));
        for (text, expected) in [
            (long.as_str(), vec![cut.clone()]),
            (&format!("{long}\nnext"), vec![cut.clone(), "next".to_owned()]),
            // Going back only makes room for what is overwritten.
            (&format!("{long}\rx"), vec![cut.replacen('ü', "x", 1)]),
            (&sequence, vec!["ab".to_owned()]),
        ] {
            assert_eq!(shown([text]), expected);
        }
        let mut lines = Lines::default();
        lines.feed(&"\u{1b}[".repeat(2));
        lines.feed(&"1".repeat(1_000_000));
        let Within::Sequence(parameters) = &lines.within else {
            panic!("{lines:?}");
        };
        assert_eq!(parameters.len(), PARAMETER_CHARACTERS);
    }

    #[test]
    fn a_title_is_one_line_without_escapes() {
        for (title, expected) in [
            ("cargo test", "cargo test"),
            ("echo a\necho b\n", "echo a echo b"),
            ("\u{1b}]0;owned\u{7}\u{1b}[31m<b>red\u{1b}[0m", "<b>red"),
            ("", ""),
        ] {
            assert_eq!(one_line(title), expected);
        }
    }
}
