//! What can be wrong with a configuration, in words that lead to the place.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::trust::ConfigHash;

/// More different than this is no slip of the finger.
const LARGEST_SLIP: usize = 3;

/// Why a configuration file, or a part of it, is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file is larger than any configuration.
    #[error("{}: larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is read at most.
        limit: u64,
    },
    /// It is no JSON.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// It is JSON, but a key or a value is none that we know.
    #[error("{}:{line}:{column}: {key}: {message}{}", path.display(), suggested(suggestion.as_deref()))]
    Value {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// Where it stands, such as `servers.pyright.comand`.
        key: String,
        /// What is wrong.
        message: String,
        /// What may have been meant.
        suggestion: Option<String>,
    },
    /// One entry makes no sense as a whole. The others are used.
    #[error("{}: {key}: {message}{}", path.display(), suggested(suggestion.as_deref()))]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry.
        key: String,
        /// What is wrong.
        message: String,
        /// What may have been meant.
        suggestion: Option<String>,
    },
}

/// Something about the configuration that people should see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigNote {
    /// The repository has a configuration that nobody has trusted, so it is not used.
    #[error("{} is not used, since it can name programs to run and is not trusted; read it, then: {how_to_trust}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What would be trusted.
        hash: ConfigHash,
        /// A command line.
        how_to_trust: String,
    },
    /// A file, or a part of it, is not used.
    #[error(transparent)]
    Broken(ConfigError),
    /// The workspace brings a program of its own, and another one, or none, is used.
    #[error("{}, a program of the workspace, is not used for {server}, since the workspace is not trusted: {how_to_trust}", program.display())]
    LocalProgramNotUsed {
        /// The server.
        server: String,
        /// The program.
        program: PathBuf,
        /// A command line.
        how_to_trust: String,
    },
    /// A server is not used, since its root cannot be found.
    #[error("{server} is not used: {reason}")]
    NoRoot {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
}

fn suggested(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

/// Reads JSON into a type, with the place of whatever does not fit.
pub(super) fn typed<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let key = error.path().to_string();
        place(path, Some(key), error.inner())
    })?;
    deserializer.end().map_err(|error| place(path, None, &error))?;
    Ok(value)
}

/// Turns an error of the parser into ours.
pub(super) fn place(path: &Path, key: Option<String>, error: &serde_json::Error) -> ConfigError {
    let (line, column) = (error.line(), error.column());
    // The parser says the place at the end of its message; we say it in front.
    let said = error.to_string();
    let message = said.split(" at line ").next().unwrap_or(&said).to_owned();
    let path = path.to_path_buf();
    let Some(key) = key.filter(|_| error.is_data()) else {
        return ConfigError::Syntax {
            path,
            line,
            column,
            message,
        };
    };
    let mut names = message.split('`').skip(1).step_by(2).map(str::to_owned);
    let (key, message, suggestion) = match names.next() {
        Some(unknown) if message.starts_with("unknown field") => {
            let key = match key.as_str() {
                "." => unknown.clone(),
                _ if key == unknown || key.ends_with(&format!(".{unknown}")) => key,
                _ => format!("{key}.{unknown}"),
            };
            let known: Vec<String> = names.collect();
            let suggestion = closest(&unknown, known.iter().map(String::as_str));
            let message = match suggestion {
                Some(_) => format!("there is no key `{unknown}`"),
                None => format!("there is no key `{unknown}`; there is {}", known.join(", ")),
            };
            (key, message, suggestion)
        }
        _ => (key, message, None),
    };
    ConfigError::Value {
        path,
        line,
        column,
        key,
        message,
        suggestion,
    }
}

/// The name that was probably meant.
pub(super) fn closest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, name)| *distance <= LARGEST_SLIP && 2 * *distance <= name.len())
        .min()
        .map(|(_, name)| name.to_owned())
}

impl ConfigError {
    /// The file.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Syntax { path, .. }
            | Self::Value { path, .. }
            | Self::Entry { path, .. } => path,
        }
    }
}
