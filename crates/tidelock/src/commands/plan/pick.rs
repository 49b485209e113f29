//! Which plan is meant: an id says it, so does a part of it that no other plan has, and `@` is the newest one here.

use std::path::Path;

use api::{Changeset, ChangesetList, Plan, PlanList, Workspace, WorkspaceList};

use super::{PLANS, ask, get};
use crate::client::Client;
use crate::commands::lsp::paths::current_directory;
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::start::Repeat;

/// The name of the newest plan of the workspace that the user is in.
const NEWEST: &str = "@";
/// What the id of a plan begins with.
const PREFIX: &str = "plan_";
/// What the id of a changeset begins with.
const CHANGESET_PREFIX: &str = "changeset_";
/// How long the rest of an id is.
const BODY_LENGTH: usize = 26;
/// How much of an id must be given: less is more likely a slip than a plan.
const LEAST: usize = 4;
/// How many plans are asked for at a time.
pub(super) const PAGE_PLANS: usize = 100;
/// Among how many of the newest plans a part of an id is looked for. An older one is named by its whole id.
const MOST_PAGES: usize = 50;
/// How many of several that are meant are named.
const NAMED: usize = 5;

/// The id of the plan that is meant.
pub(in crate::commands) fn find(wanted: &str, context: &Context, client: &Client) -> Result<String, Failure> {
    if wanted == NEWEST {
        return newest_here(context, client);
    }
    if wanted.starts_with(PREFIX) && wanted.len() == PREFIX.len() + BODY_LENGTH {
        return Ok(wanted.to_owned());
    }
    long_enough(wanted, PREFIX)?;
    let mut found = Vec::new();
    let mut before = None;
    for _ in 0..MOST_PAGES {
        let page = page(before.as_deref(), "", PAGE_PLANS, context, client)?;
        let ids = page.plans.into_iter().map(|plan| plan.id);
        found.extend(ids.filter(|id| is_meant(id, wanted)));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    only(found, wanted, Kind::Plan)
}

/// The id of the changeset of a plan that is meant.
pub(super) fn find_changeset(
    wanted: &str,
    plan: &str,
    context: &Context,
    client: &Client,
) -> Result<String, Failure> {
    if wanted.len() == CHANGESET_PREFIX.len() + BODY_LENGTH {
        return Ok(wanted.to_owned());
    }
    long_enough(wanted, CHANGESET_PREFIX)?;
    let list: ChangesetList = printable(&get(plan, "/changesets", context, client)?)?;
    let ids = list.changesets.into_iter().map(|Changeset { id, .. }| id);
    only(
        ids.filter(|id| is_meant(id, wanted)).collect(),
        wanted,
        Kind::Changeset,
    )
}

/// Plans, newest first, of those that a further part of the query asks for.
pub(super) fn page(
    before: Option<&str>,
    query: &str,
    limit: usize,
    context: &Context,
    client: &Client,
) -> Result<PlanList, Failure> {
    let before = before.map_or_else(String::new, |before| format!("&before={before}"));
    let path = format!("{PLANS}?limit={limit}{query}{before}");
    let answer = ask(context, client, Repeat::Harmless, |client| client.get(&path))?;
    Ok(printable(&answer)?)
}

fn newest_here(context: &Context, client: &Client) -> Result<String, Failure> {
    let here = current_directory()?;
    let newest: Option<Plan> = match workspace_of(&here, context, client)? {
        Some(workspace) => {
            let query = format!("&workspace={}", workspace.id);
            page(None, &query, 1, context, client)?.plans.into_iter().next()
        }
        None => None,
    };
    newest.map(|plan| plan.id).ok_or_else(|| {
        let message = format!("there is no plan for the workspace of {}", here.display());
        Failure::new(Exit::Refused, "plan_not_found", message)
            .advise("open one with `tidelock plan new` or `tidelock exec -- COMMAND`")
    })
}

/// The workspace that a directory is in, if it is known.
pub(in crate::commands) fn workspace_of(
    directory: &Path,
    context: &Context,
    client: &Client,
) -> Result<Option<Workspace>, Failure> {
    Ok(innermost(workspaces(context, client)?, directory))
}

pub(in crate::commands) fn workspaces(context: &Context, client: &Client) -> Result<Vec<Workspace>, Failure> {
    let answer = ask(context, client, Repeat::Harmless, |client| {
        client.get("/v1/workspaces")
    })?;
    let list: WorkspaceList = printable(&answer)?;
    Ok(list.workspaces)
}

fn innermost(workspaces: Vec<Workspace>, directory: &Path) -> Option<Workspace> {
    workspaces
        .into_iter()
        .filter(|workspace| directory.starts_with(&workspace.root))
        .max_by_key(|workspace| workspace.root.len())
}

fn long_enough(wanted: &str, prefix: &str) -> Result<(), Failure> {
    let body = wanted.strip_prefix(prefix).unwrap_or(wanted);
    if body.chars().count() >= LEAST {
        return Ok(());
    }
    let shown = wanted.escape_debug();
    let message = format!("`{shown}` is too short; {LEAST} letters of an id are needed");
    Err(Failure::new(Exit::Usage, "usage", message).advise("the last letters of an id differ the most"))
}

/// Whether a text is the beginning or the end of an id, with or without what all of them begin with.
fn is_meant(id: &str, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_uppercase();
    let id = id.to_ascii_uppercase();
    let body = id.split_once('_').map_or(id.as_str(), |(_, body)| body);
    id.starts_with(&wanted) || body.starts_with(&wanted) || body.ends_with(&wanted)
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plan,
    Changeset,
}

impl Kind {
    /// The word, the code for nothing, the code for several, and what to do.
    fn words(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Kind::Plan => (
                "plan",
                "plan_not_found",
                "plan_ambiguous",
                "`tidelock plan list --all` shows the plans",
            ),
            Kind::Changeset => (
                "changeset",
                "changeset_not_found",
                "changeset_ambiguous",
                "`tidelock plan changesets` shows those of a plan",
            ),
        }
    }
}

