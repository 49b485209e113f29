//! Decides what an agent may do: by a rule, or by asking the user.

use std::pin::pin;

use kernel::Scope;
use protocol::{PermissionAnswer, PermissionOption, PermissionRule, RulePermission};
use serde_json::{Value, json};

use super::wire::{PermissionKind, RequestPermission, RpcError, ToolUpdate};
use crate::asking::{Asker, Question};
use crate::permissions::decide;

/// The most characters of a question to show.
const SUBJECT_LIMIT_CHARS: usize = 500;

/// When an answer is no longer needed.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Cancelled when the turn is over or should stop.
    pub(super) over: Scope,
    /// Cancelled when the turn should stop.
    pub(super) stopped: Scope,
}

/// An agent's question, once it is clear which tool call it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Wish {
    pub(super) item: Option<u64>,
    /// The tool, as rules name it.
    pub(super) tool: String,
    /// What it's about to do, in one line.
    pub(super) subject: String,
}

/// Answers an agent's question. Without a matching rule it asks the user: the agent wouldn't ask otherwise.
pub(super) async fn answer(
    asker: &Asker,
    wish: Wish,
    request: &RequestPermission,
    ends: &Ends,
) -> Result<Value, RpcError> {
    let answer = match rule_for(asker, &wish, RulePermission::Ask).await {
        RulePermission::Allow => PermissionAnswer::Allow,
        RulePermission::Deny => PermissionAnswer::Deny,
        RulePermission::Ask => match ask(asker, wish, options(request), ends).await {
            Some(answer) => answer,
            None => return Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        },
    };
    Ok(outcome(request, answer))
}

/// Whether the agent may do something through us without asking. Without a matching rule it may, since it happens
/// in the sandbox.
pub(super) async fn allows(asker: &Asker, wish: Wish, ends: &Ends) -> Result<(), RpcError> {
    let tool = wish.tool.clone();
    let denied = || RpcError::failed(format!("`{tool}` is not allowed here"));
    match rule_for(asker, &wish, RulePermission::Allow).await {
        RulePermission::Allow => Ok(()),
        RulePermission::Deny => Err(denied()),
        RulePermission::Ask => match ask(asker, wish, Vec::new(), ends).await {
            Some(PermissionAnswer::Allow | PermissionAnswer::AllowAlways) => Ok(()),
            Some(PermissionAnswer::Deny) | None => Err(denied()),
        },
    }
}

async fn rule_for(asker: &Asker, wish: &Wish, otherwise: RulePermission) -> RulePermission {
    let mut rules = asker.rules().await;
    rules.push(PermissionRule {
        tool: "*".to_owned(),
        pattern: None,
        permission: otherwise,
    });
    decide(&rules, &wish.tool, &wish.subject)
}

/// Asks the user; `None` if the turn is over first.
async fn ask(
    asker: &Asker,
    wish: Wish,
    options: Vec<PermissionOption>,
    ends: &Ends,
) -> Option<PermissionAnswer> {
    let question = Question {
        item: wish.item,
        tool: wish.tool,
        subject: wish.subject,
        options,
    };
    let mut asking = pin!(asker.ask(question));
    tokio::select! {
        biased;
        answered = &mut asking => match ends.stopped.is_cancelled() {
            false => Some(answered.ok()?.0),
            true => None,
        },
        _ = ends.over.wait() => {
            // When a turn is stopped, its open questions are denied without an actor, and that is recorded
            // too.
            if ends.stopped.is_cancelled() {
                asking.await.ok();
            }
            None
        }
    }
}

fn options(request: &RequestPermission) -> Vec<PermissionOption> {
    let options = request.options.iter().map(|choice| PermissionOption {
        label: choice.name.clone(),
        answer: meaning(choice.kind),
        id: choice.option_id.clone(),
    });
    options.collect()
}

fn meaning(kind: PermissionKind) -> PermissionAnswer {
    match kind {
        PermissionKind::AllowOnce => PermissionAnswer::Allow,
        PermissionKind::AllowAlways => PermissionAnswer::AllowAlways,
        PermissionKind::RejectOnce | PermissionKind::RejectAlways | PermissionKind::Other => {
            PermissionAnswer::Deny
        }
    }
}

