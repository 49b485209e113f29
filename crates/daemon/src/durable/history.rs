//! The streams of breakers that are held by hand.

use std::collections::HashSet;

use eventlog::{
    BadName, Commit, CommitError, Event, Head, Log, LogError, NewEvent, Sequence, StoredHead, StreamId,
    Version, Write,
};
use futures_util::future::try_join_all;
use kernel::{CircuitBreaker, CircuitSnapshot, CircuitState};
use protocol::HomeId;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::overrides::Who;
use crate::times;

pub(super) const KIND: &str = "breaker";

/// Who shares the breakers that are held by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// One home, if its log isn't shared.
    Home(HomeId),
    /// All daemons on a shared log: what is held by hand on one machine is held on all.
    Everybody,
}

impl Holder {
    /// The part of a stream's name between the kind and the name of the breaker.
    pub(crate) fn prefix(self) -> String {
        match self {
            Self::Home(home_id) => format!("{home_id}/"),
            Self::Everybody => "everybody/".to_owned(),
        }
    }
}

/// A manual change, as stored in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    ForcedOpen,
    ForcedClosed,
    /// It is automatic again.
    Reset,
}

/// The transitions that leave a breaker held by hand.
const HELD: [Transition; 2] = [Transition::ForcedOpen, Transition::ForcedClosed];

impl Transition {
    fn event_kind(self) -> &'static str {
        match self {
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
            Self::Reset => "reset",
        }
    }

    /// The status of the head afterwards.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
            Self::Reset => "automatic",
        }
    }

    /// The write that makes this change to a breaker. Without a `who`, the daemon makes it.
    pub(super) fn write(
        self,
        stream: StreamId,
        expected: Version,
        name: &str,
        who: Option<Who>,
    ) -> Result<Write, CommitError> {
        let by = who.map(|who| By {
            request_id: who.request_id.to_string(),
            transport: who.transport.name().to_owned(),
        });
        let event = match by {
            Some(by) => NewEvent::json(self.event_kind(), &by)?,
            None => NewEvent::json(self.event_kind(), &json!({}))?,
        };
        Ok(Write {
            stream,
            expected,
            head: Some(Head::json(KIND, self.status(), &json!({ "name": name }))?),
            events: vec![event],
        })
    }
}

/// Who made a change: the body of its event.
#[derive(Debug, Serialize, Deserialize)]
struct By {
    request_id: String,
    transport: String,
}

#[derive(Clone, Debug)]
pub(crate) struct BreakerHistory {
    pub(crate) stream: StreamId,
}

/// Some events of a history.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Oldest first.
    pub(crate) events: Vec<protocol::BreakerEvent>,
}

impl BreakerHistory {
    pub(crate) fn of(holder: Holder, name: &str) -> Result<Self, BadName> {
        let stream = StreamId::new(&format!("{}{name}", prefix(holder)))?;
        Ok(Self { stream })
    }

    /// The events after a position.
    pub(crate) async fn after(&self, log: &Log, place: u64, limit: u32) -> Result<Past, LogError> {
        let page = log.read(&self.stream, Sequence::from_u64(place), limit).await?;
        Ok(Past {
            first: page.first.get(),
            last: page.last.get(),
            events: page.events.iter().map(to_wire).collect(),
        })
    }

    /// The last events before a position, or the newest ones.
    pub(crate) async fn before(&self, log: &Log, place: Option<u64>, limit: u32) -> Result<Past, LogError> {
        let newest = log
            .head(&self.stream)
            .await?
            .map_or(0, |head| head.last_sequence.get());
        let end = place.unwrap_or(u64::MAX).min(newest.saturating_add(1));
        let start = end.saturating_sub(u64::from(limit) + 1);
        let mut past = self.after(log, start, limit).await?;
        past.events.retain(|event| event.sequence < end);
        Ok(past)
    }
}

fn prefix(holder: Holder) -> String {
    format!("{KIND}/{}", holder.prefix())
}

pub(crate) fn to_wire(event: &Event) -> protocol::BreakerEvent {
    // If another version wrote a body that this one can't read, the event still counts.
    let by: Option<By> = serde_json::from_slice(&event.body).ok();
    protocol::BreakerEvent {
        sequence: event.sequence.get(),
        at: times::rfc3339_ms(event.at_ms),
        kind: event.kind.to_string(),
        by: by.map(|by| protocol::Actor {
            request_id: by.request_id,
            transport: by.transport,
        }),
    }
}

