//! A command in one line, for people.

/// The longest title. Every list shows it.
const TITLE_CHARACTERS: usize = 200;
/// Characters that need no quoting in a shell, besides letters and digits.
const PLAIN: &str = "@%+=:,./-_";

/// A command line that a shell parses into these words.
pub(super) fn quoted(words: &[String]) -> String {
    let is_plain = |word: &str| {
        let is_plain = |character: char| character.is_alphanumeric() || PLAIN.contains(character);
        !word.is_empty() && word.chars().all(is_plain)
    };
    let quoted = words.iter().map(|word| match is_plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A text as one line of limited length. Characters that would break the line become spaces.
pub(super) fn one_line(text: &str) -> String {
    let plain = text.trim().chars();
    let mut shown: String = plain
        .map(|character| match character.is_control() {
            true => ' ',
            false => character,
        })
        .take(TITLE_CHARACTERS + 1)
        .collect();
    if let Some((end, _)) = shown.char_indices().nth(TITLE_CHARACTERS - 1)
        && shown.chars().count() > TITLE_CHARACTERS
    {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_not_leave_them_alone() {
        for (words, expected) in [
            (vec!["cargo", "test", "-p", "a_b"], "cargo test -p a_b"),
            (vec!["echo", "a b", "", "c'd"], r"echo 'a b' '' 'c'\''d'"),
            (vec!["é", "$HOME", "*", "a;b", "~"], "é '$HOME' '*' 'a;b' '~'"),
            (vec!["X=1", "/bin/x,y:z@%+"], "X=1 /bin/x,y:z@%+"),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(quoted(&words), expected);
        }
    }

    #[test]
    fn a_shell_reads_the_words_back() {
        let words = ["a b", "", "c'd", "\"e\"", "$HOME `x`", "\\", "-n", "é\n"].map(str::to_owned);
        let line = format!("printf '%s\\0' {}", quoted(&words));
        let said = std::process::Command::new("sh").args(["-c", &line]).output();
        let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(String::from_utf8(said.unwrap().stdout).unwrap(), expected);
    }

    #[test]
    fn a_title_is_one_line_and_not_too_long() {
        let long = "é".repeat(500);
        for (text, expected) in [
            ("make\n\tall\n", "make  all".to_owned()),
            (&long[..400], "é".repeat(200)),
            (&long[..402], "é".repeat(199) + "…"),
            (&long, "é".repeat(199) + "…"),
        ] {
            assert_eq!(one_line(text), expected);
        }
    }
}
