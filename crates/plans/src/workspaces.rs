//! The list of workspaces: registered at first use, one inside another refused.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eventlog::{Commit, Version, Write};
use kernel::WorkspaceId;

use crate::error::PlanError;
use crate::plan::State;
use crate::shared::{Shared, blocking};
use crate::store;
use crate::streams::{self, PLAN_KIND, WORKSPACE_KIND};
use crate::workspace::{Presence, Workspace, WorkspaceRecord};

/// The list of workspaces of this home. It is changed by one at a time.
#[derive(Debug)]
pub(crate) struct Registry {
    shared: Arc<Shared>,
}

impl Registry {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The workspace that a directory is in. It is registered if it is a new one.
    pub(crate) async fn of_directory(&mut self, directory: PathBuf) -> Result<Workspace, PlanError> {
        let known = list(&self.shared).await?;
        let roots: Vec<PathBuf> = known
            .iter()
            .map(|workspace| workspace.record.root.clone())
            .collect();
        let own = self.shared.directory.clone();
        let (root, identity) = blocking(move || locate(&directory, &roots, &own)).await??;
        if let Some(workspace) = known.into_iter().find(|workspace| workspace.record.root == root) {
            return match workspace.presence {
                Presence::Present => Ok(workspace),
                // What was there is gone, and this is another directory in its place.
                Presence::Replaced if workspace.open_plans == 0 => {
                    let record = WorkspaceRecord {
                        identity,
                        ..workspace.record.clone()
                    };
                    self.write(workspace.id, workspace.version, &record).await?;
                    get(&self.shared, workspace.id).await
                }
                Presence::Replaced | Presence::Missing => Err(gone(&workspace)),
            };
        }
        let record = WorkspaceRecord {
            root,
            identity,
            home: self.shared.home_id,
            registered_at: self.shared.time.now(),
            checks: Vec::new(),
            landing: None,
        };
        let id = WorkspaceId::generate();
        self.write(id, Version::NONE, &record).await?;
        get(&self.shared, id).await
    }

    /// Forgets a workspace that has no plans that are not over.
    pub(crate) async fn forget(&mut self, id: WorkspaceId) -> Result<(), PlanError> {
        let workspace = get(&self.shared, id).await?;
        if workspace.open_plans > 0 {
            let plans = workspace.open_plans;
            return Err(PlanError::WorkspaceInUse { plans });
        }
        let stream = streams::workspace_stream(id)?;
        self.shared.log.remove(vec![(stream, workspace.version)]).await?;
        let cache = self.shared.stat_cache(id);
        // It is only a cache: one that stays is in nobody's way.
        blocking(move || drop(std::fs::remove_file(cache))).await
    }

    /// Sets the commands that every new plan must pass.
    pub(crate) async fn set_checks(
        &mut self,
        id: WorkspaceId,
        checks: Vec<String>,
    ) -> Result<Workspace, PlanError> {
        let workspace = get(&self.shared, id).await?;
        let record = WorkspaceRecord {
            checks,
            ..workspace.record
        };
        self.write(id, workspace.version, &record).await?;
        get(&self.shared, id).await
    }

    async fn write(
        &self,
        id: WorkspaceId,
        expected: Version,
        record: &WorkspaceRecord,
    ) -> Result<(), PlanError> {
        let write = Write {
            stream: streams::workspace_stream(id)?,
            expected,
            head: Some(streams::workspace_head(record)),
            events: Vec::new(),
        };
        self.shared.log.commit(Commit::one(write)).await?;
        Ok(())
    }
}

/// Says that a workspace is not where it was.
pub(crate) fn gone(workspace: &Workspace) -> PlanError {
    PlanError::WorkspaceGone {
        root: workspace.record.root.clone(),
        why: match workspace.presence {
            Presence::Replaced => "another directory is in its place".to_owned(),
            Presence::Missing | Presence::Present => "there is no directory".to_owned(),
        },
    }
}

/// The workspaces of this home, by path.
pub(crate) async fn list(shared: &Shared) -> Result<Vec<Workspace>, PlanError> {
    let heads = store::heads(&shared.log, WORKSPACE_KIND, None).await?;
    let mut records = Vec::new();
    for stored in &heads {
        let record: WorkspaceRecord = streams::parse(&stored.stream, &stored.head.body)?;
        if record.home == shared.home_id
            && let Some(id) = streams::id_of::<WorkspaceId>(&stored.stream)
        {
            records.push((id, stored.version, record));
        }
    }
    let mut counts = std::collections::HashMap::<WorkspaceId, u64>::new();
    for state in [State::Open, State::Sealed] {
        for stored in store::heads(&shared.log, PLAN_KIND, Some(state.name())).await? {
            let plan = streams::plan_of(&stored)?;
            *counts.entry(plan.record.facts.workspace).or_default() += 1;
        }
    }
    let looked = blocking(move || {
        let look = |(id, version, record): (WorkspaceId, Version, WorkspaceRecord)| Workspace {
            id,
            version,
            presence: presence(&record),
            is_git: record.root.join(".git").exists(),
            open_plans: counts.get(&id).copied().unwrap_or_default(),
            record,
        };
        records.into_iter().map(look).collect::<Vec<_>>()
    });
    let mut workspaces = looked.await?;
    workspaces.sort_by(|one, other| one.record.root.cmp(&other.record.root));
    Ok(workspaces)
}

