//! `tidelock workspace`: the directories that plans were opened for.

pub(super) mod rescued;

use std::path::Path;

use protocol::{
    RepairState, RepairWorkspace, SetWorkspaceChecks, Workspace, WorkspaceList, WorkspaceRepaired,
    WorkspaceState,
};
use serde_json::{Value, json};

use crate::cli::{ChecksArguments, RepairArguments, WorkspaceCommand};
use crate::client::{Client, path_segment};
use crate::commands::job::age;
use crate::commands::shell::quoted;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, list as list_of};
use crate::paths;
use crate::printable::{Answer, as_it_is, cut, printable};
use crate::start::Repeat;
use crate::units::{format_count, format_duration};

const WORKSPACES: &str = "/v1/workspaces";
const PREFIX: &str = "workspace_";
/// How many changed paths are listed for an apply or undo that was set aside.
const CHANGED: usize = 30;
const CHECK_CHARACTERS: usize = 60;

pub(super) fn run(command: &WorkspaceCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        WorkspaceCommand::List => list(client),
        WorkspaceCommand::Forget(arguments) => forget(&arguments.workspace, client),
        WorkspaceCommand::Repair(arguments) => repair(arguments, client),
        WorkspaceCommand::Rescued(arguments) => rescued::run(arguments, client),
        WorkspaceCommand::Checks(arguments) => checks(arguments, client),
    }
}

fn list(client: &Client) -> Result<Report, Failure> {
    let list: Answer<WorkspaceList> = client.fetch(WORKSPACES)?;
    let notes = notes(&list.workspaces);
    Ok(Report::shown(rows(client.palette(), &list.workspaces), list).with_notes(notes))
}

fn notes(workspaces: &[Workspace]) -> Vec<String> {
    let stuck = workspaces.iter().filter_map(|workspace| {
        let stuck = workspace.stuck.as_ref()?;
        Some(format!(
            "an apply or undo of {} is stuck: {}; run: tidelock workspace repair {}",
            workspace.root,
            stuck.why,
            quoted(&workspace.root)
        ))
    });
    let notices = workspaces
        .iter()
        .filter_map(|workspace| Some(format!("{}: {}", workspace.root, workspace.notice.as_ref()?)));
    stuck.chain(notices).collect()
}

fn repair(arguments: &RepairArguments, client: &Client) -> Result<Report, Failure> {
    let workspace = find(&arguments.workspace.workspace, client)?;
    let path = format!("{WORKSPACES}/{}/repair", path_segment(&workspace.id));
    let request = RepairWorkspace {
        abort: arguments.abort,
    };
    let ask = |client: &Client| client.post_and_wait(&path, Some(&request));
    let repaired: Answer<WorkspaceRepaired> = client.ask(Repeat::Harmless, ask)?;
    let text = repaired_text(client.palette(), &workspace.root, &repaired);
    let exit = match repaired.state {
        RepairState::Stuck => Exit::Failed,
        _ => Exit::Success,
    };
    Ok(Report::shown(text, repaired).with_exit(exit))
}

fn repaired_text(palette: Palette, root: &str, repaired: &WorkspaceRepaired) -> String {
    let what = repaired.stuck.as_ref().and_then(|stuck| stuck.what.as_deref());
    let what = what.unwrap_or("apply or undo");
    let why = repaired.stuck.as_ref().map_or("", |stuck| stuck.why.as_str());
    let mut text = match repaired.state {
        RepairState::Nothing => format!("Nothing is stuck in {root}.\n"),
        RepairState::Finished => format!("The apply or undo of {root} was finished.\n"),
        RepairState::TakenBack => {
            format!("The apply or undo of {root} was rolled back; its changes are not in the workspace.\n")
        }
        RepairState::Stuck => format!(
            "The {what} of {root} can be neither finished nor rolled back: {why}\n\
             Fix that and run this again, or give it up and keep everything it holds:\n  \
             tidelock workspace repair {} --abort\n",
            quoted(root)
        ),
        RepairState::SetAside => {
            let mut text = format!("The {what} of {root} was set aside. It was stuck because: {why}\n");
            if !repaired.changed.is_empty() {
                let count = format_count(repaired.changed.len() as u64, "path");
                text.push_str(&format!("{count} had already been changed and stay that way:\n"));
                for path in repaired.changed.iter().take(CHANGED) {
                    text.push_str(&format!("  {path}\n"));
                }
                if repaired.changed.len() > CHANGED {
                    text.push_str(&format!("  … and {} more\n", repaired.changed.len() - CHANGED));
                }
            }
            text
        }
    };
    if !repaired.rescued.is_empty() {
        text.push_str("\nKept, see `tidelock workspace rescued`:\n");
        text.push_str(&rescued::rows(palette, &repaired.rescued));
    }
    text
}

