//! The changesets of a plan, as one process works with them: those of the service, or those of the report.

use std::time::Instant;

use plans::{Attribution, Change, ChangesetHandle, Entry, LinkTarget, PlanError};
use protocol::PlanId;

use crate::changesets_faulty::Faulty;
use crate::plans_kit::{PATIENCE, Running, actor};

/// Why nothing was recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    NoActiveChangeset,
    Closed,
    /// Others were faster all the time. Nothing was recorded, and it may be tried again.
    Busy,
    Other(String),
}

impl Refusal {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::NoActiveChangeset => "there is no active changeset",
            Self::Closed => "the changeset is closed",
            Self::Busy => "others were faster",
            Self::Other(text) => text,
        }
    }
}

/// The plan in one process.
pub(crate) enum Book {
    Ours(Running, PlanId),
    Faulty(Faulty),
}

/// A changeset that somebody has started.
#[derive(Clone, Debug)]
pub(crate) enum Started {
    Ours(protocol::ChangesetId, Option<ChangesetHandle>),
    Faulty(usize),
}

/// By which way a change is recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Through {
    Handle,
    Context,
}

/// A changeset as it was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Found {
    pub(crate) actor: String,
    /// The number of each change among all of the plan, its path, and its revision.
    pub(crate) changes: Vec<(u64, String, u64)>,
}

impl Book {
    pub(crate) fn ours(&self) -> (&Running, PlanId) {
        match self {
            Self::Ours(running, plan) => (running, *plan),
            Self::Faulty(_) => panic!("only the service does this"),
        }
    }

    pub(crate) async fn start(&self, by: &str) -> Started {
        match self {
            Self::Ours(running, plan) => {
                let context = running.plans.context(*plan, actor(by)).await.unwrap();
                let began = Instant::now();
                loop {
                    match context.start_changeset("api", "a scenario").await {
                        Ok(handle) => return Started::Ours(handle.id(), Some(handle)),
                        Err(PlanError::Busy { .. }) if began.elapsed() < PATIENCE => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            Self::Faulty(faulty) => {
                let id = faulty.publish(by);
                faulty.enlist(id);
                Started::Faulty(id)
            }
        }
    }

    /// Starts one for somebody who is elsewhere.
    pub(crate) async fn start_for(&self, by: &str) -> Started {
        match self {
            Self::Ours(running, plan) => {
                let new = Attribution {
                    actor: actor(by),
                    tool: "api".to_owned(),
                    reason: "a scenario".to_owned(),
                    job: None,
                };
                let started = running.plans.start_changeset(*plan, new).await.unwrap();
                Started::Ours(started.id, None)
            }
            Self::Faulty(_) => self.start(by).await,
        }
    }

    pub(crate) async fn close(&self, started: &Started) {
        match (self, started) {
            (Self::Ours(running, plan), Started::Ours(id, _)) => {
                running.plans.close_changeset(*plan, *id).await.unwrap();
            }
            (Self::Faulty(faulty), Started::Faulty(id)) => faulty.close(*id),
            _ => panic!("a changeset of another kind"),
        }
    }

    /// Records a change of a path: its next revision.
    pub(crate) async fn record(
        &self,
        by: &str,
        started: Option<&Started>,
        (path, revision): (&str, u64),
    ) -> Result<(), Refusal> {
        match self {
            Self::Ours(running, plan) => {
                let change = change(path, revision);
                let recorded = match started {
                    Some(Started::Ours(_, Some(handle))) => handle.record(change).await,
                    _ => {
                        let context = running.plans.context(*plan, actor(by)).await.unwrap();
                        context.record_change(change).await
                    }
                };
                recorded.map(drop).map_err(|error| refusal(&error))
            }
            Self::Faulty(faulty) => {
                faulty.write(faulty.find()?, path, revision);
                Ok(())
            }
        }
    }

    /// Records a change, and tries again while others are faster. Two processes that write one plan all the time are no
    /// everyday case, and who is told that it was not recorded has lost nothing.
    pub(crate) async fn record_in_the_end(&self, by: &str, started: Option<&Started>, change: (&str, u64)) {
        let began = Instant::now();
        loop {
            match self.record(by, started, change).await {
                Ok(()) => return,
                Err(Refusal::Busy) if began.elapsed() < PATIENCE => {}
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
    }

    /// All changesets, in the order of their start.
    pub(crate) async fn all(&self) -> Vec<Found> {
        match self {
            Self::Ours(running, plan) => {
                let mut found = Vec::new();
                for listed in running.plans.changesets(*plan).await.unwrap() {
                    let changeset = running.plans.changeset(*plan, listed.id).await.unwrap();
                    assert_eq!(changeset.record.entries, changeset.changes.len() as u64);
                    let told = changeset.changes.iter().map(|recorded| {
                        let path = recorded.change.path.to_string();
                        (recorded.entry, path, revision(&recorded.change))
                    });
                    found.push(Found {
                        actor: changeset.record.actor.to_string(),
                        changes: told.collect(),
                    });
                }
                found
            }
            Self::Faulty(faulty) => {
                let mut number = 0;
                let all = faulty.all().into_iter().map(|seen| {
                    let changes = seen.changes.into_iter().map(|(path, revision)| {
                        number += 1;
                        (number, path, revision)
                    });
                    Found {
                        actor: seen.actor,
                        changes: changes.collect(),
                    }
                });
                all.collect()
            }
        }
    }

    /// How many changes one changeset has.
    pub(crate) async fn count(&self, started: &Started) -> usize {
        match (self, started) {
            (Self::Ours(running, plan), Started::Ours(id, _)) => {
                let changeset = running.plans.changeset(*plan, *id).await.unwrap();
                changeset.changes.len()
            }
            (Self::Faulty(faulty), Started::Faulty(id)) => faulty.all()[*id].changes.len(),
            _ => panic!("a changeset of another kind"),
        }
    }

    /// How many changes the plan says that it has.
    pub(crate) async fn entries(&self) -> u64 {
        match self {
            Self::Ours(running, plan) => running.plans.get(*plan).await.unwrap().record.entries,
            Self::Faulty(faulty) => faulty.all().iter().map(|seen| seen.changes.len() as u64).sum(),
        }
    }

    /// How many changesets are kept as open.
    pub(crate) async fn kept_open(&self) -> usize {
        match self {
            Self::Ours(running, plan) => {
                let plan = running.plans.get(*plan).await.unwrap();
                plan.record.open_changesets.len()
            }
            Self::Faulty(faulty) => faulty.kept(),
        }
    }
}

fn refusal(error: &PlanError) -> Refusal {
    match error {
        PlanError::NoActiveChangeset => Refusal::NoActiveChangeset,
        PlanError::ChangesetClosed(_) => Refusal::Closed,
        PlanError::Busy { .. } => Refusal::Busy,
        other => Refusal::Other(other.to_string()),
    }
}

/// A symlink whose target is the revision, so that it needs no content.
fn change(path: &str, revision: u64) -> Change {
    let link = |revision: u64| Entry::Symlink {
        target: LinkTarget(revision.to_string().into_bytes().into()),
    };
    Change {
        path: path.parse().unwrap(),
        before: (revision > 1).then(|| link(revision - 1)),
        after: Some(link(revision)),
        from: None,
    }
}

fn revision(change: &Change) -> u64 {
    match &change.after {
        Some(Entry::Symlink { target }) => std::str::from_utf8(&target.0).unwrap().parse().unwrap(),
        _ => 0,
    }
}
