//! `docs/reference/commands.md` and `docs/reference/configuration.md`, made from the arguments and the tables themselves.
//!
//! The files are committed, and these tests fail when they are not what is made here; `cargo xtask docs` writes them.

use std::fmt::Write as _;
use std::{env, fs, path::Path};

use clap::{Arg, Command, CommandFactory};

use super::{Cli, EXIT_CODES};
use crate::environment::{self, VARIABLES};

const GENERATED: &str = "This page is generated from the program by `cargo xtask docs`; don't edit it.";

fn compare(file: &str, current: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(file);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, current).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/reference/{file} is not what the program says; run `cargo xtask docs` and look at `git diff`"
    );
}

#[test]
fn the_committed_reference_of_the_commands_is_current() {
    // The width of the terminal must not matter.
    let mut root = Cli::command().disable_help_subcommand(true).term_width(100);
    root.build();
    let mut page = format!(
        "# Commands\n\n{GENERATED} [The command line](../cli.md) describes what all commands have in common: what \
         they print, how to name things, and what Ctrl-C does.\n\n"
    );
    let mut entries = Vec::new();
    collect(&root, &mut entries);
    for command in &entries {
        let depth = name_of(command).split(' ').count();
        if depth <= 1 {
            continue;
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let indent = "  ".repeat(depth - 2);
        let name = name_of(command);
        writeln!(page, "{indent}- [`{name}`](#{}): {about}", anchor(name)).unwrap();
    }
    page.push_str("\n## For every command\n\n");
    page.push_str(&arguments(&root, Globals::Shown));
    let (codes, rest) = EXIT_CODES.split_once("\n`tidelock exec`").unwrap();
    page.push_str("## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for line in codes.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").unwrap();
        writeln!(page, "| {code} | {} |", cell(meaning)).unwrap();
    }
    writeln!(page, "\n`tidelock exec`{rest}\n").unwrap();
    page.push_str(
        "Environment variables are listed in [the configuration reference](configuration.md#environment).\n",
    );
    for command in entries.iter().skip(1) {
        page.push_str(&section(command));
    }
    compare("commands.md", &page);
}

fn collect<'a>(command: &'a Command, entries: &mut Vec<&'a Command>) {
    entries.push(command);
    for below in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        collect(below, entries);
    }
}

fn name_of(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

fn section(command: &Command) -> String {
    let name = name_of(command);
    let depth = name.split(' ').count();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("\n{} {name}\n\n{about}.\n", "#".repeat(depth.min(4)));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    writeln!(text, "\n```text\n{usage}\n```\n").unwrap();
    text.push_str(&arguments(command, Globals::LeftOut));
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (words, examples) = match after.split_once("Examples:\n") {
        Some((words, examples)) => (words.trim(), examples),
        None => (after.trim(), ""),
    };
    if !words.is_empty() {
        writeln!(text, "{words}\n").unwrap();
    }
    if !examples.is_empty() {
        let lines: Vec<&str> = examples
            .lines()
            .map(|line| line.strip_prefix("  ").unwrap_or(line))
            .collect();
        writeln!(text, "```sh\n{}\n```", lines.join("\n").trim_end()).unwrap();
    }
    text
}

/// Whether options that every command has are shown.
#[derive(Clone, Copy, PartialEq)]
enum Globals {
    Shown,
    LeftOut,
}

fn arguments(command: &Command, globals: Globals) -> String {
    let shown = |argument: &&Arg| {
        let everywhere =
            argument.is_global_set() || ["help", "version"].contains(&argument.get_id().as_str());
        !argument.is_hide_set() && (globals == Globals::Shown || !everywhere)
    };
    let rows: Vec<String> = command.get_arguments().filter(shown).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("| argument | meaning |\n|---|---|\n{}\n", rows.concat())
}

fn row(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let takes_values = argument.get_action().takes_values();
    let values = values.join(" ");
    let name = match (argument.get_short(), argument.get_long()) {
        (None, None) => values.clone(),
        (Some(short), None) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
    };
    let is_positional = argument.is_positional();
    let name = match takes_values && !is_positional {
        true => format!("{name} {values}"),
        false => name,
    };
    let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| takes_values)
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), lower(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !choices.is_empty() {
        write!(meaning, ": {}", choices.join(", ")).unwrap();
    }
    let usual = argument.get_default_values();
    if takes_values && usual.iter().any(|value| !value.is_empty()) {
        let usual: Vec<String> = usual
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        write!(meaning, "; defaults to {}", usual.join(" ")).unwrap();
    }
    if let Some(variable) = argument.get_env() {
        write!(
            meaning,
            "; or `{}` in the environment",
            variable.to_string_lossy()
        )
        .unwrap();
    }
    format!("| `{}` | {} |\n", cell(name.trim()), cell(&meaning))
}

