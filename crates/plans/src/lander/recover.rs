//! Truth at start: a landing that an earlier life has left half-way is finished or taken back whole.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use kernel::WorkspaceId;

use super::Lander;
use super::begin::Begun;
use super::place::Place;
use super::written::{self, Written};
use crate::error::PlanError;
use crate::landing::{self, Landing, LandingId};
use crate::landings::LandingState;
use crate::shared::{Shared, blocking};
use crate::streams;
use crate::workspace::{Presence, Workspace};
use crate::workspaces;

impl Lander {
    /// Brings a landing to its end that was left on the workspace, if there is one, and gives the workspace as it is
    /// then.
    pub(super) async fn settle(&self, workspace: &Workspace) -> Result<Workspace, PlanError> {
        if let Some(id) = &workspace.record.landing {
            let told = self.recover_landing(workspace, id).await?;
            tracing::warn!(landing = %id, workspace = %workspace.record.root.display(), "{told}");
            return workspaces::get(&self.shared, self.id).await;
        }
        Ok(workspace.clone())
    }

    /// The same at the start of a life. What became of it, in one line, if there was something.
    pub(crate) async fn recover(&mut self) -> Result<Option<String>, PlanError> {
        let workspace = workspaces::get(&self.shared, self.id).await?;
        let Some(id) = workspace.record.landing.clone() else {
            return Ok(None);
        };
        let workspace = self.workspace().await?;
        let told = self.recover_landing(&workspace, &id).await?;
        let root = workspace.record.root.display();
        Ok(Some(format!(
            "an apply or undo on {root} had been left half-way; {told}"
        )))
    }

    /// Takes away what an earlier life has staged and left, of a landing that is over or was never begun. What others had
    /// saved into it is kept and said.
    pub(crate) async fn sweep(&mut self, id: &str) -> Result<Vec<String>, PlanError> {
        let workspace = self.workspace().await?;
        let begun = self.begun_before(&workspace, id).await?;
        let mut notes = Vec::new();
        match begun.written.record.state {
            // It could not be brought to its end, which was said.
            LandingState::Begun => {}
            LandingState::Written => self.discard(&begun).await?,
            LandingState::Done | LandingState::TakenBack => {
                self.finish(&begun, Vec::new(), &mut notes).await?;
            }
        }
        Ok(notes)
    }

    async fn recover_landing(&self, workspace: &Workspace, id: &str) -> Result<&'static str, PlanError> {
        let begun = self.begun_before(workspace, id).await?;
        let (begun, outcome) = self.carry_out(begun).await?;
        self.end_recovered(begun, outcome).await
    }

    /// A landing of an earlier life, as the log has it.
    async fn begun_before(&self, workspace: &Workspace, id: &str) -> Result<Begun, PlanError> {
        let (version, record) = written::stored(&self.shared.log, id).await?;
        let deeds = written::deeds(&self.shared.log, id, record.plans.len()).await?;
        let landing = Landing {
            id: id
                .parse()
                .map_err(|_| PlanError::Base(format!("`{id}` is no landing")))?,
            effects: deeds.effects.clone(),
        };
        let (place, stay) = match record.parent {
            None => (Place::Workspace(workspace.record.root.clone()), None),
            Some(parent) => {
                let opened = self.shared.at_plan(parent, |desk| {
                    Box::pin(async move {
                        let stays = desk.plan().await?.record.running;
                        let stay = stays.into_iter().find(|running| running.tool == "merge");
                        Ok((desk.look().await?, stay.map(|running| running.stay)))
                    })
                });
                let (sandbox, stay) = opened.await?;
                (Place::Parent(parent, sandbox), stay)
            }
        };
        Ok(Begun {
            landing,
            staged: None,
            written: Written {
                id: id.to_owned(),
                version,
                record,
            },
            deeds,
            place,
            stay,
            combined: std::collections::HashSet::new(),
            holds: Vec::new(),
        })
    }
}

/// What is staged somewhere, by the workspace that it is for.
pub(crate) async fn left_staged(shared: &Arc<Shared>) -> Result<Vec<(WorkspaceId, String)>, PlanError> {
    let mut places = vec![shared.staging()];
    for workspace in workspaces::list(shared).await? {
        // To read a directory of a file system that does not answer would take forever.
        if workspace.presence != Presence::Unreachable {
            places.push(workspace.record.root.join(landing::INSIDE));
        }
    }
    let names = blocking(move || {
        let entries = places.iter().filter_map(|place| fs::read_dir(place).ok());
        let names = entries.flatten().flatten().map(|entry| entry.file_name());
        names
            .filter_map(|name| name.into_string().ok())
            .collect::<BTreeSet<String>>()
    });
    let mut left = Vec::new();
    for name in names.await? {
        let Ok(id) = name.parse::<LandingId>() else {
            continue;
        };
        // What the log does not know belongs to another home, or to somebody else.
        let Some(stored) = shared.log.head(&streams::landing_stream(id.as_str())?).await? else {
            continue;
        };
        if let Some(record) = shared.log.readable(&stored, streams::landing_of(&stored))
            && record.home == shared.home_id
        {
            left.push((record.workspace, name));
        }
    }
    Ok(left)
}

/// Landings that were written down and never begun, with the versions of their streams.
pub(crate) async fn never_begun(
    shared: &Arc<Shared>,
) -> Result<Vec<(eventlog::StreamId, eventlog::Version)>, PlanError> {
    let heads = crate::store::heads(
        &shared.log,
        streams::LANDING_KIND,
        Some(LandingState::Written.name()),
    );
    let mut left = Vec::new();
    for stored in heads.await? {
        if let Some(record) = shared.log.readable(&stored, streams::landing_of(&stored))
            && record.home == shared.home_id
        {
            left.push((stored.stream, stored.version));
        }
    }
    Ok(left)
}