fn rows(palette: Palette, workspaces: &[Workspace]) -> String {
    let row = |workspace: &Workspace| {
        let state = match (workspace.state, workspace.git) {
            _ if workspace.stuck.is_some() => Cell::toned("stuck", Tone::Bad),
            (WorkspaceState::Present, true) => Cell::toned("git", Tone::Plain),
            (WorkspaceState::Present, false) => Cell::toned("no git", Tone::Plain),
            (WorkspaceState::Missing, _) => Cell::toned("missing", Tone::Bad),
            (WorkspaceState::Replaced, _) => Cell::toned("replaced", Tone::Bad),
            (WorkspaceState::Unreachable, _) => Cell::toned("unreachable", Tone::Bad),
        };
        let checks = match workspace.checks.as_slice() {
            [] => "-".to_owned(),
            checks => cut(&checks.join("; "), CHECK_CHARACTERS),
        };
        vec![
            Cell::new(&workspace.root),
            state,
            Cell::new(workspace.open_plans.to_string()),
            Cell::or_dash(age(&workspace.registered_at).map(format_duration)),
            Cell::new(checks),
            Cell::toned(&workspace.id, Tone::Quiet),
        ]
    };
    list_of(
        palette,
        &["PATH", "STATE", "OPEN PLANS", "AGE", "CHECKS", "ID"],
        workspaces.iter().map(row).collect(),
        "No plans yet. `tidelock plan new` opens one for this directory.",
    )
}

fn forget(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let workspace = find(wanted, client)?;
    let path = format!("{WORKSPACES}/{}", path_segment(&workspace.id));
    client.ask(Repeat::Harmless, |client| client.delete(&path))?;
    let value = json!({ "id": workspace.id, "state": "forgotten", "root": workspace.root });
    Ok(Report::success(
        value,
        format!(
            "{} is forgotten. The directory was not touched.\n",
            workspace.root
        ),
    ))
}

fn checks(arguments: &ChecksArguments, client: &Client) -> Result<Report, Failure> {
    let mut workspace = find(&arguments.workspace.workspace, client)?;
    let mut answer = json!(workspace);
    if let Some(commands) = arguments.wanted() {
        let path = format!("{WORKSPACES}/{}/checks", path_segment(&workspace.id));
        let request = SetWorkspaceChecks {
            checks: commands.to_vec(),
        };
        let put = |client: &Client| client.put::<Value>(&path, &request);
        answer = client.ask(Repeat::Harmless, put)?;
        workspace = printable(&answer)?;
    }
    let text = match workspace.checks.as_slice() {
        [] => format!("{} has no checks for its new plans.\n", workspace.root),
        checks => {
            let lines: String = checks.iter().map(|check| format!("  {check}\n")).collect();
            format!("Every new plan of {} must pass:\n{lines}", workspace.root)
        }
    };
    Ok(Report::success(answer, text))
}

/// Finds a workspace by its id, by its path even if that no longer exists, or by a directory in it.
fn find(wanted: &str, client: &Client) -> Result<Workspace, Failure> {
    let unknown = || {
        let message = format!("`{}` isn't in a known workspace", wanted.escape_debug());
        Failure::new(Exit::Refused, "workspace_not_found", message)
            .advise("`tidelock workspace list` shows them")
    };
    let directory = match Path::new(wanted).canonicalize() {
        Ok(_) => Some(paths::directory(Path::new(wanted))?),
        Err(_) => None,
    };
    let answer: Value = client.fetch(WORKSPACES)?;
    let known: WorkspaceList = printable(&answer)?;
    let absolute = std::path::absolute(wanted).ok();
    let is_named = |workspace: &&Workspace| {
        (wanted.starts_with(PREFIX) && workspace.id == wanted)
            || absolute.as_deref() == Some(Path::new(&workspace.root))
    };
    if let Some(found) = known.workspaces.iter().find(is_named) {
        return Ok(found.clone());
    }
    // The roots are compared with a directory, so use them unmodified.
    let known: WorkspaceList = as_it_is(&answer)?;
    let around = directory.and_then(|directory| innermost(known.workspaces, directory.as_ref()));
    around.ok_or_else(unknown)
}

fn innermost(workspaces: Vec<Workspace>, directory: &Path) -> Option<Workspace> {
    workspaces
        .into_iter()
        .filter(|workspace| directory.starts_with(&workspace.root))
        .max_by_key(|workspace| workspace.root.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_tells_whether_each_is_there() {
        let workspace = |state, git, checks: &[&str]| Workspace {
            id: "workspace_01ARZ3NDEKTSV4RRFFQ69G5FAW".to_owned(),
            state,
            root: "/home/me/project".to_owned(),
            git,
            checks: checks.iter().map(|check| (*check).to_owned()).collect(),
            registered_at: String::new(),
            open_plans: 2,
            stuck: None,
            notice: None,
        };
        let workspaces = [
            workspace(WorkspaceState::Present, true, &["cargo test", "cargo clippy"]),
            workspace(WorkspaceState::Present, false, &[]),
            workspace(WorkspaceState::Missing, true, &[]),
            workspace(WorkspaceState::Replaced, false, &[]),
        ];
        insta::assert_snapshot!(rows(Palette::Plain, &workspaces));
        insta::assert_snapshot!(rows(Palette::Plain, &[]));
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
