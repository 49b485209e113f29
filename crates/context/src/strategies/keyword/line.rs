//! How well a match fits, given its position in a line.

use super::concepts::Fits;

/// How well a match fits; `None` if it doesn't.
pub(super) fn fit(line: &[u8], start: usize, end: usize, fits: Fits) -> Option<f64> {
    let begins = is_edge(line, start);
    let ends = is_edge(line, end);
    match fits {
        Fits::Word => (begins && ends).then_some(1.0),
        Fits::Beginning => begins.then_some(1.0),
        Fits::Anywhere if begins && ends => {
            let is_whole = |byte: Option<&u8>| !byte.is_some_and(|byte| is_name_byte(*byte));
            let before = start.checked_sub(1).and_then(|before| line.get(before));
            let whole = is_whole(before) && is_whole(line.get(end));
            Some(if whole { 1.0 } else { 0.85 })
        }
        Fits::Anywhere if begins => Some(0.6),
        Fits::Anywhere => Some(0.25),
    }
}

/// The share of a defined name that a match covers, if a name is defined there.
pub(super) fn defined_part(line: &[u8], start: usize, end: usize) -> Option<f64> {
    let begin = line[..start]
        .iter()
        .rposition(|byte| !is_name_byte(*byte))
        .map_or(0, |at| at + 1);
    let finish = line[end..]
        .iter()
        .position(|byte| !is_name_byte(*byte))
        .map_or(line.len(), |at| end + at);
    let before = line[..begin].trim_ascii_end();
    let before = before.strip_suffix(b"!").unwrap_or(before);
    if before.len() == begin && begin > 0 {
        return None;
    }
    let word = before
        .iter()
        .rposition(|byte| !is_name_byte(*byte))
        .map_or(0, |at| at + 1);
    let word = &before[word..];
    if !is_definer(word) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "lines are short")]
    let part = (end - start) as f64 / (finish - begin).max(1) as f64;
    Some(part)
}

/// Whether a keyword introduces a name.
fn is_definer(word: &[u8]) -> bool {
    matches!(
        word,
        b"fn"
            | b"struct"
            | b"enum"
            | b"trait"
            | b"type"
            | b"mod"
            | b"union"
            | b"const"
            | b"static"
            | b"macro_rules"
            | b"def"
            | b"class"
            | b"function"
            | b"interface"
            | b"func"
            | b"namespace"
            | b"define"
            | b"record"
            | b"object"
            | b"val"
            | b"module"
            | b"protocol"
            | b"extension"
            | b"typedef"
            | b"message"
            | b"service"
            | b"rpc"
            | b"table"
            | b"view"
    )
}

fn is_edge(line: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| line.get(before));
    let (Some(before), Some(after)) = (before, line.get(at)) else {
        return true;
    };
    if !is_letter(*before) || !is_letter(*after) {
        return true;
    }
    let next_is_small = line.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    after.is_ascii_uppercase() && (!before.is_ascii_uppercase() || next_is_small)
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

fn is_name_byte(byte: u8) -> bool {
    is_letter(byte) || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::{Fits, defined_part, fit};

    #[test]
    fn a_match_fits_better_the_more_it_is_a_word() {
        use Fits::{Anywhere, Beginning, Word};
        for (line, found, fits, expected) in [
            ("parse it", "parse", Anywhere, Some(1.0)),
            ("fn parse_it", "parse", Anywhere, Some(0.85)),
            ("reParseIt", "Parse", Anywhere, Some(0.85)),
            ("HTTPServer", "Server", Anywhere, Some(0.85)),
            ("HTTPServer", "HTTP", Anywhere, Some(0.85)),
            ("parser", "parse", Anywhere, Some(0.6)),
            ("sparse", "parse", Anywhere, Some(0.25)),
            ("parser", "pars", Beginning, Some(1.0)),
            ("sparser", "pars", Beginning, None),
            ("io_error", "io", Word, Some(1.0)),
            ("ion", "io", Word, None),
            ("größer", "r", Word, None),
        ] {
            let start = line.find(found).unwrap();
            let fitted = fit(line.as_bytes(), start, start + found.len(), fits);
            assert_eq!(fitted, expected, "{line} {found} {fits:?}");
        }
    }

    #[test]
    fn a_definition_is_known_by_the_word_before_the_name() {
        for (line, found, expected) in [
            ("pub fn parse(", "parse", Some(1.0)),
            ("struct ParseIt {", "Parse", Some(5.0 / 7.0)),
            ("macro_rules! parse", "parse", Some(1.0)),
            ("#define parse 1", "parse", Some(1.0)),
            ("  def parse_it(self):", "it", Some(2.0 / 8.0)),
            ("let x = parse();", "parse", None),
            ("parse", "parse", None),
            ("fnparse", "parse", None),
        ] {
            let start = line.find(found).unwrap();
            let part = defined_part(line.as_bytes(), start, start + found.len());
            assert_eq!(part, expected, "{line} {found}");
        }
    }
}
