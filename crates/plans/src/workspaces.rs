//! The list of workspaces: registered at first use, one inside another refused.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eventlog::Entity;
use protocol::{PlanState, WorkspaceId, WorkspaceState};

use crate::inner::{PlansInner, blocking};
use crate::{PlanError, Workspace, WorkspaceRecord, store};

/// This home's list of workspaces. Only one caller changes it at a time.
#[derive(Debug)]
pub(crate) struct Registry {
    inner: Arc<PlansInner>,
}

impl Registry {
    pub(crate) fn new(inner: Arc<PlansInner>) -> Self {
        Self { inner }
    }

    /// The workspace with this root, which was located on disk when the registered ones were those in `seen`. Registers
    /// it if it is new. `None` if the list has changed since: then the root may be a different one.
    async fn register(
        &mut self,
        (root, identity): Located,
        seen: &[PathBuf],
    ) -> Result<Option<Registered>, PlanError> {
        let known = registered(&self.inner).await?;
        if roots_of(&known) != seen {
            return Ok(None);
        }
        let Some(mut workspace) = known.into_iter().find(|workspace| workspace.record.root == root) else {
            let record = WorkspaceRecord {
                root,
                identity,
                home: self.inner.home_id,
                registered_at: self.inner.time.now(),
                checks: Vec::new(),
                landing: None,
            };
            let mut workspace = Entity::new(WorkspaceId::generate(), record);
            workspace.save(&self.inner.log, &[]).await?;
            return Ok(Some(workspace));
        };
        if workspace.record.identity != identity {
            // The old directory is gone, and this is another one at its path.
            let found = get(&self.inner, workspace.id).await?;
            if found.open_plans > 0 {
                return Err(gone(&found));
            }
            workspace.record.identity = identity;
            workspace.version = found.version;
            workspace.save(&self.inner.log, &[]).await?;
        }
        Ok(Some(workspace))
    }

    pub(crate) async fn forget(&mut self, id: WorkspaceId) -> Result<(), PlanError> {
        let workspace = get(&self.inner, id).await?;
        if workspace.open_plans > 0 {
            let plans = workspace.open_plans;
            return Err(PlanError::WorkspaceInUse { plans });
        }
        let registered = workspace.with_landing(None);
        self.inner.log.remove(vec![registered.at()?]).await?;
        let cache = self.inner.stat_cache(id);
        // It is only a cache: a leftover does no harm.
        blocking(move || drop(std::fs::remove_file(cache))).await
    }

    /// Sets the commands that every new plan must pass.
    pub(crate) async fn set_checks(
        &mut self,
        id: WorkspaceId,
        checks: Vec<String>,
    ) -> Result<Workspace, PlanError> {
        let workspace = get(&self.inner, id).await?;
        let mut registered = workspace.with_landing(workspace.record.landing.clone());
        registered.record.checks = checks;
        registered.save(&self.inner.log, &[]).await?;
        get(&self.inner, id).await
    }
}

/// The workspace that contains a directory. Registers it if it is new.
///
/// The disk is checked before the list is locked: a file system that doesn't respond only delays the caller that asked
/// about it.
pub(crate) async fn of_directory(
    inner: &Arc<PlansInner>,
    directory: PathBuf,
) -> Result<Registered, PlanError> {
    loop {
        let seen = roots_of(&registered(inner).await?);
        let (asked, known, own) = (directory.clone(), seen.clone(), inner.directory.clone());
        let located = blocking(move || locate(&asked, &known, &own)).await??;
        let found = inner
            .at_registry(move |registry| Box::pin(async move { registry.register(located, &seen).await }));
        // It is checked again only if someone else has registered or forgotten a workspace in the meantime.
        if let Some(found) = found.await? {
            return Ok(found);
        }
    }
}

pub(crate) fn gone(workspace: &Workspace) -> PlanError {
    PlanError::WorkspaceGone {
        root: workspace.record.root.clone(),
        why: match workspace.presence {
            WorkspaceState::Replaced => "another directory is in its place".to_owned(),
            WorkspaceState::Unreachable => "its file system does not answer".to_owned(),
            WorkspaceState::Missing | WorkspaceState::Present => "there is no directory".to_owned(),
        },
    }
}

