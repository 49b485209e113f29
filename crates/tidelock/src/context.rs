//! What every command needs to know about its surroundings.

use std::ffi::OsString;
use std::path::PathBuf;

use daemon::{Database, DatabaseUrl, Home, HomeError, LanguageOptions};

use crate::output::{Format, Palette};

/// The version of this program, and of a daemon that it starts.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

const LANGUAGE_SERVERS: &str = "lsp.json";
/// All other settings.
const CONFIGURATION: &str = "config.toml";

#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) home: Home,
    /// The bearer token's file, which `TIDELOCK_TOKEN_FILE` can override.
    pub(crate) token_file: PathBuf,
    pub(crate) database: Database,
    pub(crate) palette: Palette,
    pub(crate) format: Format,
}

impl Context {
    /// Reads the environment, and changes nothing.
    pub(crate) fn from_environment(format: Format) -> Result<Context, HomeError> {
        let variable = |name: &str| -> Option<OsString> { std::env::var_os(name) };
        let home = Home::from_environment(&variable)?;
        let token_file = match variable("TIDELOCK_TOKEN_FILE").filter(|value| !value.is_empty()) {
            // A background daemon runs in `/`, so it needs the absolute path.
            Some(file) => std::path::absolute(&file).unwrap_or_else(|_| PathBuf::from(file)),
            None => home.token_file(),
        };
        let database = match variable(daemon::DATABASE_URL).filter(|value| !value.is_empty()) {
            // A value that is not UTF-8 is not a valid address either, and is refused as such.
            Some(url) => Database::Postgres(DatabaseUrl::new(url.to_string_lossy().into_owned())),
            None => Database::File,
        };
        Ok(Context {
            database,
            home,
            token_file,
            palette: Palette::choose(&variable),
            format,
        })
    }
}

impl Context {
    pub(crate) fn languages(&self) -> LanguageOptions {
        LanguageOptions {
            environment: std::env::vars_os()
                .filter(|(name, _)| !daemon::is_private(name))
                .collect(),
            configuration: configuration_file(LANGUAGE_SERVERS, &|name| std::env::var_os(name)),
        }
    }

    /// The user's configuration of agents and sessions. The file need not exist.
    pub(crate) fn configuration(&self) -> Option<PathBuf> {
        configuration_file(CONFIGURATION, &|name| std::env::var_os(name))
    }
}

/// A file of the user's configuration: in `TIDELOCK_HOME`, or in the usual configuration directory.
fn configuration_file(file: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let home = path("TIDELOCK_HOME");
    let usual = || path("XDG_CONFIG_HOME").or_else(|| Some(path("HOME")?.join(".config")));
    Some(home.or_else(|| Some(usual()?.join("tidelock")))?.join(file))
}

/// The advice if the versions of client and daemon differ.
pub(crate) fn version_skew(daemon_version: &str) -> Option<String> {
    (daemon_version != VERSION).then(|| {
        format!(
            "the daemon is version {daemon_version} and this program is {VERSION}; \
             restart it with `tidelock down && tidelock up`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_configuration_has_one_place() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
        let cases: [Case<'_>; 5] = [
            (&[("TIDELOCK_HOME", "/t"), ("HOME", "/h")], Some("/t/lsp.json")),
            (
                &[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")],
                Some("/c/tidelock/lsp.json"),
            ),
            (
                &[("XDG_CONFIG_HOME", "c"), ("HOME", "/h")],
                Some("/h/.config/tidelock/lsp.json"),
            ),
            (&[("HOME", "/h")], Some("/h/.config/tidelock/lsp.json")),
            (&[], None),
        ];
        for (variables, expected) in cases {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(
                configuration_file(LANGUAGE_SERVERS, &variable),
                expected.map(PathBuf::from),
                "{variables:?}"
            );
        }
    }
}
