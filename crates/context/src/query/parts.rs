//! The words in a name.

/// The words of a name, in lower case and in order: `HTTPServer` is `http` and `server`, `utf8_lossy` is `utf8` and
/// `lossy`. A digit belongs to the letters around it.
pub(crate) fn parts_of(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split(|letter: char| !letter.is_alphanumeric()) {
        let mut letters = piece.chars().peekable();
        let mut part = String::new();
        let mut before: Option<char> = None;
        while let Some(letter) = letters.next() {
            let begins = before.is_some_and(|before| {
                let after = letters.peek().copied();
                letter.is_uppercase() && (!before.is_uppercase() || begins_a_word(after, &letters))
            });
            if begins && !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
            part.extend(letter.to_lowercase());
            before = Some(letter);
        }
        if !part.is_empty() {
            parts.push(part);
        }
    }
    parts
}

/// Whether the last of several capitals begins a new word. In `HTTPServer` it does; in `URLs` the `s` is only a
/// plural.
fn begins_a_word(after: Option<char>, rest: &std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let is_plural = || {
        let mut rest = rest.clone();
        rest.next() == Some('s') && rest.next().is_none_or(|next| !next.is_lowercase())
    };
    after.is_some_and(char::is_lowercase) && !is_plural()
}

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn names_are_taken_apart_where_people_put_words_together() {
        for (name, parts) in [
            ("", ""),
            ("__", ""),
            ("config", "config"),
            ("ParseConfig", "parse config"),
            ("parseConfig", "parse config"),
            ("parse_config", "parse config"),
            ("PARSE_CONFIG", "parse config"),
            ("parse-config", "parse config"),
            ("HTTPServer", "http server"),
            ("HTTP", "http"),
            ("parseURLs", "parse urls"),
            ("URLsOfPage", "urls of page"),
            ("utf8_lossy", "utf8 lossy"),
            ("Base64Encoder", "base64 encoder"),
            ("o200k", "o200k"),
            ("v2", "v2"),
            ("std::io::Error", "std io error"),
            ("a.b()", "a b"),
            ("ÜberGröße", "über größe"),
            ("İx", "i\u{307}x"),
            ("日本語", "日本語"),
        ] {
            assert_eq!(parts_of(name).join(" "), parts, "{name:?}");
        }
    }
}
