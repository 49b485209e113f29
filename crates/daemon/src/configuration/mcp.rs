//! The configuration of Model Context Protocol clients.

use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpSection {
    /// Whether they may apply their plans to the workspace, and undo them.
    pub(crate) apply: Option<ApplyWord>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApplyWord {
    /// Only if the user agrees each time.
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
