//! What agents may do: rules, and the user's answers.

mod readable;
mod rules;

use serde::{Deserialize, Serialize};

pub use readable::Readable;
pub(crate) use rules::speaks_of;
pub use rules::{Decision, decide, exactly};

/// What a rule says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// It is done.
    Allow,
    /// The user is asked.
    Ask,
    /// It is not done.
    Deny,
}

/// A rule about what agents may do.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The tool; `*` for all.
    pub tool: String,
    /// What it is to do: a path, or a line for the shell, with `*` for anything. Without it, whatever it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What is to be done about it.
    pub permission: Permission,
}

/// What a user answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this time.
    Allow,
    /// Yes, and from now on in this session.
    AllowAlways,
    /// No. It is also what silence means.
    Deny,
}
