//! Code actions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    capabilities::Feature,
    edits::{self, Edit},
    error::{QueryError, Refusal},
    limits::{Listed, bounded},
    reader::{Reader, shape},
};

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum ActionEffect {
    Edit {
        edit: Edit,
    },
    /// A command of the server. It isn't run: only the server knows what it would do.
    Command {
        command: String,
    },
    /// The server didn't provide it.
    Unknown {
        /// The reason.
        reason: String,
    },
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CodeAction {
    pub title: String,
    /// For example `quickfix` or `refactor.extract`.
    pub kind: Option<String>,
    pub preferred: bool,
    /// Why it can't be done now.
    pub disabled: Option<String>,
    #[serde(flatten)]
    pub effect: ActionEffect,
    pub server: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAction {
    title: String,
    kind: Option<String>,
    #[serde(default)]
    is_preferred: bool,
    disabled: Option<WireDisabled>,
    edit: Option<Value>,
    command: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct WireDisabled {
    reason: String,
}

/// An action, perhaps with an edit that has to be requested.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    action: WireAction,
    /// The action as the server sent it, if it has to be resolved.
    pub(super) resolve: Option<Value>,
}

/// `(Command | CodeAction)[] | null`.
pub(super) fn read(reader: &mut Reader<'_>, answer: Value) -> Result<Listed<Pending>, QueryError> {
    let values = reader.items(answer, "result")?;
    let resolvable = reader.around.capabilities.offers(Feature::ResolveCodeAction);
    let mut pending = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let action: WireAction = reader.parse(value.clone(), || format!("result[{index}]"))?;
        // A bare command has its name where an action has an object.
        let is_action = !matches!(action.command, Some(Value::String(_)));
        let lacks_edit = action.edit.is_none() && action.command.is_none() && action.disabled.is_none();
        let resolve = (is_action && lacks_edit && resolvable).then_some(value);
        pending.push(Pending { action, resolve });
    }
    Ok(Listed::first(pending, reader.limits().code_actions))
}

/// Combines the actions with the resolved ones, in order.
pub(super) fn finish(
    reader: &mut Reader<'_>,
    pending: Listed<Pending>,
    resolved: Vec<Result<Value, Refusal>>,
) -> Result<Listed<CodeAction>, QueryError> {
    let mut resolved = resolved.into_iter();
    let mut number = 0;
    pending.try_map(|Pending { mut action, resolve }| {
        let mut reason = "the server said neither".to_owned();
        if resolve.is_some() {
            match resolved.next() {
                Some(Ok(value)) => {
                    action = reader.parse(value, || format!("result of resolving action {number}"))?;
                }
                Some(Err(refusal)) => reason = refusal.to_string(),
                None => reason = "the server was not asked".to_owned(),
            }
        }
        number += 1;
        code_action(reader, action, reason)
    })
}

fn code_action(
    reader: &mut Reader<'_>,
    action: WireAction,
    reason: String,
) -> Result<CodeAction, QueryError> {
    let effect = match (action.edit, action.command) {
        (Some(edit), _) if !edit.is_null() => match edits::read_workspace(reader, edit, "edit") {
            Ok(edit) => ActionEffect::Edit { edit },
            // An action that can't be shown doesn't hide the others.
            Err(error @ QueryError::Broken { .. }) => return Err(error),
            Err(error) => ActionEffect::Unknown {
                reason: error.to_string(),
            },
        },
        (_, Some(Value::String(command))) => ActionEffect::Command { command },
        (_, Some(Value::Object(command))) => match command.get("command") {
            Some(Value::String(command)) => ActionEffect::Command {
                command: command.clone(),
            },
            _ => return Err(reader.broken("command.command", "expected a string")),
        },
        (_, None | Some(Value::Null)) => ActionEffect::Unknown { reason },
        (_, Some(other)) => {
            let problem = format!("expected a command, found {}", shape(&other));
            return Err(reader.broken("command", problem));
        }
    };
    Ok(CodeAction {
        title: bounded(action.title, reader.limits().text_bytes),
        kind: action.kind,
        preferred: action.is_preferred,
        disabled: action.disabled.map(|disabled| disabled.reason),
        effect,
        server: reader.around.server.to_owned(),
    })
}