/// Where the workspaces of this home are.
pub(crate) async fn roots(shared: &Shared) -> Result<Vec<PathBuf>, PlanError> {
    let heads = store::heads(&shared.log, WORKSPACE_KIND, None).await?;
    let mut roots = Vec::new();
    for stored in &heads {
        let record: WorkspaceRecord = streams::parse(&stored.stream, &stored.head.body)?;
        if record.home == shared.home_id {
            roots.push(record.root);
        }
    }
    Ok(roots)
}

/// A workspace of this home.
pub(crate) async fn get(shared: &Shared, id: WorkspaceId) -> Result<Workspace, PlanError> {
    let mut all = list(shared).await?.into_iter();
    all.find(|workspace| workspace.id == id)
        .ok_or(PlanError::WorkspaceNotFound(id))
}

fn presence(record: &WorkspaceRecord) -> Presence {
    match std::fs::metadata(&record.root) {
        Ok(found) if found.is_dir() && (found.dev(), found.ino()) == record.identity => Presence::Present,
        Ok(found) if found.is_dir() => Presence::Replaced,
        _ => Presence::Missing,
    }
}

/// The root of the workspace that a directory is in, and which directory that is. A repository of git is one, whatever
/// directory of it is named; and so is what was registered.
fn locate(directory: &Path, known: &[PathBuf], own: &Path) -> Result<(PathBuf, (u64, u64)), PlanError> {
    let canonical = canonical(directory)?;
    let repository = canonical.ancestors().find(|above| above.join(".git").exists());
    let registered = canonical
        .ancestors()
        .find(|above| known.iter().any(|root| root == above));
    let root = match (repository, registered) {
        (Some(repository), Some(registered))
            if repository != registered && repository.starts_with(registered) =>
        {
            let why = format!(
                "it is a repository inside the workspace {}; forget that one first",
                registered.display()
            );
            return Err(bad(repository, why));
        }
        (_, Some(registered)) => registered,
        (Some(repository), None) => repository,
        (None, None) => &canonical,
    };
    if let Some(inner) = known
        .iter()
        .find(|other| other.starts_with(root) && *other != root)
    {
        let why = format!(
            "the workspace {} is inside it; forget that one first",
            inner.display()
        );
        return Err(bad(root, why));
    }
    let found = must_be_usable(root, own)?;
    Ok((root.to_owned(), (found.dev(), found.ino())))
}

/// The root of the tree that a directory is in, for somebody who only looks: the innermost of what could be a workspace.
pub(crate) fn root_to_look_at(directory: &Path, known: &[PathBuf], own: &Path) -> Result<PathBuf, PlanError> {
    let canonical = canonical(directory)?;
    let is_root = |above: &&Path| above.join(".git").exists() || known.iter().any(|root| root == above);
    let root = canonical.ancestors().find(is_root).unwrap_or(&canonical);
    must_be_usable(root, own)?;
    Ok(root.to_owned())
}

fn bad(root: &Path, why: String) -> PlanError {
    PlanError::BadWorkspace {
        root: root.to_owned(),
        why,
    }
}

fn canonical(directory: &Path) -> Result<PathBuf, PlanError> {
    if !directory.is_absolute() {
        return Err(bad(directory, "its path is not absolute".to_owned()));
    }
    directory
        .canonicalize()
        .map_err(|error| bad(directory, error.to_string()))
}

/// Refuses what is no directory, or has to do with the daemon's own.
fn must_be_usable(root: &Path, own: &Path) -> Result<std::fs::Metadata, PlanError> {
    let own = own.canonicalize().unwrap_or_else(|_| own.to_owned());
    if own.starts_with(root) {
        return Err(bad(
            root,
            format!("the daemon keeps its own files in it, in {}", own.display()),
        ));
    }
    if root.starts_with(&own) {
        return Err(bad(root, "it belongs to the daemon itself".to_owned()));
    }
    let found = std::fs::metadata(root).map_err(|error| bad(root, error.to_string()))?;
    if !found.is_dir() {
        return Err(bad(root, "it is not a directory".to_owned()));
    }
    Ok(found)
}
