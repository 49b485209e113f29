//! What can be wrong with a configuration, with the position of the problem.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::trust::ConfigHash;

/// Anything more different than this isn't a typo.
const LARGEST_SLIP: usize = 3;

/// Why a configuration file, or a part of it, isn't used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}: larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{}:{line}:{column}: {message}", path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        column: usize,
        message: String,
    },
    #[error("{}:{line}:{column}: {key}: {message}{}", path.display(), suggested(suggestion.as_deref()))]
    Value {
        path: PathBuf,
        line: usize,
        column: usize,
        /// The path of the key, such as `servers.pyright.comand`.
        key: String,
        message: String,
        suggestion: Option<String>,
    },
    /// One entry is invalid as a whole. The others are used.
    #[error("{}: {key}: {message}{}", path.display(), suggested(suggestion.as_deref()))]
    Entry {
        path: PathBuf,
        key: String,
        message: String,
        suggestion: Option<String>,
    },
}

/// Something about the configuration that people should see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigNote {
    #[error("{} is not used, since it can name programs to run and is not trusted; read it, then: {how_to_trust}", path.display())]
    Untrusted {
        path: PathBuf,
        hash: ConfigHash,
        how_to_trust: String,
    },
    #[error(transparent)]
    Broken(ConfigError),
    /// The workspace has its own program, but another one, or no program, is used.
    #[error("{}, a program of the workspace, is not used for {server}, since the workspace is not trusted: {how_to_trust}", program.display())]
    LocalProgramNotUsed {
        server: String,
        program: PathBuf,
        how_to_trust: String,
    },
    #[error("{server} is not used: {reason}")]
    NoRoot { server: String, reason: String },
}

fn suggested(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

/// Parses JSON into a type. An error has the position of the mismatch.
pub(super) fn typed<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let key = error.path().to_string();
        place(path, Some(key), error.inner())
    })?;
    deserializer.end().map_err(|error| place(path, None, &error))?;
    Ok(value)
}

pub(super) fn place(path: &Path, key: Option<String>, error: &serde_json::Error) -> ConfigError {
    let (line, column) = (error.line(), error.column());
    // The parser puts the position at the end of its message; we put it in front.
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

pub(super) fn closest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, name)| *distance <= LARGEST_SLIP && 2 * *distance <= name.len())
        .min()
        .map(|(_, name)| name.to_owned())
}

impl ConfigError {
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
