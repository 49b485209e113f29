//! Recent activity across the whole daemon: the newest events of the streams that changed last.
//!
//! The log has a stream for each session, plan, job and breaker, but no stream for all of them, because every commit
//! would have to write to it. So this visits the streams in the order in which they last changed and reads the newest
//! events of each, until no remaining stream can have anything newer. The cost is bounded: it considers a limited
//! number of heads per kind and reads a limited number of events per stream.
//!
//! Language servers have no stream. For them, it reports the last change, which is in memory.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::plans::PlanError;
use ::sessions::SessionError;
use eventlog::{LogError, RecentlyChangedQuery, Sequence, StoredHead};
use futures_util::{StreamExt, stream};
use protocol::{Activity, ActivityKind, PlanId, SessionId};

use crate::app::App;
use crate::durable::event_to_wire;
use crate::times::rfc3339_ms;
use crate::{jobs, plans, sessions};

/// How many streams of a kind to consider, newest first, when looking for those that changed last. An older stream that
/// changes again isn't found, but more unfinished plans than this are unlikely.
const AMONG: u32 = 2000;
/// How many events to read from one stream at most. Its own page shows more.
const EVENTS_OF_ONE: u64 = 20;

/// How many streams to read concurrently. A few reads may turn out unnecessary, but none waits for another.
const READS_AT_ONCE: usize = 8;

/// The kinds that have streams, with the stream kind of each.
const STREAMS: [(ActivityKind, &str); 5] = [
    (ActivityKind::Session, "session"),
    (ActivityKind::Plan, "plan"),
    (ActivityKind::Job, "job"),
    (ActivityKind::Breaker, "breaker"),
    (ActivityKind::Daemon, "boot"),
];

/// The stream prefixes that can change while this daemon runs, for callers that wait for activity.
pub(crate) const PREFIXES: [&str; 4] = ["session", "plan", "job", "breaker"];

/// The newest activity first, of one kind or of all.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn newest(
    app: &App,
    kind: Option<ActivityKind>,
    limit: u32,
) -> Result<Vec<Activity>, LogError> {
    let is_wanted = |each: ActivityKind| kind.is_none_or(|kind| kind == each);
    let mut heads: Vec<(ActivityKind, StoredHead)> = Vec::new();
    for (each, stream_kind) in STREAMS.into_iter().filter(|(each, _)| is_wanted(*each)) {
        let query = RecentlyChangedQuery {
            kind: Arc::from(stream_kind),
            among: AMONG,
            limit,
        };
        let found = app.durable.log.recently_changed(query).await?;
        heads.extend(found.into_iter().map(|head| (each, head)));
    }
    // Versions are never reused across streams, and only grow.
    heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.version));

    let mut found = Vec::new();
    if is_wanted(ActivityKind::Server) {
        found.extend(servers(app));
    }
    let reads = heads
        .into_iter()
        .map(|(each, head)| async move { events_of(app, each, &head).await });
    let mut reads = stream::iter(reads).buffered(READS_AT_ONCE);
    while let Some(events) = reads.next().await {
        let mut events = events?;
        // Among events with the same time, the later one comes first.
        events.reverse();
        let newest = events.iter().map(|event| event.at.clone()).max();
        found.extend(events);
        if newest.is_some_and(|newest| is_complete(&mut found, limit as usize, &newest)) {
            break;
        }
    }
    found.sort_by(|one, other| other.at.cmp(&one.at));
    let mut folded = fold(found);
    folded.truncate(limit as usize);
    Ok(folded)
}

/// Whether enough of the found events are newer than the newest event of the stream that was read last. The remaining
/// streams changed before it.
fn is_complete(found: &mut [Activity], limit: usize, newest: &str) -> bool {
    if found.len() < limit {
        return false;
    }
    found.sort_by(|one, other| other.at.cmp(&one.at));
    let newer = found.iter().take_while(|event| event.at.as_str() > newest);
    // Events that will be folded count as one.
    fold_count(newer) >= limit
}

fn is_same(one: &Activity, other: &Activity) -> bool {
    (one.kind, &one.id, &one.event, &one.actor) == (other.kind, &other.id, &other.event, &other.actor)
}

