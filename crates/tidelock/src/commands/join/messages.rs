//! The messages of `tidelock join` about one client.

use serde_json::json;

use super::clients::TOKEN_VARIABLE;
use super::{ExistingEntry, JoinOutcome, Wish, shown};
use crate::cli::{JoinScope, JoinWay};
use crate::commands::shell::quoted;
use crate::context::Context;
use crate::output::Report;

pub(super) fn report(wish: &Wish, outcome: &JoinOutcome, context: &Context) -> Report {
    let (state, action, backup) = match outcome {
        JoinOutcome::Looked(ExistingEntry::Nothing) => ("not_joined", "none", None),
        JoinOutcome::Looked(ExistingEntry::Same) | JoinOutcome::AlreadyThere => ("joined", "none", None),
        JoinOutcome::Looked(ExistingEntry::Different(_)) => ("different", "none", None),
        JoinOutcome::Wrote { backup } => ("joined", "written", backup.as_deref()),
        JoinOutcome::Removed { backup } => ("not_joined", "removed", backup.as_deref()),
        JoinOutcome::NotThere => ("not_joined", "none", None),
    };
    let scope = match wish.scope {
        JoinScope::User => "user",
        JoinScope::Project => "project",
    };
    let value = json!({
        "id": wish.client.word,
        "state": state,
        "action": action,
        "title": wish.client.title,
        "scope": scope,
        "name": wish.name,
        "path": shown(&wish.path),
        "backup": backup.map(shown),
        "entry": wish.entry.value(),
        "text": wish.piece(),
        "command": own_command(wish),
        "token_variable": (wish.way == JoinWay::Http).then_some(TOKEN_VARIABLE),
    });
    let notes = match (outcome, wish.way) {
        (JoinOutcome::Removed { .. } | JoinOutcome::NotThere, _) => Vec::new(),
        (_, JoinWay::Http) => vec![format!(
            "{} reads the token from its environment: export {TOKEN_VARIABLE}=\"$(cat '{}')\"",
            wish.client.title,
            context.token_file.display()
        )],
        (_, JoinWay::Mcp | JoinWay::McpAllowed | JoinWay::Acp) => Vec::new(),
    };
    Report::success(value, text(wish, outcome)).with_notes(notes)
}

fn text(wish: &Wish, outcome: &JoinOutcome) -> String {
    let (title, path, name) = (wish.client.title, wish.path.display(), &wish.name);
    let kept = |backup: &Option<std::path::PathBuf>| match backup {
        Some(backup) => format!("The previous version is saved in {}.\n", backup.display()),
        None => String::new(),
    };
    match outcome {
        JoinOutcome::Looked(found) => looked(wish, found),
        JoinOutcome::AlreadyThere => format!("{title} is already joined: `{name}` is in {path}.\n"),
        JoinOutcome::Wrote { backup } => {
            format!(
                "{title} is joined: `{name}` is in {path}.\n{}Restart it to load the tools.\n",
                kept(backup)
            )
        }
        JoinOutcome::Removed { backup } => format!("`{name}` is no longer in {path}.\n{}", kept(backup)),
        JoinOutcome::NotThere => format!("There is no `{name}` in {path}.\n"),
    }
}

fn looked(wish: &Wish, found: &ExistingEntry) -> String {
    let (title, path, piece) = (wish.client.title, wish.path.display(), wish.piece());
    let mut text = match found {
        ExistingEntry::Same => return format!("{title} is joined. {path} has:\n\n{piece}"),
        ExistingEntry::Nothing => format!("{title} is not joined. Add this to {path}:\n\n{piece}\n"),
        ExistingEntry::Different(there) => format!(
            "{title} has a different entry `{}` in {path}:\n\n{there:#}\n\nThe new entry would be:\n\n{piece}\n",
            wish.name
        ),
    };
    let options = match wish.way {
        JoinWay::Mcp => "",
        JoinWay::McpAllowed => " --allow-apply",
        JoinWay::Http => " --http",
        JoinWay::Acp => " --acp",
    };
    let scope = match wish.scope {
        JoinScope::User => "",
        JoinScope::Project => " --scope project",
    };
    let name = match wish.name.as_str() {
        super::USUAL_NAME => String::new(),
        name => format!(" --name {name}"),
    };
    let replace = match found {
        ExistingEntry::Different(_) => " --replace",
        ExistingEntry::Nothing | ExistingEntry::Same => "",
    };
    let word = wish.client.word;
    text.push_str(&format!(
        "To do it, run: tidelock join {word} --write{options}{scope}{name}{replace}\n"
    ));
    if let Some(command) = own_command(wish) {
        text.push_str(&format!("Or run: {command}\n"));
    }
    text
}

/// The client's own command for this, if it has one.
fn own_command(wish: &Wish) -> Option<String> {
    let [user, project] = wish.client.own?;
    let begin = match wish.scope {
        JoinScope::User => user,
        JoinScope::Project => project,
    };
    let entry = wish.entry.value();
    let word = |value: &serde_json::Value| quoted(value.as_str().unwrap_or_default());
    let command = word(entry.get("command")?);
    let arguments: Vec<String> = entry["args"].as_array().into_iter().flatten().map(word).collect();
    let variables: String = entry["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            format!(
                " --env {}",
                quoted(&format!("{name}={}", value.as_str().unwrap_or_default()))
            )
        })
        .collect();
    Some(format!(
        "{begin} {}{variables} -- {command} {}",
        wish.name,
        arguments.join(" ")
    ))
}
