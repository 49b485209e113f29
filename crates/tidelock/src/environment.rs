//! The variables that this program knows: for its help, for `tidelock doctor` and for the reference.

use std::collections::BTreeMap;

use protocol::SEARCH_VARIABLES;

/// Where programs are for the caller, such as in a virtual environment that was activated after the daemon was started.
pub(crate) fn search_variables() -> BTreeMap<String, String> {
    let set = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    SEARCH_VARIABLES.iter().filter_map(set).collect()
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// In a few words, for `--help`.
    pub(crate) short: &'static str,
    /// What the reference says besides.
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
    /// Users do, and the help names it.
    ForUsers,
    /// Users do, and the reference is enough for it.
    ForReaders,
    /// We do, for the programs that we start.
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

/// All of them.
pub(crate) const VARIABLES: &[Variable] = &[
    for_users(
        "TIDELOCK_HOME",
        "one directory for everything, in place of the XDG directories",
        "It has `run/`, `state/` and `config.toml` in it. An absolute path.",
    ),
    for_users(
        "TIDELOCK_LISTEN",
        "the address for a daemon that is started, such as 127.0.0.1:0",
        "Port 0 means any free one.",
    ),
    for_users("TIDELOCK_TOKEN_FILE", "the file with the bearer token", ""),
    for_users(
        "TIDELOCK_LOG",
        "what the daemon logs, such as debug or daemon=debug",
        "A level, or targets with levels, with commas between them.",
    ),
    for_users(
        "TIDELOCK_ACTOR",
        "who you are, as it stands beside what you change; your user name if not set",
        "",
    ),
    for_users(
        "TIDELOCK_DATABASE_URL",
        "the PostgreSQL database to keep the log in, in place of a file",
        "Such as `postgres://me:secret@db/work`. Several daemons can share one. No job, agent, check or language server gets it.",
    ),
    for_readers(
        "TIDELOCK_MACHINE",
        "what this machine is called on a log that several share",
        "It goes before `machine.name`. The name of the host if neither is set.",
    ),
    for_users(
        "OPENAI_API_KEY",
        "the key for the agent `model` of a daemon that is started",
        "Another variable can be named with `model.key_env`.",
    ),
    for_users(
        "OPENAI_BASE_URL",
        "where that model is, in place of the usual address",
        "`model.base_url` and `TIDELOCK_MODEL_BASE_URL` go before it.",
    ),
    for_users(
        "TIDELOCK_MODEL",
        "which model it is",
        "It goes before `model.model`.",
    ),
    for_readers(
        "TIDELOCK_MODEL_BASE_URL",
        "where that model is, for Tidelock alone",
        "It goes before `model.base_url`.",
    ),
    for_users(
        "GIT_PAGER",
        "what `tidelock plan diff` is read with on a terminal",
        "`less` if neither it nor `PAGER` is set, nothing if it is empty or `cat`.",
    ),
    for_readers("PAGER", "the same, if `GIT_PAGER` is not set", ""),
    for_users("NO_COLOR", "no colours", ""),
    for_readers(
        "TIDELOCK_TOKEN",
        "the bearer token itself, for clients that `tidelock join --http` has set up",
        "They read it; this program does not.",
    ),
    for_readers(
        "XDG_RUNTIME_DIR",
        "the socket and the locks are in `tidelock/` below it",
        "In `/tmp/tidelock-UID` if it is not set. `TIDELOCK_HOME` goes before it.",
    ),
    for_readers(
        "XDG_STATE_HOME",
        "the token and the log are in `tidelock/` below it",
        "In `~/.local/state/tidelock` if it is not set. `TIDELOCK_HOME` goes before it.",
    ),
    for_readers(
        "XDG_CONFIG_HOME",
        "`config.toml` and `lsp.json` are in `tidelock/` below it",
        "In `~/.config/tidelock` if it is not set. `TIDELOCK_HOME` goes before it.",
    ),
    set_by_us("TIDELOCK_PLAN", "the plan, for commands that run in its sandbox"),
    set_by_us(
        "TIDELOCK_PROCESS",
        "a mark by which the daemon knows the processes that are its own",
    ),
];

/// Begins every variable that is for this program alone.
const PREFIX: &str = "TIDELOCK_";
/// Begin those that only the tests and the measurements of this project know.
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

/// The variables among these that look as if they were for this program and are not, each with the one that was
/// probably meant.
pub(crate) fn unknown(names: impl Iterator<Item = String>) -> Vec<(String, Option<&'static str>)> {
    let mut found: Vec<_> = names
        .filter(|name| name.starts_with(PREFIX))
        .filter(|name| !OF_TESTS.iter().any(|known| name.starts_with(known)))
        .filter(|name| VARIABLES.iter().all(|known| known.name != name))
        .map(|name| {
            // What all of them begin with says nothing about what was meant.
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

/// The part of the help that is about them.
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
