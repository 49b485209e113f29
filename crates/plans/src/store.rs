//! Reading plans from the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use eventlog::{HeadsOrder, HeadsQuery, Log, Sequence, StoredHead, StreamId};
use protocol::{ChangesetId, PlanId};

use crate::streams::{self, CHANGESET_KIND};
use crate::{Change, Changeset, ChangesetRecord, Entry, ManifestId, Net, Plan, PlanError, Recorded, RelPath};

/// How many heads or events are read at a time.
const PAGE: u32 = 512;

pub(crate) async fn plan(log: &Log, id: PlanId) -> Result<Plan, PlanError> {
    let stored = log.head(&streams::plan_stream(id)?).await?;
    let stored = stored.ok_or(PlanError::NotFound(id))?;
    log.or_quarantine(&stored, streams::plan_of(&stored))
}

pub(crate) async fn heads(log: &Log, kind: &str, status: Option<&str>) -> Result<Vec<StoredHead>, PlanError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = log
            .heads(HeadsQuery {
                kind: Arc::from(kind),
                status: status.map(Arc::from),
                order: HeadsOrder::OldestFirst,
                after: after.take(),
                limit: PAGE,
            })
            .await?;
        let is_last = page.len() < PAGE as usize;
        after = page.last().map(|stored| stored.stream.clone());
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

/// The changesets of a plan, oldest first, without their changes.
pub(crate) async fn changesets(log: &Log, plan: PlanId) -> Result<Vec<Changeset>, PlanError> {
    let heads = heads(log, CHANGESET_KIND, Some(&plan.to_string())).await?;
    let mut changesets = heads
        .iter()
        .filter_map(|stored| Some((streams::id_of(&stored.stream)?, stored)))
        .map(|(id, stored)| {
            // One that cannot be read is not left out: the plan would seem to have changed less than it has.
            let record: ChangesetRecord = streams::parse(&stored.stream, &stored.head.body)?;
            Ok(Changeset {
                id,
                record,
                changes: Vec::new(),
            })
        })
        .collect::<Result<Vec<_>, PlanError>>()?;
    changesets.sort_by_key(|changeset| changeset.record.number);
    Ok(changesets)
}

pub(crate) async fn changeset(log: &Log, plan: PlanId, id: ChangesetId) -> Result<Changeset, PlanError> {
    let stream = streams::changeset_stream(id)?;
    let stored = log.head(&stream).await?.ok_or(PlanError::ChangesetNotFound(id))?;
    let record: ChangesetRecord = streams::parse(&stream, &stored.head.body)?;
    if record.plan != plan {
        return Err(PlanError::ChangesetNotFound(id));
    }
    let changes = recorded(log, &stream).await?;
    Ok(Changeset { id, record, changes })
}

/// The changes of a changeset, in order.
pub(crate) async fn recorded(log: &Log, stream: &StreamId) -> Result<Vec<Recorded>, PlanError> {
    let (mut changes, mut after) = (Vec::new(), Sequence::default());
    loop {
        let page = log.read(stream, after, PAGE).await?;
        for event in &page.events {
            changes.extend(streams::change_of(stream, event)?);
        }
        match page.events.last() {
            Some(last) if last.sequence < page.last => after = last.sequence,
            _ => return Ok(changes),
        }
    }
}

/// What a plan differs from its base in: all its changes, in the order of their effects.
pub(crate) async fn net(log: &Log, plan: &Plan) -> Result<Net, PlanError> {
    let mut in_order = BTreeMap::new();
    if plan.record.entries > plan.record.outdated_entries {
        for changeset in changesets(log, plan.id).await? {
            let stream = streams::changeset_stream(changeset.id)?;
            let counted = recorded(log, &stream).await?.into_iter();
            let counted = counted.filter(|recorded| recorded.entry > plan.record.outdated_entries);
            in_order.extend(counted.map(|recorded| (recorded.entry, recorded.change)));
        }
    }
    Ok(in_order.values().collect())
}

/// Every path that a plan has ever changed, whether that counts any more or not.
pub(crate) async fn touched(log: &Log, plan: PlanId) -> Result<BTreeSet<RelPath>, PlanError> {
    let mut paths = BTreeSet::new();
    for changeset in changesets(log, plan).await? {
        let stream = streams::changeset_stream(changeset.id)?;
        for recorded in recorded(log, &stream).await? {
            paths.extend(recorded.change.from);
            paths.insert(recorded.change.path);
        }
    }
    Ok(paths)
}

/// How many files and symlinks changed. Directories are no work of anybody.
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
