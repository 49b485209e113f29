//! How a daemon is set up: every setting, its value, and where that comes from.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Every setting of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingList {
    /// The file that the owner of the daemon writes settings into, whether it is there or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "/home/me/.config/tidelock/config.toml")]
    pub file: Option<String>,
    /// The settings: those of the program first, then those of the file in the order of its reference.
    pub settings: Vec<Setting>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// Its key. One with a dot in it is a key of the file.
    #[schema(example = "sessions.max_turns")]
    pub key: String,
    /// What is in force; null if nothing is. Secrets are never here.
    #[schema(value_type = Value)]
    pub value: Value,
    /// Where the value comes from.
    pub source: SettingSource,
    /// What it is for.
    pub meaning: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum SettingSource {
    /// Nobody has said anything, and this is the usual value.
    Default,
    /// The file says so.
    File {
        /// In this line, counted from 1.
        line: usize,
    },
    /// A variable of the environment says so.
    Environment {
        /// Its name.
        variable: String,
    },
    /// Whoever started the daemon said so.
    CommandLine {
        /// With this option.
        option: String,
    },
}