/// A sentence as a part of another one. What begins with a name, such as `Claude Code`, keeps its capital.
fn lower(text: &str) -> String {
    const NAMES: [&str; 9] = [
        "Claude", "Codex", "Cursor", "Gemini", "Goose", "Markdown", "Visual", "Windsurf", "Zed",
    ];
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if !NAMES.iter().any(|name| text.starts_with(name)) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[test]
fn the_committed_reference_of_the_configuration_is_current() {
    let mut page = format!(
        "# Configuration reference\n\n{GENERATED} [Configuration](../configuration.md) explains where the files are and \
         how they are used. `tidelock config` shows the values in effect on your machine and where they come from.\n\n\
         ## config.toml\n\nEvery key is optional. `NAME` stands for a name that you choose (for a strategy, the \
         name of an existing one), and `[]` for each element of a list.\n"
    );
    let mut last_section = "";
    for key in daemon::KEYS {
        let (section, _) = key.path.split_once('.').unwrap();
        if section != last_section {
            last_section = section;
            writeln!(
                page,
                "\n### {section}\n\n| key | type | default | meaning |\n|---|---|---|---|"
            )
            .unwrap();
        }
        let usual = match key.usual() {
            serde_json::Value::Null => String::new(),
            value => format!("`{value}`"),
        };
        let mut meaning = key.meaning.to_owned();
        if let Some(variable) = key.before_file {
            write!(meaning, " `{variable}` takes precedence.").unwrap();
        }
        if let Some(variable) = key.after_file {
            write!(meaning, " Defaults to `{variable}`.").unwrap();
        }
        let row = [format!("`{}`", key.path), key.kind.words(), usual, meaning];
        writeln!(page, "| {} |", row.map(|text| cell(&text)).join(" | ")).unwrap();
    }
    page.push_str("\n## Environment\n\n");
    for (kind, words) in [
        (
            environment::Kind::ForUsers,
            "Read by the command line, and by a daemon when it starts:",
        ),
        (environment::Kind::ForReaders, "Needed less often:"),
        (
            environment::Kind::SetByUs,
            "Set by Tidelock for the programs that it starts:",
        ),
    ] {
        writeln!(page, "{words}\n\n| variable | meaning |\n|---|---|").unwrap();
        for variable in VARIABLES.iter().filter(|variable| variable.kind == kind) {
            let mut meaning = variable.short.to_owned();
            if !variable.more.is_empty() {
                write!(meaning, ". {}", variable.more).unwrap();
            }
            writeln!(page, "| `{}` | {} |", variable.name, cell(&meaning)).unwrap();
        }
        page.push('\n');
    }
    page.push_str("`tidelock doctor` warns about unknown variables that begin with `TIDELOCK_`.\n\n");
    page.push_str("## Options of serve\n\nThey take precedence over the environment.\n\n");
    let mut root = Cli::command();
    root.build();
    let serve = root.find_subcommand("serve").unwrap();
    page.push_str(arguments(serve, Globals::LeftOut).trim_end());
    page.push('\n');
    compare("configuration.md", &page);
}

#[test]
fn the_variables_of_options_are_in_the_table() {
    let mut root = Cli::command();
    root.build();
    let mut entries = Vec::new();
    collect(&root, &mut entries);
    for command in entries {
        for variable in command.get_arguments().filter_map(Arg::get_env) {
            let variable = variable.to_str().unwrap();
            assert!(VARIABLES.iter().any(|known| known.name == variable), "{variable}");
        }
    }
}
