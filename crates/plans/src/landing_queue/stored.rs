//! A landing, written down in the log before anything is touched.

use eventlog::{Commit, CommitError, Durability, Log, NewEvent, Sequence, Version, Write};
use serde::{Deserialize, Serialize};

use crate::landings::LandingRecord;
use crate::{Effect, Entry, FileAttributes, PlanError, RelPath, streams};

/// How many effects go into one event. Each refers to up to two contents, and a commit has room for 1,024 things.
const TOGETHER: usize = 256;
/// The kind of the events that list effects.
const EFFECTS_EVENT: &str = "effects";
/// The kind of the events that list what files have beside their content.
const ATTRIBUTES_EVENT: &str = "attributes";
/// How much of that goes into one event.
const ATTRIBUTES_BYTES: usize = 128 * 1024;
/// How many events are read at a time.
const PAGE: u32 = 64;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct LandingEffects {
    /// To the tree, in the order of paths.
    pub(super) effects: Vec<Effect>,
    /// The same, plan by plan: what each does on top of the ones before it.
    pub(super) each: Vec<Vec<Effect>>,
    /// What files that go have beside their content, for an undo that brings them back.
    pub(super) had: KnownAttributes,
    /// What files that come are given beside their content.
    pub(super) given: KnownAttributes,
}

/// What files have beside their content, by path.
pub(super) type KnownAttributes = Vec<(RelPath, FileAttributes)>;

/// The body of an event that lists what files have beside their content.
#[derive(Debug, Serialize, Deserialize)]
struct ListedAttributes {
    of: AttributesOf,
    attributes: KnownAttributes,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AttributesOf {
    WhatGoes,
    WhatComes,
}

/// The body of an event that lists effects.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    /// Of which plan they are; of all together if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<u32>,
    effects: Vec<Effect>,
    /// Whether they are as they were carried out, in place of those of the same path that were listed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    instead: bool,
}

/// A landing in the log, with the version that the next write must name.
#[derive(Clone, Debug)]
pub(super) struct StoredLanding {
    pub(super) id: String,
    pub(super) version: Version,
    pub(super) record: LandingRecord,
}

/// Writes a landing down. The contents that it names must be in the log. It is on the disk when this is done, and only
/// then: the commits before the last one do not wait for it, since no commit of a stream is there without those before it.
pub(super) async fn write(
    log: &Log,
    id: &str,
    record: LandingRecord,
    done: &LandingEffects,
) -> Result<StoredLanding, PlanError> {
    let mut events = listed(None, &done.effects)?;
    // One plan alone does what all together do.
    if done.each.len() > 1 {
        for (plan, effects) in (0..).zip(&done.each) {
            events.extend(listed(Some(plan), effects)?);
        }
    }
    events.extend(listed_attributes(AttributesOf::WhatGoes, &done.had)?);
    events.extend(listed_attributes(AttributesOf::WhatComes, &done.given)?);
    let mut written = StoredLanding {
        id: id.to_owned(),
        version: Version::NONE,
        record,
    };
    let mut head = Some(streams::landing_head(&written.record)?);
    let last = events.split_off(events.len().saturating_sub(1));
    for event in events {
        append(log, &mut written, head.take(), vec![event], Durability::Relaxed).await?;
    }
    append(log, &mut written, head, last, Durability::Durable).await?;
    Ok(written)
}

fn listed(plan: Option<u32>, effects: &[Effect]) -> Result<Vec<NewEvent>, PlanError> {
    effects
        .chunks(TOGETHER)
        .map(|some| event(plan, some, Instead::No))
        .collect()
}