/// A breaker that is held by hand: its name, how it is held, and its head.
type Held = (String, Transition, StoredHead);

/// The breakers that each of these holds by hand.
async fn held<const N: usize>(log: &Log, holders: [Holder; N]) -> Result<[Vec<Held>; N], LogError> {
    let of = |transition: Transition| async move {
        let heads = log.all_heads(KIND, Some(transition.status())).await?;
        let found: Vec<_> = heads.into_iter().map(|head| (transition, head)).collect();
        Ok::<_, LogError>(found)
    };
    let all = try_join_all(HELD.map(of)).await?.concat();
    Ok(holders.map(|holder| {
        let prefix = prefix(holder);
        let of_holder = |(transition, head): &(Transition, StoredHead)| {
            let name = head.stream.as_str().strip_prefix(&prefix)?.to_owned();
            Some((name, *transition, head.clone()))
        };
        all.iter().filter_map(of_holder).collect()
    }))
}

/// Hands the breakers that `from` holds over to `to`, because the log is now shared or no longer is; then does the same as
/// [`follow`].
pub(super) async fn take_over(
    log: &Log,
    from: Holder,
    to: Holder,
    breakers: &CircuitBreaker,
) -> Result<usize, CommitError> {
    let [left, ours] = held(log, [from, to]).await?;
    if left.is_empty() {
        return Ok(bring(&ours, breakers));
    }
    hand_over(log, left, to).await?;
    Ok(follow(log, to, breakers).await?)
}

/// Holds exactly the breakers that the log says are held by hand, and returns their number. Only the task that owns them
/// may call this.
pub(super) async fn follow(log: &Log, holder: Holder, breakers: &CircuitBreaker) -> Result<usize, LogError> {
    let [held] = held(log, [holder]).await?;
    Ok(bring(&held, breakers))
}

fn bring(held: &[Held], breakers: &CircuitBreaker) -> usize {
    let mut left_out = 0;
    for (name, transition, _) in held {
        if breakers.get(name).as_ref().and_then(held_by_hand) != Some(*transition)
            && !apply(breakers, name, *transition)
        {
            left_out += 1;
        }
    }
    if left_out > 0 {
        tracing::error!(
            left_out,
            "there is no room for all breakers that are held by hand"
        );
    }
    let names: HashSet<&str> = held.iter().map(|(name, ..)| name.as_str()).collect();
    for circuit in breakers.snapshot().circuits {
        if held_by_hand(&circuit).is_some() && !names.contains(&*circuit.name) {
            breakers.reset(&circuit.name);
        }
    }
    held.len() - left_out
}

async fn hand_over(log: &Log, left: Vec<Held>, to: Holder) -> Result<(), CommitError> {
    for (name, transition, stored) in left {
        let target = BreakerHistory::of(to, &name)?.stream;
        let expected = log
            .head(&target)
            .await?
            .map_or(Version::NONE, |head| head.version);
        let writes = vec![
            transition.write(target, expected, &name, None)?,
            Transition::Reset.write(stored.stream, stored.version, &name, None)?,
        ];
        match log.commit(Commit::all(writes)).await {
            // Another daemon has changed it since, and its change counts.
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How a circuit is held by hand, if it is.
pub(super) fn held_by_hand(circuit: &CircuitSnapshot) -> Option<Transition> {
    match circuit.state {
        CircuitState::ForcedOpen => Some(Transition::ForcedOpen),
        CircuitState::ForcedClosed => Some(Transition::ForcedClosed),
        CircuitState::Closed | CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => None,
    }
}

/// Brings a breaker into the state that a head has.
pub(super) fn agree(breakers: &CircuitBreaker, name: &str, status: &str) {
    let wanted = HELD.into_iter().find(|transition| transition.status() == status);
    let held = breakers.get(name).as_ref().and_then(held_by_hand);
    if wanted != held {
        apply(breakers, name, wanted.unwrap_or(Transition::Reset));
    }
}

/// Makes a change in memory. Returns whether there was room for it.
pub(super) fn apply(breakers: &CircuitBreaker, name: &str, transition: Transition) -> bool {
    match transition {
        Transition::ForcedOpen => breakers.force_open(name),
        Transition::ForcedClosed => breakers.force_closed(name),
        Transition::Reset => breakers.reset(name),
    }
}
