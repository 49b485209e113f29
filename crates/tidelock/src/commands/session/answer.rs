//! What an agent asks is answered.

use protocol::{AnswerPermission, PermissionAnswer, PermissionAnswered, Session};

use super::pick::find_permission;
use super::{find, get, path, post};
use crate::cli::AnswerArguments;
use crate::client::{Client, path_segment};
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::Failure;
use crate::output::Report;
use crate::start::Repeat;

pub(super) fn run(
    arguments: &AnswerArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let id = find(&arguments.session.session, context, client)?;
    let session: Session = printable(&get(&path(&id, ""), context, client)?)?;
    let permission = find_permission(arguments.permission.as_deref(), &session)?;
    let wanted = PermissionAnswer::from(arguments.answer);
    let path = permission_path(&id, &permission);
    let request = AnswerPermission { answer: wanted };
    // The first answer counts, so a second one changes nothing.
    let answer = post(&path, &request, Repeat::Harmless, (context, client))?;
    let answered: PermissionAnswered = printable(&answer)?;
    let text = format!("Answered {permission}: {}\n", answer_word(answered.answer));
    let mut notes = Vec::new();
    if answered.answer != wanted {
        notes.push(format!(
            "{} answered first; only the first answer counts",
            answered.by
        ));
    }
    Ok(Report::success(answer, text).with_notes(notes))
}

/// Where a question is answered.
pub(super) fn permission_path(session: &str, permission: &str) -> String {
    path(session, &format!("/permissions/{}", path_segment(permission)))
}

pub(super) fn answer_word(answer: PermissionAnswer) -> &'static str {
    match answer {
        PermissionAnswer::Allow => "allow",
        PermissionAnswer::AllowAlways => "always",
        PermissionAnswer::Deny => "deny",
    }
}