fn fold_count<'a>(events: impl Iterator<Item = &'a Activity>) -> usize {
    let mut last: Option<&Activity> = None;
    let mut count = 0;
    for event in events {
        if !last.is_some_and(|last| is_same(last, event)) {
            count += 1;
        }
        last = Some(event);
    }
    count
}

/// Folds consecutive repeats into one, with the time and text of the newest.
fn fold(events: Vec<Activity>) -> Vec<Activity> {
    let mut folded: Vec<Activity> = Vec::new();
    for event in events {
        match folded.last_mut() {
            Some(last) if is_same(last, &event) => last.count += event.count,
            _ => folded.push(event),
        }
    }
    folded
}

/// The newest events of one stream. Empty if its subject has been removed or can't be read.
async fn events_of(app: &App, kind: ActivityKind, head: &StoredHead) -> Result<Vec<Activity>, LogError> {
    let after = Sequence::from_u64(head.last_sequence.get().saturating_sub(EVENTS_OF_ONE));
    let name = head.stream.as_str();
    let id = name.split_once('/').map_or(name, |(_, id)| id);
    match kind {
        ActivityKind::Session => match session(app, id, after).await {
            Err(SessionError::Log(error)) => Err(error),
            told => Ok(told.unwrap_or_default()),
        },
        ActivityKind::Plan => match plan(app, id, after).await {
            Err(PlanError::Log(error)) => Err(error),
            told => Ok(told.unwrap_or_default()),
        },
        ActivityKind::Job => job(app, head, after).await,
        ActivityKind::Breaker => breaker(app, head, id, after).await,
        ActivityKind::Daemon => life(app, head, id, after).await,
        ActivityKind::Server => Ok(Vec::new()),
    }
}

/// What all events of a stream have in common.
struct About {
    kind: ActivityKind,
    id: String,
    title: String,
}

impl About {
    fn event(&self, at: String, event: String, actor: String, text: String) -> Activity {
        Activity {
            at,
            kind: self.kind,
            id: self.id.clone(),
            title: self.title.clone(),
            event,
            actor,
            text,
            count: 1,
        }
    }
}

async fn session(app: &App, id: &str, after: Sequence) -> Result<Vec<Activity>, SessionError> {
    let Ok(parsed) = id.parse::<SessionId>() else {
        return Ok(Vec::new());
    };
    let found = app.sessions.get(parsed).await?;
    let page = app
        .sessions
        .happenings(parsed, after, EVENTS_OF_ONE as u32)
        .await?;
    let about = About {
        kind: ActivityKind::Session,
        id: id.to_owned(),
        title: found.record.title,
    };
    let told = page.events.iter().map(|event| {
        let moment = sessions::wire::moment_to_wire(event);
        about.event(moment.at, moment.event, moment.actor, moment.text)
    });
    Ok(told.collect())
}

async fn plan(app: &App, id: &str, after: Sequence) -> Result<Vec<Activity>, PlanError> {
    let Ok(parsed) = id.parse::<PlanId>() else {
        return Ok(Vec::new());
    };
    let found = app.plans.get(parsed).await?;
    let moments = app.plans.timeline(parsed, after, EVENTS_OF_ONE as u32).await?;
    let about = About {
        kind: ActivityKind::Plan,
        id: id.to_owned(),
        title: found.record.facts.title.clone(),
    };
    let told = moments.iter().map(|moment| {
        let moment = plans::wire::moment_to_wire(moment);
        about.event(moment.at, moment.event, moment.actor, moment.text)
    });
    Ok(told.collect())
}

async fn job(app: &App, head: &StoredHead, after: Sequence) -> Result<Vec<Activity>, LogError> {
    let Some(found) = app.jobs.of_head(head) else {
        return Ok(Vec::new());
    };
    let moments = app.jobs.timeline(found.id, after).await?;
    let about = About {
        kind: ActivityKind::Job,
        id: found.id.to_string(),
        title: found.record.facts.title.clone(),
    };
    let told = moments.iter().map(|moment| {
        let moment = jobs::wire::moment_to_wire(moment);
        about.event(moment.at, moment.event, String::new(), moment.text)
    });
    Ok(told.collect())
}

