//! The settings that this program resolves before it passes the rest to the daemon, with the source of each.

use std::ffi::OsString;

use daemon::{Database, Options};
use protocol::{Setting, SettingSource};
use serde_json::{Value, json};

use crate::client::whole_ms;
use crate::logging;

#[derive(Clone, Copy, Debug, Default)]
struct Deciders {
    option: Option<&'static str>,
    variables: &'static [&'static str],
}

pub(crate) struct Surroundings<'a> {
    pub(crate) arguments: &'a [OsString],
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Surroundings<'_> {
    fn source(&self, deciders: Deciders) -> SettingSource {
        let is_given = |option: &&str| {
            let before_command = self.arguments.iter().take_while(|argument| *argument != "--");
            let mut texts = before_command.filter_map(|argument| argument.to_str());
            texts.any(|text| {
                text.strip_prefix(option)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            })
        };
        if let Some(option) = deciders.option.filter(is_given) {
            return SettingSource::CommandLine {
                option: option.to_owned(),
            };
        }
        let set = |name: &&&str| (self.variable)(name).is_some_and(|value| !value.is_empty());
        match deciders.variables.iter().find(set) {
            Some(variable) => SettingSource::Environment {
                variable: (*variable).to_owned(),
            },
            None => SettingSource::Default,
        }
    }
}

pub(crate) fn of(options: &Options, around: &Surroundings<'_>) -> Vec<Setting> {
    let text = |path: &std::path::Path| json!(path.display().to_string());
    let token_file = options
        .token_file
        .clone()
        .unwrap_or_else(|| options.home.token_file());
    let languages = options.languages.configuration.as_deref();
    let setting = |key: &str, value: Value, option, variables, meaning: &str| Setting {
        key: key.to_owned(),
        value,
        source: around.source(Deciders { option, variables }),
        meaning: meaning.to_owned(),
    };
    vec![
        setting(
            "runtime_directory",
            text(&options.home.runtime),
            None,
            &["TIDELOCK_HOME", "XDG_RUNTIME_DIR"],
            "Where the socket and the locks are.",
        ),
        setting(
            "state_directory",
            text(&options.home.state),
            None,
            &["TIDELOCK_HOME", "XDG_STATE_HOME"],
            "Where the token, the log and the sandboxes are.",
        ),
        setting(
            "listen",
            json!(options.listen.address.to_string()),
            Some("--listen"),
            &["TIDELOCK_LISTEN"],
            "The HTTP address, in addition to the socket. If the default address is taken, any free port is used.",
        ),
        setting(
            "allow_host",
            json!(options.allowed_hosts),
            Some("--allow-host"),
            &[],
            "Host names that requests may use, in addition to those of the loopback interface.",
        ),
        setting(
            "token_file",
            text(&token_file),
            Some("--token-file"),
            &["TIDELOCK_TOKEN_FILE"],
            "The file with the bearer token.",
        ),
        setting(
            "shutdown_grace_ms",
            json!(whole_ms(options.shutdown_grace)),
            Some("--shutdown-grace-ms"),
            &[],
            "How long requests in flight may take to finish when the daemon stops.",
        ),
        setting(
            "database",
            database(options, around),
            None,
            &["TIDELOCK_DATABASE_URL"],
            "Where the log is kept.",
        ),
        setting(
            "log",
            json!(logging::wanted(around.variable)),
            None,
            &["TIDELOCK_LOG"],
            "What the daemon logs.",
        ),
        setting(
            "language_servers",
            languages.map_or(Value::Null, text),
            None,
            &["TIDELOCK_HOME", "XDG_CONFIG_HOME"],
            "The file that configures language servers; optional.",
        ),
    ]
}

/// An address without its secrets: user, password and parameters, since a parameter can be a password.
fn database(options: &Options, around: &Surroundings<'_>) -> Value {
    match &options.database {
        Database::File => json!(options.home.log_database().display().to_string()),
        Database::Postgres(_) => {
            let url = (around.variable)("TIDELOCK_DATABASE_URL").unwrap_or_default();
            json!(without_account(&url.to_string_lossy()).unwrap_or_else(|| "(not shown)".to_owned()))
        }
    }
}

/// The server and the database of an address, if it is clear where they begin. A password may contain a `?`.
fn without_account(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or(rest);
    let (account, place) = match authority.split_once('@') {
        Some((account, _)) => ("(not shown)@", &rest[account.len() + 1..]),
        None => ("", rest),
    };
    let place = place.split('?').next().unwrap_or_default();
    (!place.contains('@')).then(|| format!("{scheme}://{account}{place}"))
}

#[cfg(test)]
mod tests {
    use daemon::{DatabaseUrl, Home};

    use super::*;

    #[test]
    fn of_an_address_nothing_is_shown_that_may_be_a_password() {
        let cases = [
            ("postgres://db/work?password=x@y", Some("postgres://db/work")),
            (
                "postgres://me:a?b@db/work",
                Some("postgres://(not shown)@db/work"),
            ),
            ("postgres://me:a@b@db/work", None),
            ("postgres://me:a/b@db/work", None),
            ("host=db password=x", None),
        ];
        for (url, expected) in cases {
            assert_eq!(without_account(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn the_command_line_goes_before_the_environment_and_secrets_are_not_shown() {
        let home = Home {
            runtime: "/r".into(),
            state: "/s".into(),
        };
        let mut options = Options::new(home);
        options.database = Database::Postgres(DatabaseUrl::new(String::new()));
        let arguments =
            ["tidelock", "serve", "--listen=127.0.0.1:1", "--", "--token-file"].map(OsString::from);
        let variable = |name: &str| match name {
            "TIDELOCK_LISTEN" => Some("127.0.0.1:2".into()),
            "TIDELOCK_TOKEN_FILE" => Some("/t".into()),
            "TIDELOCK_DATABASE_URL" => Some("postgres://me:secret@db/work?password=other".into()),
            "TIDELOCK_LOG" => Some(OsString::new()),
            _ => None,
        };
        let around = Surroundings {
            arguments: &arguments,
            variable: &variable,
        };
        let found: Vec<_> = of(&options, &around)
            .into_iter()
            .filter(|setting| setting.source != SettingSource::Default)
            .map(|setting| (setting.key, setting.value, setting.source))
            .collect();
        let by = |variable: &str| SettingSource::Environment {
            variable: variable.to_owned(),
        };
        let option = "--listen".to_owned();
        assert_eq!(
            found,
            [
                (
                    "listen".to_owned(),
                    json!("127.0.0.1:7180"),
                    SettingSource::CommandLine { option }
                ),
                (
                    "token_file".to_owned(),
                    json!("/s/token"),
                    by("TIDELOCK_TOKEN_FILE")
                ),
                (
                    "database".to_owned(),
                    json!("postgres://(not shown)@db/work"),
                    by("TIDELOCK_DATABASE_URL")
                ),
            ]
        );
    }
}
