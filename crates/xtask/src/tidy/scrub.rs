//! Separates Rust source from its comments and literals, so that a rule about code is not misled by a word in a
//! sentence or in a string.
//!
//! This is a lexer for exactly that: it knows line and nested block comments, plain and raw strings, and tells a
//! character from a lifetime. It replaces what it removes with spaces, so that columns don't shift.

#[derive(Debug)]
pub(super) struct Source {
    lines: Vec<Line>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Only the code: comments are removed and literals are empty.
    pub(super) code: String,
    /// Only the comment, without its slashes.
    pub(super) comment: String,
    pub(super) raw: String,
    /// Whether it is only compiled for tests.
    pub(super) only_in_tests: bool,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let mut lines = lex(text);
        for (line, raw) in lines.iter_mut().zip(text.lines()) {
            raw.clone_into(&mut line.raw);
        }
        lines.truncate(text.lines().count());
        mark_test_code(&mut lines);
        Self { lines }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines
            .iter()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// The line before the given one.
    pub(super) fn line_above(&self, number: usize) -> Option<&Line> {
        self.lines.get(number.checked_sub(2)?)
    }

    pub(super) fn line_count(&self) -> usize {
        self.lines.len()
    }
}

fn lex(text: &str) -> Vec<Line> {
    let characters: Vec<char> = text.chars().collect();
    let at = |index: usize| characters.get(index).copied().unwrap_or('\0');
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut index = 0;
    while index < characters.len() {
        let character = characters[index];
        if character == '\n' {
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            lines.push(Line::default());
            index += 1;
            continue;
        }
        // How many characters this step consumes, and which of them are code or comment.
        let mut width = 1;
        let mut code = ' ';
        let mut comment = None;
        match state {
            State::Code => match (character, at(index + 1)) {
                ('/', '/') => (state, width) = (State::LineComment, 2),
                ('/', '*') => (state, width) = (State::BlockComment { depth: 1 }, 2),
                ('"', _) => (state, code) = (State::Text, '"'),
                ('r', '"' | '#')
                    if !is_word(at(index.wrapping_sub(1))) || is_byte_prefix(&characters, index) =>
                {
                    match raw_hashes(&characters, index + 1) {
                        Some(hashes) => (state, width, code) = (State::RawText { hashes }, hashes + 2, '"'),
                        None => code = character,
                    }
                }
                ('\'', '\\') => width = escaped_character_width(&characters, index),
                ('\'', _) if at(index + 2) == '\'' => width = 3,
                _ => code = character,
            },
            State::LineComment => comment = Some(character),
            State::BlockComment { depth } => match (character, at(index + 1)) {
                ('*', '/') if depth == 1 => (state, width) = (State::Code, 2),
                ('*', '/') => (state, width) = (State::BlockComment { depth: depth - 1 }, 2),
                ('/', '*') => (state, width) = (State::BlockComment { depth: depth + 1 }, 2),
                _ => comment = Some(character),
            },
            State::Text => match character {
                // An escaped newline still ends the line.
                '\\' if at(index + 1) != '\n' => width = 2,
                '"' => (state, code) = (State::Code, '"'),
                _ => {}
            },
            State::RawText { hashes } => {
                if character == '"' && (1..=hashes).all(|offset| at(index + offset) == '#') {
                    (state, width, code) = (State::Code, hashes + 1, '"');
                }
            }
        }
        if let Some(line) = lines.last_mut() {
            line.code.push(code);
            line.code.extend(std::iter::repeat_n(' ', width - 1));
            line.comment.extend(comment);
        }
        index += width;
    }
    lines
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether the `r` at `index` is the second letter of `br` or `cr`.
fn is_byte_prefix(characters: &[char], index: usize) -> bool {
    let before = |distance: usize| index.checked_sub(distance).map_or(' ', |index| characters[index]);
    matches!(before(1), 'b' | 'c') && !is_word(before(2))
}

/// How many hashes open the raw string after the `r` that was just read; `None` if it is not a string (`r#match`).
fn raw_hashes(characters: &[char], from: usize) -> Option<usize> {
    let hashes = characters[from..]
        .iter()
        .take_while(|character| **character == '#')
        .count();
    (characters.get(from + hashes) == Some(&'"')).then_some(hashes)
}

/// The width of a character such as `'\n'` or `'\u{1b}'`, quotes included.
fn escaped_character_width(characters: &[char], from: usize) -> usize {
    // The character after the backslash may itself be a quote.
    let rest = characters.get(from + 3..).unwrap_or_default();
    rest.iter()
        .position(|character| *character == '\'')
        .map_or(1, |position| position + 4)
}

/// Marks what follows `#[cfg(test)]`: one item, up to its semicolon or its closing brace.
fn mark_test_code(lines: &mut [Line]) {
    let mut index = 0;
    while index < lines.len() {
        if !is_test_attribute(&lines[index].code) {
            index += 1;
            continue;
        }
        let end = item_end(lines, index);
        for line in &mut lines[index..=end] {
            line.only_in_tests = true;
        }
        index = end + 1;
    }
}

fn is_test_attribute(code: &str) -> bool {
    let code = code.trim_start();
    code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test")
}

fn item_end(lines: &[Line], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate().skip(start) {
        for character in line.code.chars() {
            match character {
                '{' => depth += 1,
                '}' if depth <= 1 => return index,
                '}' => depth -= 1,
                ';' if depth == 0 => return index,
                _ => {}
            }
        }
    }
    lines.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        Source::new(text)
            .lines()
            .map(|(_, line)| line.code.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn comments_and_literals_are_blanked_and_columns_kept() {
        let cases: [(&str, &[&str]); 12] = [
            ("a // b", &["a"]),
            ("a /* b /* c */ d */ e", &["a                   e"]),
            ("f(\"x // y\") + 1", &["f(\"      \") + 1"]),
            (r#"f("a\"b") + 1"#, &["f(\"    \") + 1"]),
            ("r\"a\\\" + b", &["\"   \" + b"]),
            ("r#\"a\"b\"# + c", &["\"     \"  + c"]),
            ("br#\"a\"# + c", &["b\"   \"  + c"]),
            ("let r#match = for\"x\";", &["let r#match = for\" \";"]),
            ("'a' + '\\'' + '\\u{1b}' + b", &["    +      +          + b"]),
            ("fn f<'a>(x: &'a str)", &["fn f<'a>(x: &'a str)"]),
            ("\"one\ntwo\" three", &["\"", "   \" three"]),
            ("/* one\ntwo */ three", &["", "       three"]),
        ];
        for (text, expected) in cases {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn comments_are_kept_apart() {
        let source = Source::new("a(); // tidy: because\n/// A doc.\nb();");
        let comments: Vec<_> = source.lines().map(|(_, line)| line.comment.trim()).collect();
        assert_eq!(comments, ["tidy: because", "/ A doc.", ""]);
        assert_eq!(
            source.line_above(3).map(|line| line.raw.as_str()),
            Some("/// A doc.")
        );
        assert_eq!(source.line_above(1), None);
    }

    #[test]
    fn test_code_is_marked_to_the_end_of_its_item() {
        let text = "\
fn product() {}
#[cfg(test)]
mod tests {
    fn one() { two() }
}
fn product_again() {}
#[cfg(test)]
mod more;
#[cfg(all(test, unix))]
use x;
fn last() {}";
        let marked: Vec<usize> = Source::new(text)
            .lines()
            .filter(|(_, line)| line.only_in_tests)
            .map(|(number, _)| number)
            .collect();
        assert_eq!(marked, [2, 3, 4, 5, 7, 8, 9, 10]);
    }
}