/// Other homes on the same database report their own streams.
async fn breaker(app: &App, head: &StoredHead, id: &str, after: Sequence) -> Result<Vec<Activity>, LogError> {
    let Some(name) = id.strip_prefix(&app.durable.holder.prefix()) else {
        return Ok(Vec::new());
    };
    let about = About {
        kind: ActivityKind::Breaker,
        id: name.to_owned(),
        title: name.to_owned(),
    };
    let page = app
        .durable
        .log
        .read(&head.stream, after, EVENTS_OF_ONE as u32)
        .await?;
    let told = page.events.iter().map(|event| {
        let event = event_to_wire(event);
        about.event(event.at, event.kind, String::new(), String::new())
    });
    Ok(told.collect())
}

fn servers(app: &App) -> Vec<Activity> {
    let now = SystemTime::now();
    let told = app.language_servers.states().into_iter().map(|server| {
        let since = now.checked_sub(Duration::from_millis(server.since_ms));
        let about = About {
            kind: ActivityKind::Server,
            id: server.id,
            title: format!("{} in {}", server.server, server.root),
        };
        let event = serde_json::to_value(server.state).ok();
        let event = event.and_then(|event| event.as_str().map(str::to_owned));
        about.event(
            written(since.unwrap_or(now)),
            event.unwrap_or_default(),
            String::new(),
            server.last_error.unwrap_or_default(),
        )
    });
    told.collect()
}

/// When daemons of this home started and ended. For one that crashed, it's when the next daemon noticed.
async fn life(app: &App, head: &StoredHead, id: &str, after: Sequence) -> Result<Vec<Activity>, LogError> {
    let mut known = app.durable.boots.newest(usize::MAX).iter();
    let Some(boot) = known.find(|boot| boot.id == id) else {
        return Ok(Vec::new());
    };
    let about = About {
        kind: ActivityKind::Daemon,
        id: id.to_owned(),
        title: format!("process {}", boot.pid),
    };
    let page = app
        .durable
        .log
        .read(&head.stream, after, EVENTS_OF_ONE as u32)
        .await?;
    // Being ready isn't news once the daemon has started.
    let told = page.events.iter().filter(|event| &*event.kind != "ready");
    let told = told.map(|event| {
        let cause = match &*event.kind {
            "draining" | "stopped" => boot.cause.clone(),
            _ => None,
        };
        let at = rfc3339_ms(event.at_ms);
        about.event(
            at,
            event.kind.to_string(),
            String::new(),
            cause.unwrap_or_default(),
        )
    });
    Ok(told.collect())
}

fn written(time: SystemTime) -> String {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    rfc3339_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(second: u32, id: &str, event: &str) -> Activity {
        Activity {
            at: format!("2026-01-31T09:30:{second:02}.000Z"),
            kind: ActivityKind::Plan,
            id: id.to_owned(),
            title: String::new(),
            event: event.to_owned(),
            actor: "claude".to_owned(),
            text: second.to_string(),
            count: 1,
        }
    }

    #[test]
    fn the_same_in_a_row_is_told_once() {
        let events = vec![
            event(9, "a", "changed"),
            event(8, "a", "changed"),
            event(7, "b", "changed"),
            event(6, "a", "changed"),
            event(5, "a", "opened"),
        ];
        assert_eq!(fold_count(events.iter()), 4);
        let twice = Activity {
            count: 2,
            ..event(9, "a", "changed")
        };
        assert_eq!(
            fold(events),
            [
                twice,
                event(7, "b", "changed"),
                event(6, "a", "changed"),
                event(5, "a", "opened")
            ]
        );
    }

    #[test]
    fn reading_ends_when_nothing_newer_can_come() {
        let found = [event(9, "a", "x"), event(8, "b", "x"), event(4, "c", "x")];
        for (limit, newest, expected) in [
            // All remaining streams changed before the one that was read last.
            (2, "2026-01-31T09:30:04.000Z", true),
            // Another stream may be as new as the last one.
            (3, "2026-01-31T09:30:04.000Z", false),
            (2, "2026-01-31T09:30:08.000Z", false),
            (4, "2026-01-31T09:30:01.000Z", false),
        ] {
            assert_eq!(
                is_complete(&mut found.clone(), limit, newest),
                expected,
                "{limit} {newest}"
            );
        }
        // Folded events leave room.
        let mut same = [event(9, "a", "x"), event(8, "a", "x"), event(4, "c", "x")];
        assert!(!is_complete(&mut same, 2, "2026-01-31T09:30:04.000Z"));
    }
}
