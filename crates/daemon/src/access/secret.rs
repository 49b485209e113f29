//! Secrets: random, compared in constant time, and never printed.

use std::fmt;

use subtle::ConstantTimeEq;

const SECRET_BYTES: usize = 32;

#[derive(Clone)]
pub(crate) struct Secret {
    text: String,
}

impl Secret {
    /// Generates a new secret: 32 bytes from the system, in hexadecimal.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        let text = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { text })
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, shown: &str) -> bool {
        self.text.as_bytes().ct_eq(shown.as_bytes()).into()
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_matches_itself_only_and_is_not_printed() {
        let secret = Secret::generate().unwrap();
        let other = Secret::generate().unwrap();
        assert_eq!(secret.reveal().len(), 2 * SECRET_BYTES);
        assert!(secret.matches(secret.reveal()));
        let truncated = &secret.reveal()[..SECRET_BYTES];
        for wrong in [other.reveal(), "", truncated] {
            assert!(!secret.matches(wrong));
        }
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