/// Events that list attributes, each of a size that a commit has room for.
fn listed_attributes(of: AttributesOf, known: &KnownAttributes) -> Result<Vec<NewEvent>, PlanError> {
    let mut parts: Vec<KnownAttributes> = Vec::new();
    let mut room = 0;
    for (path, attributes) in known {
        let bytes = path.as_bytes().len() + attributes.bytes();
        if bytes > room || parts.is_empty() {
            parts.push(Vec::new());
            room = ATTRIBUTES_BYTES;
        }
        room = room.saturating_sub(bytes);
        if let Some(part) = parts.last_mut() {
            part.push((path.clone(), attributes.clone()));
        }
    }
    let event = |attributes| {
        let listed = ListedAttributes { of, attributes };
        Ok(NewEvent::json(ATTRIBUTES_EVENT, &listed)?)
    };
    parts.into_iter().map(event).collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Instead {
    No,
    Yes,
}

fn event(plan: Option<u32>, effects: &[Effect], instead: Instead) -> Result<NewEvent, PlanError> {
    let mut blobs: Vec<_> = effects
        .iter()
        .flat_map(|effect| [&effect.before, &effect.after])
        .flatten()
        .filter_map(Entry::content)
        .collect();
    blobs.sort_unstable();
    blobs.dedup();
    let listed = Listed {
        plan,
        effects: effects.to_vec(),
        instead: instead == Instead::Yes,
    };
    Ok(NewEvent {
        blobs,
        ..NewEvent::json(EFFECTS_EVENT, &listed)?
    })
}

async fn append(
    log: &Log,
    written: &mut StoredLanding,
    head: Option<eventlog::Head>,
    events: Vec<NewEvent>,
    durability: Durability,
) -> Result<(), PlanError> {
    let write = Write {
        stream: streams::landing_stream(&written.id)?,
        expected: written.version,
        head,
        events,
    };
    let mut commit = Commit::one(write);
    commit.durability = durability;
    let committed = log.commit(commit).await?;
    if let Some(committed) = committed.first() {
        written.version = committed.version;
    }
    Ok(())
}

/// Writes down that some effects were carried out in another way than was planned: somebody had saved meanwhile.
pub(super) async fn correct(
    log: &Log,
    written: &mut StoredLanding,
    plan: Option<u32>,
    effects: &[Effect],
) -> Result<(), PlanError> {
    for some in effects.chunks(TOGETHER) {
        let event = event(plan, some, Instead::Yes)?;
        append(log, written, None, vec![event], Durability::Durable).await?;
    }
    Ok(())
}

/// Forgets a landing that was never begun.
pub(super) async fn forget(log: &Log, written: &StoredLanding) -> Result<(), PlanError> {
    let stream = streams::landing_stream(&written.id)?;
    match log.remove(vec![(stream, written.version)]).await {
        Ok(()) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn done(log: &Log, id: &str, plans: usize) -> Result<LandingEffects, PlanError> {
    let stream = streams::landing_stream(id)?;
    let mut all = Lists::default();
    let mut each: Vec<Lists> = (0..plans).map(|_| Lists::default()).collect();
    let (mut had, mut given) = (KnownAttributes::new(), KnownAttributes::new());
    let mut after = Sequence::default();
    loop {
        let page = log.read(&stream, after, PAGE).await?;
        for event in page
            .events
            .iter()
            .filter(|event| &*event.kind == ATTRIBUTES_EVENT)
        {
            let listed: ListedAttributes = streams::parse(&stream, &event.body)?;
            match listed.of {
                AttributesOf::WhatGoes => had.extend(listed.attributes),
                AttributesOf::WhatComes => given.extend(listed.attributes),
            }
        }
        let listed = |event: &&eventlog::Event| {
            // One that was damaged is no list of effects, and the landing is not carried out without it.
            [EFFECTS_EVENT, eventlog::DAMAGED_EVENT].contains(&&*event.kind)
        };
        for event in page.events.iter().filter(listed) {
            let listed: Listed = streams::parse(&stream, &event.body)?;
            let list = match listed.plan {
                None => Some(&mut all),
                Some(plan) => each.get_mut(plan as usize),
            };
            if let Some(list) = list {
                list.take(listed);
            }
        }
        match page.events.last() {
            Some(last) if last.sequence < page.last => after = last.sequence,
            _ => break,
        }
    }
    let effects = all.0;
    let each = match plans {
        1 => vec![effects.clone()],
        _ => each.into_iter().map(|list| list.0).collect(),
    };
    Ok(LandingEffects {
        effects,
        each,
        had,
        given,
    })
}

#[derive(Debug, Default)]
struct Lists(Vec<Effect>);

impl Lists {
    fn take(&mut self, listed: Listed) {
        if !listed.instead {
            self.0.extend(listed.effects);
            return;
        }
        for effect in listed.effects {
            match self.0.iter_mut().find(|known| known.path == effect.path) {
                Some(known) => *known = effect,
                None => self.0.push(effect),
            }
        }
    }
}

pub(super) async fn stored(log: &Log, id: &str) -> Result<(Version, LandingRecord), PlanError> {
    let stream = streams::landing_stream(id)?;
    let stored = log.head(&stream).await?;
    let stored = stored.ok_or_else(|| PlanError::Base(format!("the landing {id} is not in the log")))?;
    Ok((stored.version, streams::parse(&stream, &stored.head.body)?))
}

pub(super) async fn record(log: &Log, id: &str) -> Result<LandingRecord, PlanError> {
    Ok(stored(log, id).await?.1)
}