/// The agent's option that comes closest to an answer. It never allows more than the answer did, and if no option
/// denies, none is chosen.
fn outcome(request: &RequestPermission, answer: PermissionAnswer) -> Value {
    use PermissionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let wanted: &[PermissionKind] = match answer {
        PermissionAnswer::Allow => &[AllowOnce],
        PermissionAnswer::AllowAlways => &[AllowAlways, AllowOnce],
        PermissionAnswer::Deny => &[RejectOnce, RejectAlways],
    };
    let chosen = wanted
        .iter()
        .find_map(|kind| request.options.iter().find(|choice| choice.kind == *kind));
    match chosen {
        Some(choice) => json!({ "outcome": { "outcome": "selected", "optionId": choice.option_id } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

/// The tool of a call, as rules name it.
pub(super) fn tool_of(kind: Option<&str>) -> &str {
    match kind {
        Some("execute") => "shell",
        Some("other") | None => "tool",
        Some(kind) => kind,
    }
}

/// What a call is about to do, in one line: the command, the path, or the agent's title for it.
pub(super) fn subject_of(tool: &str, title: &str, update: &ToolUpdate) -> String {
    let input = |name: &str| update.raw_input.as_ref()?.get(name)?.as_str();
    let command = input("command").filter(|_| tool == "shell");
    let path = update.locations.as_ref().and_then(|locations| locations.first());
    let path = path
        .map(|location| location.path.as_str())
        .filter(|_| matches!(tool, "edit" | "delete" | "read"));
    let subject = command.or(path).unwrap_or(title);
    subject.chars().take(SUBJECT_LIMIT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kinds: &[&str]) -> RequestPermission {
        let options: Vec<_> = kinds
            .iter()
            .map(|kind| json!({ "optionId": format!("id-{kind}"), "name": kind, "kind": kind }))
            .collect();
        serde_json::from_value(json!({ "toolCall": { "toolCallId": "1" }, "options": options })).unwrap()
    }

    #[test]
    fn an_answer_never_allows_more_than_it_says() {
        let check = |kinds: &[&str], answer, expected: Option<&str>| {
            let expected = match expected {
                Some(id) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
                None => json!({ "outcome": { "outcome": "cancelled" } }),
            };
            assert_eq!(outcome(&request(kinds), answer), expected, "{kinds:?} {answer:?}");
        };
        let all = ["allow_always", "allow_once", "reject_always", "reject_once"];
        check(&all, PermissionAnswer::Allow, Some("id-allow_once"));
        check(&all, PermissionAnswer::AllowAlways, Some("id-allow_always"));
        check(&all, PermissionAnswer::Deny, Some("id-reject_once"));
        check(
            &["allow_once", "reject_always"],
            PermissionAnswer::AllowAlways,
            Some("id-allow_once"),
        );
        check(
            &["allow_once", "reject_always"],
            PermissionAnswer::Deny,
            Some("id-reject_always"),
        );
        check(&["allow_always"], PermissionAnswer::Allow, None);
        check(&["allow_once", "whatever"], PermissionAnswer::Deny, None);
    }

    #[test]
    fn a_call_is_named_as_rules_name_it() {
        let check = |kind: Option<&str>, update: Value, expected: (&str, &str)| {
            let update: ToolUpdate = serde_json::from_value(update).unwrap();
            let tool = tool_of(kind);
            assert_eq!((tool, subject_of(tool, "the title", &update).as_str()), expected);
        };
        check(None, json!({ "toolCallId": "1" }), ("tool", "the title"));
        check(
            Some("execute"),
            json!({ "toolCallId": "1", "rawInput": { "command": "rm -r a" } }),
            ("shell", "rm -r a"),
        );
        check(
            Some("edit"),
            json!({ "toolCallId": "1", "locations": [{ "path": "/w/a" }] }),
            ("edit", "/w/a"),
        );
        check(
            Some("fetch"),
            json!({ "toolCallId": "1", "locations": [{ "path": "/w/a" }] }),
            ("fetch", "the title"),
        );
    }
}