/// A workspace from the log, without checking its root.
pub(crate) type Registered = Entity<WorkspaceRecord>;

fn roots_of(workspaces: &[Registered]) -> Vec<PathBuf> {
    let roots = workspaces.iter();
    roots.map(|workspace| workspace.record.root.clone()).collect()
}

/// This home's workspaces from the log, by path.
pub(crate) async fn registered(inner: &PlansInner) -> Result<Vec<Registered>, PlanError> {
    let mut found = Registered::all(&inner.log, None).await?;
    found.retain(|workspace| workspace.record.home == inner.home_id);
    found.sort_by(|one, other| one.record.root.cmp(&other.record.root));
    Ok(found)
}

/// How many plans of each workspace are open or sealed.
async fn open_plans(inner: &PlansInner) -> Result<HashMap<WorkspaceId, u64>, PlanError> {
    let mut counts = HashMap::<WorkspaceId, u64>::new();
    for plan in store::plans_in(&inner.log, &[PlanState::Open, PlanState::Sealed]).await? {
        *counts.entry(plan.record.facts.workspace).or_default() += 1;
    }
    Ok(counts)
}

/// This home's workspaces, by path. Their roots are checked concurrently, each for a limited time.
pub(crate) async fn list(inner: &PlansInner) -> Result<Vec<Workspace>, PlanError> {
    let (found, counts) = tokio::try_join!(registered(inner), open_plans(inner))?;
    let seen = found
        .into_iter()
        .map(|registered| looked_at(inner, registered, &counts));
    Ok(futures_util::future::join_all(seen).await)
}

async fn looked_at(
    inner: &PlansInner,
    Entity {
        id, version, record, ..
    }: Registered,
    counts: &HashMap<WorkspaceId, u64>,
) -> Workspace {
    let look = inner.root_checks.at(&record).await;
    Workspace {
        id,
        version,
        presence: look.presence,
        is_git: look.is_git,
        open_plans: counts.get(&id).copied().unwrap_or_default(),
        stuck: inner
            .stuck
            .of(id)
            .filter(|stuck| record.landing.as_ref() == Some(&stuck.landing)),
        notice: inner.notices.of(id).flatten(),
        record,
    }
}

pub(crate) async fn roots(inner: &PlansInner) -> Result<Vec<PathBuf>, PlanError> {
    Ok(roots_of(&registered(inner).await?))
}

/// A workspace of this home. Checks no other one.
pub(crate) async fn get(inner: &PlansInner, id: WorkspaceId) -> Result<Workspace, PlanError> {
    let found = find(inner, id).await?.ok_or(PlanError::WorkspaceNotFound(id))?;
    Ok(looked_at(inner, found, &open_plans(inner).await?).await)
}

pub(crate) async fn presence(
    inner: &PlansInner,
    id: WorkspaceId,
) -> Result<Option<WorkspaceState>, PlanError> {
    Ok(match find(inner, id).await? {
        Some(found) => Some(inner.root_checks.at(&found.record).await.presence),
        None => None,
    })
}

async fn find(inner: &PlansInner, id: WorkspaceId) -> Result<Option<Registered>, PlanError> {
    let found = Registered::read(&inner.log, id).await?;
    Ok(found.filter(|workspace| workspace.record.home == inner.home_id))
}

/// The root of a workspace, and its device and inode.
type Located = (PathBuf, (u64, u64));

/// The root of the workspace that contains a directory, and its device and inode. A git repository is a workspace,
/// whichever of its directories is given; so is a registered directory.
fn locate(directory: &Path, known: &[PathBuf], own: &Path) -> Result<Located, PlanError> {
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
    // Workspaces are stored and sent as JSON, which can't represent other bytes.
    if root.to_str().is_none() {
        return Err(bad(
            root,
            "its real path is not UTF-8; rename the directory, or move the work to another one".to_owned(),
        ));
    }
    Ok((root.to_owned(), (found.dev(), found.ino())))
}

/// The root of the tree that contains a directory, for read-only use: the innermost possible workspace.
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

/// Refuses anything that isn't a directory, or that overlaps with the daemon's own.
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
