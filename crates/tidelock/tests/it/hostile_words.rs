//! Text that means harm on a terminal: whatever a command shows, what an agent wrote never reaches the terminal as a command.

use crate::hostile_stage::{Hostile, MARK, SEQUENCES};
use crate::job_stage::{finish_bytes, on_a_terminal};

/// What of a text would be a command for a terminal, but for colours and the keys of a line, which are our own.
fn commands(text: &str) -> Vec<String> {
    // Progress is a line that we take away again.
    let text = text.replace("\r\u{1b}[K", "");
    let mut found = Vec::new();
    let mut rest = text.as_str();
    let is_command = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    while let Some(at) = rest.find(is_command) {
        rest = &rest[at..];
        let colour = rest.strip_prefix("\u{1b}[").and_then(|after| {
            let end = after.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
            after[end..].strip_prefix('m')
        });
        match colour {
            Some(after) => rest = after,
            None => {
                let shown: String = rest.chars().take(12).collect();
                found.push(shown.escape_debug().to_string());
                rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
            }
        }
    }
    found
}

/// Whether something in a text turns around how it is read.
fn is_turned(text: &str) -> bool {
    text.contains(|letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

/// Commands that give a text as it was written, so that it can be kept or piped on. On a terminal they are read as well, so
/// they have no commands for it; in which direction a script runs is the writer's business.
const AS_WRITTEN: [&str; 2] = ["logs", "export"];

#[test]
fn the_check_knows_a_command_from_a_colour() {
    assert_eq!(commands("a\u{1b}[1;31mb\u{1b}[0m\r\n\tc"), [] as [&str; 0]);
    for text in [
        "\u{1b}[2J",
        "\u{1b}]0;x\u{7}",
        "\u{9b}2J",
        "\u{8}",
        "\u{1b}c",
        "\u{1b}[31",
    ] {
        assert!(!commands(text).is_empty(), "{text:?}");
    }
    assert!(commands(SEQUENCES).len() > 10);
}

#[test]
fn no_command_passes_on_what_an_agent_tells_a_terminal_to_do() {
    let hostile = Hostile::new();
    let (plan, job, session) = (
        hostile.plan.as_str(),
        hostile.job.as_str(),
        hostile.session.as_str(),
    );
    let root = hostile.project.root.to_str().unwrap();
    let evil = "\u{1b}]0;evil\u{7}";
    let mut wrong = Vec::new();
    for (arguments, shows) in [
        (vec!["status"], false),
        (vec!["plan", "list"], true),
        (vec!["plan", "show", plan], true),
        (vec!["plan", "diff", plan], true),
        (vec!["plan", "changesets", plan], false),
        (vec!["plan", "history", plan], false),
        (vec!["plan", "apply", plan, "--dry-run"], true),
        (vec!["workspace", "list"], true),
        (vec!["job", "list"], true),
        (vec!["job", "show", job], true),
        (vec!["job", "logs", job], true),
        (vec!["session", "list"], true),
        (vec!["session", "show", session], true),
        (vec!["session", "attach", session], true),
        (vec!["session", "export", session], true),
        (vec!["session", "queue", session], false),
        (vec!["lsp", "list"], false),
        (vec!["lsp", "log", &hostile.server], true),
        (vec!["breaker", "list"], true),
        (vec!["ps"], false),
        (vec!["context", "--explain", "--budget", "2000", "taken"], true),
        // What was typed is said again in the answer.
        (vec!["plan", "show", evil], false),
        (vec!["job", "show", evil], false),
        (vec!["session", "show", evil], false),
        (vec!["breaker", "show", evil], false),
        (vec!["lsp", "hover", evil], false),
        (vec!["why", evil], false),
        (vec![evil], false),
    ] {
        let mut command = hostile.project.command(&arguments);
        command.env("PAGER", "cat").env("TERM", "xterm-256color");
        let (_, shown) = on_a_terminal(command);
        let found = commands(&shown);
        if !found.is_empty() {
            wrong.push(format!(
                "{arguments:?} on a terminal: {} such as {:?}",
                found.len(),
                &found[..found.len().min(4)]
            ));
        }
        if shows && !shown.contains(MARK) {
            let start: String = shown.chars().take(300).collect();
            wrong.push(format!("{arguments:?} does not show the text: {start:?}"));
        }
        let is_as_written = arguments.iter().any(|word| AS_WRITTEN.contains(word));
        if !is_as_written && is_turned(&shown) {
            wrong.push(format!("{arguments:?} turns around what is read"));
        }
        // Without a terminal, what is said about errors is read on one all the same.
        if is_as_written {
            continue;
        }
        let outcome = finish_bytes(&hostile.project.world, hostile.project.command(&arguments));
        let found = commands(&String::from_utf8_lossy(&outcome.stderr));
        if !found.is_empty() {
            wrong.push(format!("{arguments:?} on standard error: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "in {root:?}:\n{}", wrong.join("\n"));
}
