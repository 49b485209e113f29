//! Shell quoting, for commands that we tell people to type.

pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_word_that_was_meant() {
        for (word, expected) in [
            ("plan_01ARZ3", "plan_01ARZ3"),
            ("lsp/rust-analyzer", "lsp/rust-analyzer"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("$(id)", "'$(id)'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
