//! Reading plans from the log.

use std::collections::{BTreeMap, BTreeSet};

use eventlog::{Entity, EntityRecord, Log, Sequence};
use protocol::{ChangesetId, PlanId, PlanState};

use crate::{
    Change, Changeset, ChangesetRecord, Entry, ManifestId, Net, Plan, PlanError, Recorded, RelPath, streams,
};

/// How many events are read at a time.
const PAGE: u32 = 512;

pub(crate) async fn plan(log: &Log, id: PlanId) -> Result<Plan, PlanError> {
    Plan::read(log, id).await?.ok_or(PlanError::NotFound(id))
}

pub(crate) async fn plans_in(log: &Log, states: &[PlanState]) -> Result<Vec<Plan>, PlanError> {
    let of = |state: &PlanState| Plan::all(log, Some(state.as_str()));
    let plans = futures_util::future::try_join_all(states.iter().map(of)).await?;
    Ok(plans.into_iter().flatten().collect())
}

/// The changesets of a plan, oldest first, without their changes.
pub(crate) async fn changesets(log: &Log, plan: PlanId) -> Result<Vec<Changeset>, PlanError> {
    let heads = log
        .all_heads(ChangesetRecord::KIND, Some(&plan.to_string()))
        .await?;
    // An unreadable changeset isn't skipped: the plan would seem to have fewer changes than it has.
    let changesets = heads.iter().map(|stored| {
        let Entity { id, record, .. } = Entity::<ChangesetRecord>::of_head(log, stored)?;
        Ok(Changeset {
            id,
            record,
            changes: Vec::new(),
        })
    });
    let mut changesets = changesets.collect::<Result<Vec<_>, PlanError>>()?;
    changesets.sort_by_key(|changeset| changeset.record.number);
    Ok(changesets)
}

pub(crate) async fn changeset(log: &Log, plan: PlanId, id: ChangesetId) -> Result<Changeset, PlanError> {
    let Entity { record, .. } = changeset_head(log, plan, id).await?;
    let changes = recorded(log, id).await?;
    Ok(Changeset { id, record, changes })
}

pub(crate) async fn changeset_head(
    log: &Log,
    plan: PlanId,
    id: ChangesetId,
) -> Result<Entity<ChangesetRecord>, PlanError> {
    let found = Entity::<ChangesetRecord>::read(log, id).await?;
    found
        .filter(|changeset| changeset.record.plan == plan)
        .ok_or(PlanError::ChangesetNotFound(id))
}

/// The changes of a changeset, in order.
pub(crate) async fn recorded(log: &Log, changeset: ChangesetId) -> Result<Vec<Recorded>, PlanError> {
    let stream = Entity::<ChangesetRecord>::stream_of(&changeset)?;
    let (mut changes, mut after) = (Vec::new(), Sequence::default());
    loop {
        let page = log.read(&stream, after, PAGE).await?;
        for event in &page.events {
            changes.extend(streams::change_of(&stream, event)?);
        }
        match page.events.last() {
            Some(last) if last.sequence < page.last => after = last.sequence,
            _ => return Ok(changes),
        }
    }
}

/// A plan's net changes from its base: all its changes, in the order of their effects.
pub(crate) async fn net(log: &Log, plan: &Plan) -> Result<Net, PlanError> {
    let mut in_order = BTreeMap::new();
    if plan.record.entries > plan.record.outdated_entries {
        for changeset in changesets(log, plan.id).await? {
            let counted = recorded(log, changeset.id).await?.into_iter();
            let counted = counted.filter(|recorded| recorded.entry > plan.record.outdated_entries);
            in_order.extend(counted.map(|recorded| (recorded.entry, recorded.change)));
        }
    }
    Ok(in_order.values().collect())
}

/// Every path that a plan has ever changed, whether or not the change still counts.
pub(crate) async fn touched(log: &Log, plan: PlanId) -> Result<BTreeSet<RelPath>, PlanError> {
    let mut paths = BTreeSet::new();
    for changeset in changesets(log, plan).await? {
        for recorded in recorded(log, changeset.id).await? {
            paths.extend(recorded.change.from);
            paths.insert(recorded.change.path);
        }
    }
    Ok(paths)
}

/// How many files and symlinks changed. Directories don't count as work.
pub(crate) fn count_files(changes: &[Change]) -> u64 {
    let is_file = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| !entry.is_directory());
    let files = changes
        .iter()
        .filter(|change| is_file(&change.before) || is_file(&change.after));
    files.count() as u64
}

pub(crate) fn fingerprint(changes: &[Change]) -> Result<ManifestId, PlanError> {
    Ok(ManifestId(
        *blake3::hash(&eventlog::json_body(&changes)?).as_bytes(),
    ))
}
