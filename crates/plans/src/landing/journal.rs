//! The journal of a landing, written before anything is touched.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Effect, FileAttributes, RelPath};

/// What a landing will do. It is committed before anything is touched; with it and the staging directory, a landing can
/// be finished or rolled back after a kill.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Landing {
    /// Identifies it, and names its directory below the staging directory.
    pub id: LandingId,
    /// What it will do; one effect per path.
    pub effects: Vec<Effect>,
    /// The known metadata of files that are created: for a file that was deleted and comes back, or that was renamed. A
    /// file that replaces another one keeps the metadata of that one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(RelPath, FileAttributes)>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LandingId(String);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` cannot name a landing: 1 to 64 letters, digits, `-` and `_`")]
pub struct BadLandingId(pub String);

impl LandingId {
    #[must_use]
    pub fn generate() -> Self {
        Self(format!("landing_{}", protocol::RequestId::generate()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LandingId {
    type Err = BadLandingId;

    fn from_str(text: &str) -> Result<Self, BadLandingId> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadLandingId(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for LandingId {
    type Error = BadLandingId;

    fn try_from(text: String) -> Result<Self, BadLandingId> {
        text.parse()
    }
}

impl From<LandingId> for String {
    fn from(id: LandingId) -> Self {
        id.0
    }
}

impl fmt::Display for LandingId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        let made = LandingId::generate();
        assert_eq!(made.as_str().parse(), Ok(made.clone()));
        assert_eq!(
            serde_json::from_value::<LandingId>(serde_json::json!(made)).unwrap(),
            made
        );
        for bad in ["", ".", "..", "a/b", "a b", "a.b", &"a".repeat(65)] {
            bad.parse::<LandingId>().unwrap_err();
            serde_json::from_value::<LandingId>(serde_json::json!(bad)).unwrap_err();
        }
    }
}
