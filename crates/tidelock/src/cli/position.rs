//! Places in files as people write them: `FILE:LINE:COL`.
//!
//! Lines and columns count from 1, columns in characters. A file name may have colons in it, because the numbers are
//! taken from the end. Whether there is such a file is looked at later.

use std::path::PathBuf;

/// What a place looks like, for messages.
const SHAPE: &str = "write FILE:LINE:COL, such as src/main.rs:12:8";

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourcePosition {
    pub(crate) file: PathBuf,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A part of a file: a place, and the place behind the end if it is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: SourcePosition,
    pub(crate) end: Option<(u32, u32)>,
}

/// Reads `FILE:LINE:COL` or `FILE:LINE`, whose column is 1.
///
/// # Errors
/// A sentence for the user when the text is neither.
pub(crate) fn parse_position(text: &str) -> Result<SourcePosition, String> {
    let Some((rest, last)) = text.rsplit_once(':') else {
        return Err(format!("the line is missing; {SHAPE}"));
    };
    let (file, line, column) = match rest.rsplit_once(':') {
        Some((file, line)) if is_number(line) => (file, line, Some(last)),
        _ => (rest, last, None),
    };
    if file.is_empty() {
        return Err(format!("the file is missing; {SHAPE}"));
    }
    Ok(SourcePosition {
        file: PathBuf::from(file),
        line: number(line, "line")?,
        column: column.map_or(Ok(1), |column| number(column, "column"))?,
    })
}

/// Reads a place, or `FILE:LINE:COL-LINE:COL` with the place behind the last character.
///
/// # Errors
/// A sentence for the user when the text is neither, or ends before it begins.
pub(crate) fn parse_span(text: &str) -> Result<Span, String> {
    if let Some((start, end)) = text.rsplit_once('-')
        && let Some((line, column)) = end.split_once(':')
        && is_number(line)
        && is_number(column)
        // Otherwise the dash belongs to the name of a file.
        && let Ok(start) = parse_position(start)
    {
        let end = (number(line, "line")?, number(column, "column")?);
        if end < (start.line, start.column) {
            return Err("the end is before the beginning".to_owned());
        }
        return Ok(Span {
            start,
            end: Some(end),
        });
    }
    parse_position(text).map(|start| Span { start, end: None })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str, what: &str) -> Result<u32, String> {
    if text.is_empty() {
        return Err(format!("the {what} is missing behind the last colon; {SHAPE}"));
    }
    if !is_number(text) {
        return Err(format!("`{text}` is not a {what} number; {SHAPE}"));
    }
    match text.parse() {
        Ok(0) => Err(format!("{what}s count from 1")),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("no file has a {what} {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, line: u32, column: u32) -> SourcePosition {
        SourcePosition {
            file: PathBuf::from(file),
            line,
            column,
        }
    }

    #[test]
    fn places_are_read_from_their_end() {
        for (text, expected) in [
            ("src/main.rs:12:8", Ok(place("src/main.rs", 12, 8))),
            ("src/main.rs:12", Ok(place("src/main.rs", 12, 1))),
            ("a:3:b.rs:12:8", Ok(place("a:3:b.rs", 12, 8))),
            ("a:3:b.rs:12", Ok(place("a:3:b.rs", 12, 1))),
            ("1:2:3", Ok(place("1", 2, 3))),
            ("1:2", Ok(place("1", 2, 1))),
            ("a b.rs:007:1", Ok(place("a b.rs", 7, 1))),
            ("a.rs", Err("the line is missing; write FILE:LINE:COL")),
            ("", Err("the line is missing")),
            (":3:4", Err("the file is missing")),
            (":3", Err("the file is missing")),
            ("a.rs:0:1", Err("lines count from 1")),
            ("a.rs:1:0", Err("columns count from 1")),
            ("a.rs:x", Err("`x` is not a line number")),
            ("a.rs:1:x", Err("`x` is not a column number")),
            ("a.rs:1:-2", Err("`-2` is not a column number")),
            ("a.rs:1:", Err("the column is missing behind the last colon")),
            ("a.rs:", Err("the line is missing behind the last colon")),
            ("a.rs:99999999999:1", Err("no file has a line 99999999999")),
            ("a.rs:1:４", Err("`４` is not a column number")),
        ] {
            let found = parse_position(text);
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{text}"),
                Err(beginning) => assert!(
                    found.as_ref().is_err_and(|error| error.starts_with(beginning)),
                    "{text}: {found:?}"
                ),
            }
        }
    }

    #[test]
    fn spans_have_an_end_only_if_it_is_one() {
        for (text, expected) in [
            ("a.rs:1:2-3:4", Ok((place("a.rs", 1, 2), Some((3, 4))))),
            ("a-b.rs:1:2", Ok((place("a-b.rs", 1, 2), None))),
            ("a-1:2", Ok((place("a-1", 2, 1), None))),
            ("a.rs:1-1:1", Ok((place("a.rs", 1, 1), Some((1, 1))))),
            ("a.rs:3:4-3:3", Err("the end is before the beginning")),
            ("a.rs:1:2-0:4", Err("lines count from 1")),
            ("a.rs:1:2-3", Err("`2-3` is not a column number")),
        ] {
            let found = parse_span(text);
            match expected {
                Ok((start, end)) => assert_eq!(found, Ok(Span { start, end }), "{text}"),
                Err(beginning) => assert!(
                    found.as_ref().is_err_and(|error| error.starts_with(beginning)),
                    "{text}: {found:?}"
                ),
            }
        }
    }
}
