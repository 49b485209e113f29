//! Fills in the placeholders `{{prompt}}` and `{{answer}}` in the texts of a script.
//!
//! Only texts are filled in. Paths and shell commands stay unchanged, so that a prompt never becomes a command.

/// The longest text after filling in. A script of 128 KiB could insert a prompt of 256 KiB ten thousand times.
pub(super) const FILLED_LIMIT_BYTES: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLong;

/// The values of the placeholders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fillings<'a> {
    /// The turn's prompt.
    pub(super) prompt: &'a str,
    /// The last answer of a tool or the user.
    pub(super) answer: &'a str,
}

/// Fills in all placeholders. Inserted text isn't scanned again, and unknown names stay unchanged.
pub(super) fn fill(text: &str, fillings: Fillings<'_>) -> Result<String, TooLong> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(found) = rest.find("{{") {
        let (before, from) = rest.split_at(found);
        push(&mut filled, before)?;
        let known = [("{{prompt}}", fillings.prompt), ("{{answer}}", fillings.answer)];
        rest = match known.iter().find(|(name, _)| from.starts_with(name)) {
            Some((name, filling)) => {
                push(&mut filled, filling)?;
                from.get(name.len()..).unwrap_or_default()
            }
            None => {
                push(&mut filled, "{")?;
                from.get(1..).unwrap_or_default()
            }
        };
    }
    push(&mut filled, rest)?;
    Ok(filled)
}

fn push(filled: &mut String, more: &str) -> Result<(), TooLong> {
    if filled.len() + more.len() > FILLED_LIMIT_BYTES {
        return Err(TooLong);
    }
    filled.push_str(more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Fillings, TooLong, fill};

    #[test]
    fn texts_are_filled_in_once() {
        let fillings = Fillings {
            prompt: "say {{answer}}",
            answer: "{{prompt}}",
        };
        let cases = [
            ("", ""),
            ("nothing", "nothing"),
            ("{{prompt}}", "say {{answer}}"),
            ("a {{prompt}} b {{answer}} c", "a say {{answer}} b {{prompt}} c"),
            ("{{{prompt}}}", "{say {{answer}}}"),
            ("{{other}} {{prompt}", "{{other}} {{prompt}"),
            ("{{", "{{"),
        ];
        for (text, expected) in cases {
            assert_eq!(fill(text, fillings), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_text_that_grows_too_long_is_refused() {
        let prompt = "x".repeat(1000);
        let fillings = Fillings {
            prompt: &prompt,
            answer: "",
        };
        assert_eq!(fill(&"{{prompt}}".repeat(2000), fillings), Err(TooLong));
        assert_eq!(
            fill(&"{{prompt}}".repeat(1000), fillings).map(|text| text.len()),
            Ok(1_000_000)
        );
    }
}
