//! Landings in the log. Each is stored before anything is touched.

use eventlog::{
    Commit, CommitError, Durability, Entity, EntityEvent, Log, NewEvent, Sequence, Version, Write,
};
use serde::{Deserialize, Serialize};

use crate::landings::LandingRecord;
use crate::streams::{self, remove_unchanged};
use crate::{Effect, Entry, FileAttributes, PlanError, RelPath};

/// How many effects go into one event. Each refers to up to two contents, and a commit can hold 1,024 items.
const TOGETHER: usize = 256;
const EFFECTS_EVENT: &str = "effects";
/// The kind of the events that list file metadata.
const ATTRIBUTES_EVENT: &str = "attributes";
/// The maximum size of the metadata in one event.
const ATTRIBUTES_BYTES: usize = 128 * 1024;
/// How many events are read at a time.
const PAGE: u32 = 64;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct LandingEffects {
    /// On the tree, in path order.
    pub(super) effects: Vec<Effect>,
    /// The same effects by plan: what each plan does on top of the ones before it.
    pub(super) each: Vec<Vec<Effect>>,
    /// The metadata of files that are removed, for an undo that restores them.
    pub(super) had: KnownAttributes,
    /// The metadata that new files get.
    pub(super) given: KnownAttributes,
}

pub(super) type KnownAttributes = Vec<(RelPath, FileAttributes)>;

/// The body of an event that lists file metadata.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListedAttributes {
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
pub(crate) struct Listed {
    /// The plan they belong to; all plans together if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<u32>,
    effects: Vec<Effect>,
    /// Whether they list what was actually carried out, replacing those listed for the same paths before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    instead: bool,
}

#[derive(Debug)]
pub(crate) enum LandingEvent {
    Effects(Listed),
    Attributes(ListedAttributes),
}

impl EntityEvent for LandingEvent {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        let listed = match self {
            Self::Attributes(listed) => return NewEvent::json(ATTRIBUTES_EVENT, listed),
            Self::Effects(listed) => listed,
        };
        let entries = listed
            .effects
            .iter()
            .flat_map(|effect| [&effect.before, &effect.after]);
        let mut blobs: Vec<_> = entries.flatten().filter_map(Entry::content).collect();
        blobs.sort_unstable();
        blobs.dedup();
        Ok(NewEvent {
            blobs,
            ..NewEvent::json(EFFECTS_EVENT, listed)?
        })
    }
}

pub(super) type StoredLanding = Entity<LandingRecord>;

/// Records a landing. The contents that it refers to must be in the log. It is on disk when this returns, and only
/// then: the commits before the last one don't wait for the disk, since a stream never has a commit without those
/// before it.
pub(super) async fn write(
    log: &Log,
    id: String,
    record: LandingRecord,
    done: &LandingEffects,
) -> Result<StoredLanding, PlanError> {
    let mut events = listed(None, &done.effects);
    // A single plan does the same as all of them together.
    if done.each.len() > 1 {
        for (plan, effects) in (0..).zip(&done.each) {
            events.extend(listed(Some(plan), effects));
        }
    }
    events.extend(listed_attributes(AttributesOf::WhatGoes, &done.had));
    events.extend(listed_attributes(AttributesOf::WhatComes, &done.given));
    let mut landing = Entity::new(id, record);
    let last = events.split_off(events.len().saturating_sub(1));
    for event in events {
        let mut commit = Commit::one(write_of(&landing, &[event])?);
        commit.durability = Durability::Relaxed;
        landing.commit(log, commit).await?;
    }
    let write = write_of(&landing, &last)?;
    landing.commit(log, Commit::one(write)).await?;
    Ok(landing)
}

/// The first write has the head; later ones only append.
fn write_of(landing: &StoredLanding, events: &[LandingEvent]) -> Result<Write, CommitError> {
    if landing.version == Version::NONE {
        landing.write(events)
    } else {
        landing.append(events)
    }
}

fn listed(plan: Option<u32>, effects: &[Effect]) -> Vec<LandingEvent> {
    let event = |some: &[Effect]| {
        LandingEvent::Effects(Listed {
            plan,
            effects: some.to_vec(),
            instead: false,
        })
    };
    effects.chunks(TOGETHER).map(event).collect()
}

/// Events that list metadata, each small enough for a commit.
fn listed_attributes(of: AttributesOf, known: &KnownAttributes) -> Vec<LandingEvent> {
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
    let event = |attributes| LandingEvent::Attributes(ListedAttributes { of, attributes });
    parts.into_iter().map(event).collect()
}

/// Records that some effects were carried out differently than planned because someone had saved in the meantime.
pub(super) async fn correct(
    log: &Log,
    landing: &mut StoredLanding,
    plan: Option<u32>,
    effects: &[Effect],
) -> Result<(), PlanError> {
    for some in effects.chunks(TOGETHER) {
        let event = LandingEvent::Effects(Listed {
            plan,
            effects: some.to_vec(),
            instead: true,
        });
        let write = landing.append(&[event])?;
        landing.commit(log, Commit::one(write)).await?;
    }
    Ok(())
}

/// Forgets a landing that was never begun.
pub(super) async fn forget(log: &Log, landing: &StoredLanding) -> Result<(), PlanError> {
    remove_unchanged(log, vec![landing.at()?]).await.map(drop)
}

pub(super) async fn effects(log: &Log, landing: &StoredLanding) -> Result<LandingEffects, PlanError> {
    let stream = StoredLanding::stream_of(&landing.id)?;
    let plans = landing.record.plans.len();
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
            // A damaged event isn't a list of effects, and the landing isn't carried out without it.
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

pub(super) async fn read(log: &Log, id: &str) -> Result<StoredLanding, PlanError> {
    let found = StoredLanding::read(log, id.to_owned()).await?;
    found.ok_or_else(|| PlanError::Base(format!("the landing {id} is not in the log")))
}
