//! Which plan is meant: an id says it, so does a part of it that no other plan has, and `@` is the newest one here.

use std::path::Path;

use protocol::{Changeset, ChangesetList, Plan, PlanList, Workspace, WorkspaceList};
use serde_json::Value;

use super::{PLANS, ask, get};
use crate::client::Client;
use crate::commands::ids::{CHANGESET, PLAN};
use crate::commands::lsp::paths::current_directory;
use crate::commands::lsp::printable::{as_it_is, printable};
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::start::Repeat;

/// The name of the newest plan of the workspace that the user is in.
const NEWEST: &str = "@";
/// How many plans are asked for at a time.
pub(super) const PAGE_PLANS: usize = 100;
/// Among how many of the newest plans a part of an id is looked for. An older one is named by its whole id.
const MOST_PAGES: usize = 50;

/// The id of the plan that is meant.
pub(in crate::commands) fn find(wanted: &str, context: &Context, client: &Client) -> Result<String, Failure> {
    if wanted == NEWEST {
        return newest_here(context, client);
    }
    if PLAN.is_whole(wanted) {
        return Ok(wanted.to_owned());
    }
    let part = PLAN.part(wanted)?;
    let mut found = Vec::new();
    let mut before = None;
    for _ in 0..MOST_PAGES {
        let page = page(before.as_deref(), "", PAGE_PLANS, context, client)?;
        let ids = page.plans.into_iter().map(|plan| plan.id);
        found.extend(ids.filter(|id| part.is_of(id)));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    part.only(found)
}

/// The id of the changeset of a plan that is meant.
pub(super) fn find_changeset(
    wanted: &str,
    plan: &str,
    context: &Context,
    client: &Client,
) -> Result<String, Failure> {
    if CHANGESET.is_whole(wanted) {
        return Ok(wanted.to_owned());
    }
    let part = CHANGESET.part(wanted)?;
    let list: ChangesetList = printable(&get(plan, "/changesets", context, client)?)?;
    let ids = list.changesets.into_iter().map(|Changeset { id, .. }| id);
    part.only(ids.filter(|id| part.is_of(id)).collect())
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
    // The roots are compared, so they are taken as they are.
    let list: WorkspaceList = as_it_is(&listed(context, client)?)?;
    Ok(innermost(list.workspaces, directory))
}

pub(in crate::commands) fn workspaces(context: &Context, client: &Client) -> Result<Vec<Workspace>, Failure> {
    let list: WorkspaceList = printable(&listed(context, client)?)?;
    Ok(list.workspaces)
}

fn listed(context: &Context, client: &Client) -> Result<Value, Failure> {
    ask(context, client, Repeat::Harmless, |client| {
        client.get("/v1/workspaces")
    })
}

fn innermost(workspaces: Vec<Workspace>, directory: &Path) -> Option<Workspace> {
    workspaces
        .into_iter()
        .filter(|workspace| directory.starts_with(&workspace.root))
        .max_by_key(|workspace| workspace.root.len())
}

#[cfg(test)]
mod tests {
    use protocol::WorkspaceState;

    use super::*;

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
            stuck: None,
            notice: None,
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
