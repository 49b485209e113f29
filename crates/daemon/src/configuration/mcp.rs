//! What is written down about clients of the Model Context Protocol.

use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpSection {
    /// Whether they may bring their plans into the workspace, and take them back.
    pub(crate) apply: Option<ApplyWord>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApplyWord {
    /// If the user says so each time.
    #[default]
    Ask,
    Allow,
    Never,
}

impl McpSection {
    pub(crate) fn apply(&self) -> ApplyWord {
        self.apply.unwrap_or_default()
    }
}
