//! What is made for shells, for `man` and for systemd, tried with the real ones.

use std::fs;
use std::process::Command;

use crate::harness::{World, finish};
use crate::tools::require_tool;

#[test]
fn a_real_bash_completes_commands_options_and_words() {
    let Some(bash) = require_tool("bash") else { return };
    let world = World::new();
    let script = world.run(&["completions", "bash"]).expect(0).stdout;
    let file = world.path().join("completions.bash");
    fs::write(&file, script).unwrap();
    for (line, expected) in [
        ("tidelock sta", "status"),
        ("tidelock plan ap", "apply"),
        ("tidelock plan apply --dry", "--dry-run"),
        ("tidelock breaker force model/api op", "open"),
        ("tidelock completions fi", "fish"),
        ("tidelock config c", "check"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words.len() - 1, words[words.len() - 2]);
        let ask = format!(
            "source {}; COMP_WORDS=({line}); COMP_CWORD={last}; _tidelock tidelock '{}' '{before}'; echo \"${{COMPREPLY[*]}}\"",
            file.display(),
            words[last]
        );
        let mut command = Command::new(&bash);
        command.args(["--norc", "-c", &ask]);
        let outcome = finish(command).expect(0);
        assert_eq!(
            (outcome.stdout.trim(), outcome.stderr.as_str()),
            (expected, ""),
            "{line}"
        );
    }
}

#[test]
fn other_shells_get_a_script_and_no_home_is_needed() {
    let world = World::new();
    for (shell, beginning) in [("zsh", "#compdef tidelock"), ("fish", "# Print an optspec")] {
        let mut command = world.command(&["completions", shell]);
        command.env_remove("TIDELOCK_HOME").env_remove("HOME");
        let script = finish(command).expect(0).stdout;
        assert!(script.starts_with(beginning), "{shell}: {}", &script[..80]);
    }
}

#[test]
fn there_is_a_manual_page_for_every_command_and_man_shows_it() {
    let world = World::new();
    let pages = world.path().join("man");
    let answer = world
        .run(&["man", "--out", pages.to_str().unwrap(), "--json"])
        .expect(0)
        .json();
    let files = answer["files"].as_array().unwrap();
    assert_eq!(files.len(), fs::read_dir(&pages).unwrap().count());
    assert!(files.contains(&pages.join("tidelock-plan-apply.1").to_str().unwrap().into()));
    let Some(man) = require_tool("man") else { return };
    for name in [
        "tidelock",
        "tidelock-plan",
        "tidelock-plan-apply",
        "tidelock-serve",
    ] {
        let mut command = Command::new(&man);
        command
            .args(["--warnings", "-E", "UTF-8", "-l"])
            .arg(pages.join(format!("{name}.1")))
            .env("MANPAGER", "cat")
            .env("MANWIDTH", "100")
            .env("MAN_KEEP_FORMATTING", "");
        let outcome = finish(command).expect(0);
        assert_eq!(outcome.stderr, "", "{name}");
        for section in ["NAME", "SYNOPSIS", "OPTIONS"] {
            assert!(outcome.stdout.contains(section), "{name}: {}", outcome.stdout);
        }
    }
}

#[test]
fn systemd_understands_the_unit_where_there_is_a_systemd() {
    // Not a skip where it is missing: many machines that build this have none, and want none.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let analyze = std::env::split_paths(&path).map(|directory| directory.join("systemd-analyze"));
    let Some(analyze) = analyze.into_iter().find(|file| file.is_file()) else {
        return;
    };
    let world = World::new();
    let unit = include_str!("../../../../docs/tidelock.service");
    let file = world.path().join("tidelock.service");
    let program = crate::harness::program();
    let start = "ExecStart=%h/.local/bin/tidelock serve";
    assert!(unit.contains(start));
    let ours = format!("ExecStart={} serve", program.display());
    fs::write(&file, unit.replace(start, &ours)).unwrap();
    let mut command = Command::new(analyze);
    command
        .args(["verify", "--user"])
        .arg(&file)
        .env("XDG_RUNTIME_DIR", world.path());
    let outcome = finish(command);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}
