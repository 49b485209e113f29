//! The environment variables that this program reads: for its help, for `tidelock doctor` and for the reference.

use std::collections::BTreeMap;

use protocol::SEARCH_VARIABLES;

/// Where the caller finds programs, such as in a virtual environment that was activated after the daemon was started.
pub(crate) fn search_variables() -> BTreeMap<String, String> {
    let set = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    SEARCH_VARIABLES.iter().filter_map(set).collect()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// In a few words, for `--help`.
    pub(crate) short: &'static str,
    /// Further details for the reference.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only the test that makes the reference reads it")
    )]
    pub(crate) more: &'static str,
    pub(crate) kind: Kind,
}

/// Who sets a variable, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Users set it, and the help lists it.
    ForUsers,
    /// Users set it, but only the reference lists it.
    ForReaders,
    /// We set it for the programs that we start.
    SetByUs,
}

const fn for_users(name: &'static str, short: &'static str, more: &'static str) -> Variable {
    Variable {
        name,
        short,
        more,
        kind: Kind::ForUsers,
    }
}

const fn for_readers(name: &'static str, short: &'static str, more: &'static str) -> Variable {
    Variable {
        name,
        short,
        more,
        kind: Kind::ForReaders,
    }
}

const fn set_by_us(name: &'static str, short: &'static str) -> Variable {
    Variable {
        name,
        short,
        more: "",
        kind: Kind::SetByUs,
    }
}

pub(crate) const VARIABLES: &[Variable] = &[
    for_users(
        "TIDELOCK_HOME",
        "one directory for everything, instead of the XDG directories",
        "It contains `run/`, `state/` and `config.toml`. Must be an absolute path.",
    ),
    for_users(
        "TIDELOCK_LISTEN",
        "the address that a new daemon listens on, such as 127.0.0.1:0",
        "Port 0 picks any free port.",
    ),
    for_users("TIDELOCK_TOKEN_FILE", "the file with the bearer token", ""),
    for_users(
        "TIDELOCK_LOG",
        "what the daemon logs, such as debug or daemon=debug",
        "A level, or a comma-separated list of targets with levels.",
    ),
    for_users(
        "TIDELOCK_ACTOR",
        "the name recorded with your changes; defaults to your user name",
        "",
    ),
    for_users(
        "TIDELOCK_DATABASE_URL",
        "the PostgreSQL database to keep the log in, instead of a file",
        "For example `postgres://me:secret@db/work`. Several daemons can share one. It is hidden from jobs, agents, checks and language servers.",
    ),
    for_readers(
        "TIDELOCK_MACHINE",
        "the name of this machine on a shared log",
        "Takes precedence over `machine.name`. Defaults to the host name.",
    ),
    for_users(
        "OPENAI_API_KEY",
        "the API key for the agent `model`, read when a daemon starts",
        "`model.key_env` names a different variable.",
    ),
    for_users(
        "OPENAI_BASE_URL",
        "the base URL of the model API, instead of the usual one",
        "`model.base_url` and `TIDELOCK_MODEL_BASE_URL` take precedence.",
    ),
    for_users(
        "TIDELOCK_MODEL",
        "the name of the model",
        "Takes precedence over `model.model`.",
    ),
    for_readers(
        "TIDELOCK_MODEL_BASE_URL",
        "the base URL of the model API, for Tidelock only",
        "Takes precedence over `model.base_url`.",
    ),
    for_users(
        "GIT_PAGER",
        "the pager for `tidelock plan diff` on a terminal",
        "Defaults to `PAGER`, then `less`. Set it to `cat` or an empty value for no pager.",
    ),
    for_readers("PAGER", "the pager, if `GIT_PAGER` is not set", ""),
    for_users("NO_COLOR", "turn off colors", ""),
    for_readers(
        "TIDELOCK_TOKEN",
        "the bearer token itself, for clients that `tidelock join --http` has set up",
        "Only those clients read it.",
    ),
    for_readers(
        "XDG_RUNTIME_DIR",
        "the directory that contains `tidelock/` with the socket and locks",
        "If unset, `/tmp/tidelock-UID` is used. `TIDELOCK_HOME` takes precedence.",
    ),
    for_readers(
        "XDG_STATE_HOME",
        "the directory that contains `tidelock/` with the token and log",
        "If unset, `~/.local/state/tidelock` is used. `TIDELOCK_HOME` takes precedence.",
    ),
    for_readers(
        "XDG_CONFIG_HOME",
        "the directory that contains `tidelock/` with `config.toml` and `lsp.json`",
        "If unset, `~/.config/tidelock` is used. `TIDELOCK_HOME` takes precedence.",
    ),
    set_by_us("TIDELOCK_PLAN", "the plan, for commands that run in its sandbox"),
    set_by_us(
        "TIDELOCK_PROCESS",
        "marks the processes that belong to the daemon",
    ),
];

/// The prefix of every variable that is only for this program.
const PREFIX: &str = "TIDELOCK_";
/// The prefixes of variables that only this project's tests and benchmarks use.
const OF_TESTS: [&str; 11] = [
    "TIDELOCK_TEST_",
    "TIDELOCK_BENCH_",
    "TIDELOCK_SKIP_REPORT",
    "TIDELOCK_KILL_AT",
    "TIDELOCK_CRASH_",
    "TIDELOCK_MACHINE_SECONDS",
    "TIDELOCK_ESCAPES_",
    "TIDELOCK_LSP_ROUNDS",
    "TIDELOCK_JOBS",
    "TIDELOCK_SESSIONS",
    "TIDELOCK_STORM_",
];

/// The variables that look like ours but are unknown, each with the one that was probably meant.
pub(crate) fn unknown(names: impl Iterator<Item = String>) -> Vec<(String, Option<&'static str>)> {
    let mut found: Vec<_> = names
        .filter(|name| name.starts_with(PREFIX))
        .filter(|name| !OF_TESTS.iter().any(|known| name.starts_with(known)))
        .filter(|name| VARIABLES.iter().all(|known| known.name != name))
        .map(|name| {
            // The common prefix says nothing about which one was meant.
            let ours = VARIABLES
                .iter()
                .filter_map(|known| known.name.strip_prefix(PREFIX));
            let meant = daemon::alike(&name[PREFIX.len()..], ours);
            let meant = VARIABLES
                .iter()
                .find(|known| meant.is_some() && known.name.strip_prefix(PREFIX) == meant);
            (name, meant.map(|known| known.name))
        })
        .collect();
    found.sort();
    found
}

/// The section of the help about them.
pub(crate) fn help() -> String {
    let named = || {
        VARIABLES
            .iter()
            .filter(|variable| variable.kind == Kind::ForUsers)
    };
    let width = named().map(|variable| variable.name.len()).max().unwrap_or(0);
    let lines = named().map(|variable| format!("  {:width$}  {}\n", variable.name, variable.short));
    format!("Environment:\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_found_with_what_was_meant() {
        let names = [
            "TIDELOCK_HOME",
            "TIDELOCK_MODLE",
            "TIDELOCK_SKIP_REPORT",
            "TIDELOCK_ZZZ",
            "HOME",
            "TIDELOCK_DATABASEURL",
        ];
        assert_eq!(
            unknown(names.map(str::to_owned).into_iter()),
            [
                ("TIDELOCK_DATABASEURL".to_owned(), Some("TIDELOCK_DATABASE_URL")),
                ("TIDELOCK_MODLE".to_owned(), Some("TIDELOCK_MODEL")),
                ("TIDELOCK_ZZZ".to_owned(), None),
            ]
        );
    }
}
