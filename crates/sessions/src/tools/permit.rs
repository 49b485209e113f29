//! Whether a call is allowed: checks the rules and, if they say so, asks the user.

use std::ops::ControlFlow;

use plans::{RelPath, WalkOver};
use protocol::{PermissionAnswer, PermissionRule, RulePermission};

use super::error::ToolError;
use super::running::{self, Patience};
use super::spec::ToolboxOptions;
use super::tool::About;
use crate::asking::Question;
use crate::permissions::{self, decide};

/// Checks the rules, and asks the user where they say so. Returns the rules as of that moment.
pub(super) async fn permit(
    options: &ToolboxOptions,
    tool: &'static str,
    about: &About,
    item: u64,
) -> Result<Vec<PermissionRule>, ToolError> {
    let mut rules = options.asker.rules().await;
    for subject in &about.subjects {
        match decide(&rules, tool, subject) {
            RulePermission::Allow => {}
            RulePermission::Deny => return Err(by_rule(tool, subject)),
            RulePermission::Ask => {
                ask(options, tool, subject, item).await?;
                // The answer may have become a rule.
                rules = options.asker.rules().await;
            }
        }
    }
    if can_refuse(&rules, tool) {
        for directory in &about.whole_trees {
            permit_below(options, tool, directory, &rules).await?;
        }
    }
    Ok(rules)
}

async fn ask(
    options: &ToolboxOptions,
    tool: &'static str,
    subject: &str,
    item: u64,
) -> Result<(), ToolError> {
    let question = Question {
        item: Some(item),
        tool: tool.to_owned(),
        subject: subject.to_owned(),
        options: Vec::new(),
    };
    // Without its stream the turn is over.
    let (answer, by) = options
        .asker
        .ask(question)
        .await
        .map_err(|_| ToolError::Cancelled)?;
    match answer {
        PermissionAnswer::Allow | PermissionAnswer::AllowAlways => Ok(()),
        PermissionAnswer::Deny if options.scope.is_cancelled() => Err(ToolError::Cancelled),
        PermissionAnswer::Deny if by.is_empty() => Err(ToolError::Denied(
            "nobody answered in time whether this may be done, so it was not done. Go on without it, or say what you \
             would need."
                .to_owned(),
        )),
        PermissionAnswer::Deny => Err(ToolError::Denied(
            "the user does not want this to be done. Do not try it again in another way; go on without it, or ask what \
             to do instead."
                .to_owned(),
        )),
    }
}

fn by_rule(tool: &str, subject: &str) -> ToolError {
    let subject = super::text::one_line(subject);
    ToolError::Denied(format!(
        "the rules of this session do not allow `{tool}` for `{subject}`. Do not try it in another way; go on without it, \
         or tell the user what you would need."
    ))
}

/// Whether any rule for a tool does something other than allow.
fn can_refuse(rules: &[PermissionRule], tool: &str) -> bool {
    rules
        .iter()
        .any(|rule| rule.permission != RulePermission::Allow && permissions::speaks_of(rule, tool))
}

/// Whether everything below a directory may be touched. The user isn't asked file by file: a path that needs a question
/// must be named on its own.
async fn permit_below(
    options: &ToolboxOptions,
    tool: &'static str,
    directory: &RelPath,
    rules: &[PermissionRule],
) -> Result<(), ToolError> {
    let (directory, rules) = (directory.clone(), rules.to_vec());
    let patience = Patience::new(options);
    let walked = running::explore(options, &patience, move |explorer, patience| {
        let mut refused = Ok(());
        let is_directory = explorer.tree().stat(&directory).ok().flatten();
        if is_directory.is_none_or(|stat| stat.kind != plans::FileKind::Directory) {
            return Ok(());
        }
        explorer.walk(Some(&directory), WalkOver::Everything, &mut |path, _| {
            let subject = path.to_string();
            refused = patience.check().and_then(|()| match decide(&rules, tool, &subject) {
                RulePermission::Allow => Ok(()),
                RulePermission::Deny => Err(by_rule(tool, &subject)),
                RulePermission::Ask => Err(ToolError::Denied(format!(
                    "the user must be asked about `{subject}`, which is below it. Call `{tool}` for that path first."
                ))),
            });
            match refused {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        refused
    });
    walked.await
}
