//! Answers an agent's questions.

use protocol::{AnswerPermission, PermissionAnswer, PermissionAnswered, Session};

use super::{path, post};
use crate::cli::AnswerArguments;
use crate::client::{Client, path_segment};
use crate::commands::ids::{PERMISSION, SESSION};
use crate::error::{Exit, Failure};
use crate::output::Report;
use crate::printable::printable;
use crate::start::Repeat;

pub(super) fn run(arguments: &AnswerArguments, client: &Client) -> Result<Report, Failure> {
    let id = SESSION.find(&arguments.session.session, client)?;
    let session: Session = printable(&client.fetch(&path(&id, ""))?)?;
    let permission = find_permission(arguments.permission.as_deref(), &session)?;
    let wanted = PermissionAnswer::from(arguments.answer);
    let path = permission_path(&id, &permission);
    let request = AnswerPermission { answer: wanted };
    // The first answer counts, so a retry changes nothing.
    let answer = post(&path, &request, Repeat::Harmless, client)?;
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

/// Finds the question among the open ones; the only one if none is named.
fn find_permission(wanted: Option<&str>, session: &Session) -> Result<String, Failure> {
    let open = session.active.iter().flat_map(|active| &active.asking);
    let ids = open.map(|question| question.permission.clone());
    match wanted {
        // It may already be answered, which the daemon reports.
        Some(wanted) if PERMISSION.is_whole(wanted) => Ok(wanted.to_owned()),
        Some(wanted) => PERMISSION.pick(wanted, ids.collect()),
        None => {
            let mut ids: Vec<String> = ids.collect();
            match ids.len() {
                1 => Ok(ids.remove(0)),
                0 => {
                    let message = format!("{} has no open question", session.id);
                    Err(
                        Failure::new(Exit::Refused, "permission_not_found", message).advise(
                            "someone else may have answered, or it timed out; see `tidelock session show`",
                        ),
                    )
                }
                count => {
                    let message = format!("{} has {count} open questions: {}", session.id, ids.join(", "));
                    Err(Failure::new(Exit::Usage, "permission_ambiguous", message)
                        .advise("name the one to answer; `tidelock session show` shows them"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{asking, session};
    use super::*;

    #[test]
    fn a_question_needs_a_name_only_if_there_are_several() {
        let one = "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
        let two = "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TY";
        for (open, wanted, expected) in [
            (&[][..], None, Err("permission_not_found")),
            (&[one][..], None, Ok(one)),
            (&[one, two][..], None, Err("permission_ambiguous")),
            (&[one, two][..], Some("S1TY"), Ok(two)),
            (&[one, two][..], Some("01JC"), Err("permission_ambiguous")),
            (&[one][..], Some("S1TY"), Err("permission_not_found")),
            // The daemon knows what was answered.
            (&[][..], Some(two), Ok(two)),
        ] {
            let found = find_permission(wanted, &asking(session(), open));
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(found, expected, "{wanted:?} of {open:?}");
        }
    }
}
