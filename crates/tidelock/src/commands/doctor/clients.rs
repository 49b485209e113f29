//! The agents and editors that Tidelock was joined to: whether their entries are still right. None of them is
//! started; of the programs in their configurations, only this one is run.

use std::path::Path;

use serde_json::Value;

use super::Check;
use super::mcp_answer;
use crate::cli::JoinScope;
use crate::client::Client;
use crate::commands::join::clients::{CLIENTS, Client as Joining};
use crate::commands::join::look;
use crate::commands::join::surroundings::Surroundings;
use crate::error::chain;

const ID: &str = "mcp";

pub(super) fn check(client: &Client) -> Vec<Check> {
    let variable = |name: &str| std::env::var_os(name);
    let surroundings = match Surroundings::look(&variable) {
        Ok(surroundings) => surroundings,
        Err(error) => {
            return vec![Check::warning(
                ID,
                chain(&error),
                "change to a directory that exists",
            )];
        }
    };
    let status = client.get::<protocol::Status>("/v1/status").ok();
    let address = status.as_ref().map(|status| status.address.as_str());
    let mut checks: Vec<Check> = CLIENTS
        .iter()
        .flat_map(|joining| of_client(joining, &surroundings, address))
        .collect();
    // Asking would start a daemon, and a doctor changes nothing.
    if status.is_some() {
        checks.push(answer());
    }
    checks
}

/// The check for one client: `None` if it is neither installed nor joined.
fn of_client(joining: &Joining, surroundings: &Surroundings<'_>, address: Option<&str>) -> Vec<Check> {
    let mut checks = Vec::new();
    for scope in [JoinScope::Project, JoinScope::User] {
        match look(joining, scope, surroundings) {
            Ok(Some((path, entry))) => checks.push(judge(joining, &path, &entry, surroundings, address)),
            Ok(None) => {}
            Err(error) => {
                let advice = "fix the file; its own program can't read it either";
                checks.push(Check::warning(joining.check, chain(&error), advice));
            }
        }
    }
    if checks.is_empty()
        && let Some(trace) = surroundings.trace(joining)
    {
        let (title, word, trace) = (joining.title, joining.word, trace.display());
        let detail =
            format!("{title} was found ({trace}) but isn't joined; `tidelock join {word}` shows how");
        checks.push(Check::ok(joining.check, detail));
    }
    checks
}

fn judge(
    joining: &Joining,
    path: &Path,
    entry: &Value,
    surroundings: &Surroundings<'_>,
    address: Option<&str>,
) -> Check {
    let (title, path) = (joining.title, path.display());
    let joined = format!("{title} is joined in {path}");
    let again = format!(
        "check it with `tidelock join {}`; --write --replace rewrites it",
        joining.word
    );
    let warning =
        |what: String| Check::warning(joining.check, format!("{joined}, but {what}"), again.as_str());
    match (EntryTarget::of(entry), address) {
        (EntryTarget::Nothing, _) => warning("the entry has neither a command nor an address".to_owned()),
        (EntryTarget::Address(url), Some(address)) if url != format!("http://{address}/mcp") => {
            warning(format!("the daemon is at http://{address}/mcp, not at {url}"))
        }
        (EntryTarget::Address(url), _) => Check::ok(joining.check, format!("{joined}, over {url}")),
        (EntryTarget::Command(command), _) => match surroundings.program_of(command) {
            None => warning(format!("its command `{}` doesn't exist", command.escape_debug())),
            Some(program) if !surroundings.is_this(&program) => warning(format!(
                "it starts {}, which is a different program",
                program.display()
            )),
            Some(_) => Check::ok(joining.check, joined),
        },
    }
}

/// How a client is configured to reach us.
#[derive(Debug, PartialEq, Eq)]
enum EntryTarget<'a> {
    Command(&'a str),
    Address(&'a str),
    Nothing,
}

impl EntryTarget<'_> {
    /// Every client has its own key for it.
    fn of(entry: &Value) -> EntryTarget<'_> {
        let command = ["command", "cmd"].iter().find_map(|name| entry.get(name));
        let word = command.and_then(|command| command.as_str().or_else(|| command.get(0)?.as_str()));
        let url = || {
            ["url", "httpUrl", "serverUrl", "uri"]
                .iter()
                .find_map(|name| entry.get(name)?.as_str())
        };
        match (word, url()) {
            (Some(command), _) => EntryTarget::Command(command),
            (None, Some(url)) => EntryTarget::Address(url),
            (None, None) => EntryTarget::Nothing,
        }
    }
}

fn answer() -> Check {
    let advice = "run `tidelock mcp < /dev/null` to see what it says, or check the daemon's log";
    match mcp_answer::ask() {
        Ok(answer) => Check::ok(
            ID,
            format!(
                "`tidelock mcp` answers with {} tools (protocol {})",
                answer.tools, answer.protocol
            ),
        ),
        Err(error) => Check::failed(
            ID,
            format!("`tidelock mcp` does not answer: {}", chain(&error)),
            advice,
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_say_it_is_understood() {
        for (entry, expected) in [
            (
                json!({ "command": "a", "args": ["mcp"] }),
                EntryTarget::Command("a"),
            ),
            (json!({ "command": ["a", "mcp"] }), EntryTarget::Command("a")),
            (json!({ "cmd": "a" }), EntryTarget::Command("a")),
            (json!({ "url": "u" }), EntryTarget::Address("u")),
            (json!({ "httpUrl": "u" }), EntryTarget::Address("u")),
            (json!({ "serverUrl": "u" }), EntryTarget::Address("u")),
            (json!({ "uri": "u", "command": [] }), EntryTarget::Address("u")),
            (json!({ "command": 1 }), EntryTarget::Nothing),
            (json!("x"), EntryTarget::Nothing),
        ] {
            assert_eq!(EntryTarget::of(&entry), expected, "{entry}");
        }
    }
}