fn only(mut found: Vec<String>, wanted: &str, kind: Kind) -> Result<String, Failure> {
    let shown = wanted.escape_debug();
    let (word, not_found, ambiguous, advice) = kind.words();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(
            Exit::Refused,
            not_found,
            format!("no {word} has an id that begins or ends with `{shown}`"),
        )
        .advise(advice)),
        count => {
            let named: Vec<String> = found.into_iter().take(NAMED).collect();
            let more = if count > NAMED { ", ..." } else { "" };
            let named = named.join(", ");
            let message =
                format!("{count} {word}s have an id that begins or ends with `{shown}`: {named}{more}");
            Err(Failure::new(Exit::Refused, ambiguous, message)
                .advise("write more of the id; the ends differ the most"))
        }
    }
}

#[cfg(test)]
mod tests {
    use api::WorkspaceState;

    use super::*;

    #[test]
    fn a_part_of_an_id_is_enough_if_it_is_clear_and_long_enough() {
        let ids = [
            "plan_01JCZ8T6V8Y3N5K2M4Q7R9S1TX",
            "plan_01JCZ8T6V8Y3N5K2M4Q7R9ATTX",
            "plan_01JD00000000000000000S1TY",
        ];
        for (wanted, expected) in [
            ("S1TX", Ok(ids[0])),
            ("s1tx", Ok(ids[0])),
            ("01JD", Ok(ids[2])),
            ("plan_01JD", Ok(ids[2])),
            ("9aTtX", Ok(ids[1])),
            ("01JC", Err("plan_ambiguous")),
            ("8T6V", Err("plan_not_found")),
            ("nothing", Err("plan_not_found")),
            ("TTX", Err("usage")),
            ("plan_", Err("usage")),
            ("plan_01J", Err("usage")),
        ] {
            let found = long_enough(wanted, PREFIX).and_then(|()| {
                let found = ids.iter().filter(|id| is_meant(id, wanted));
                only(found.map(|id| (*id).to_owned()).collect(), wanted, Kind::Plan)
            });
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(found, expected, "{wanted}");
        }
    }

    #[test]
    fn a_directory_is_in_the_innermost_workspace_around_it() {
        let workspace = |root: &str| Workspace {
            id: format!("id of {root}"),
            state: WorkspaceState::Present,
            root: root.to_owned(),
            git: false,
            checks: Vec::new(),
            registered_at: String::new(),
            open_plans: 0,
        };
        for (directory, expected) in [
            ("/a/b", Some("id of /a/b")),
            ("/a/b/c/d", Some("id of /a/b")),
            ("/a/bc", Some("id of /a")),
            ("/x", None),
        ] {
            let workspaces = ["/a", "/a/b", "/a/b/other"].map(workspace).to_vec();
            let found = innermost(workspaces, Path::new(directory)).map(|workspace| workspace.id);
            assert_eq!(found.as_deref(), expected, "{directory}");
        }
    }
}
