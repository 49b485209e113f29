//! The settings of a daemon: every key, its value, and the source of that value.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// All settings of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingList {
    /// The path of the configuration file, whether or not it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "/home/me/.config/tidelock/config.toml")]
    pub file: Option<String>,
    /// The settings: first those of the program, then those of the file in the order of its reference.
    pub settings: Vec<Setting>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// The key. Keys with a dot belong to the configuration file.
    #[schema(example = "sessions.max_turns")]
    pub key: String,
    /// The value in force, or null if there is none. Secrets are never included.
    #[schema(value_type = Value)]
    pub value: Value,
    /// The source of the value.
    pub source: SettingSource,
    /// A description of the setting.
    pub meaning: String,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum SettingSource {
    /// The default value.
    Default,
    /// The configuration file.
    File {
        /// The line in the file, starting at 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// The name of the variable.
        variable: String,
    },
    /// The command line that started the daemon.
    CommandLine {
        /// The option.
        option: String,
    },
}
