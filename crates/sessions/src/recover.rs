//! Handles what an earlier boot or another daemon left behind: abandoned turns, queued prompts, unfinished removals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use eventlog::{ChangesEnd, CommitError, StreamChanges};
use futures_util::TryFutureExt as _;
use kernel::Deadline;
use protocol::{HomeId, SessionId, SessionState, TurnError, TurnState};

use crate::error::SessionError;
use crate::inner::SessionsInner;
use crate::machines::{home_of, look_for};
use crate::options::AfterCrash;
use crate::owner::{Sharing, is_gone};
use crate::runner::go_on;
use crate::session::{REMOVING, Session};
use crate::state::{self, End};
use crate::store::{self, Made, On};
use crate::turn::Turn;

/// How often to check for turns that other daemons have abandoned.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The shortest pause between two scans. Sessions change often, and most changes don't concern this daemon.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// Sessions with queued prompts when a daemon starts.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Sessions to resume, if this is their machine.
    pub(crate) begin: Vec<SessionId>,
    /// Sessions that wait for the next prompt, with the number of their queued prompts.
    pub(crate) held: BTreeMap<SessionId, u64>,
}

/// Before the first request: ends the turns that earlier boots of this daemon abandoned, and finishes removals. Returns the
/// sessions with queued prompts.
pub(crate) async fn at_start(shared: &Arc<SessionsInner>) -> Result<Waiting, SessionError> {
    // No client can send a prompt yet.
    let ((), removing, queued) = tokio::try_join!(
        bury_all(shared, &Scope::Ours),
        Session::all(&shared.log, Some(REMOVING)).err_into(),
        Turn::all(&shared.log, Some(TurnState::Queued.name())).err_into(),
    )?;
    for session in removing {
        crate::removal::finish(&shared.log, &session)
            .await
            .or_else(quarantined)?;
    }
    let waiting: BTreeSet<SessionId> = queued.iter().map(|turn| turn.record.session).collect();
    let mut found = Waiting::default();
    for id in waiting {
        match (shared.settings.after_crash, store::session(&shared.log, id).await) {
            (AfterCrash::GoOn, _) => found.begin.push(id),
            (AfterCrash::Wait, Ok(session)) => drop(found.held.insert(id, session.record.prompts)),
            (AfterCrash::Wait, Err(SessionError::NotFound(_) | SessionError::Unreadable { .. })) => {}
            (AfterCrash::Wait, Err(error)) => return Err(error),
        }
    }
    Ok(found)
}

/// Which abandoned turns to end.
#[derive(Debug)]
enum Scope {
    /// Those of earlier boots of this home.
    Ours,
    /// Those of other homes too.
    All,
}

/// On a shared log, until the daemon closes: starts prompts that other daemons accepted for sessions of this machine, and ends
/// turns that they abandoned.
pub(crate) async fn look_after_others(
    shared: Arc<SessionsInner>,
    mut moves: StreamChanges,
    held: BTreeMap<SessionId, u64>,
) {
    let closing = shared.open.scope();
    let mut due = Deadline::after(&shared.clock, LOOK_EVERY);
    loop {
        if let Err(ChangesEnd::Cancelled(_)) = moves.next(due.clone(), &closing).await {
            return;
        }
        // Constant changes must not postpone the regular scan.
        let is_due = due.has_passed();
        if is_due {
            due = Deadline::after(&shared.clock, LOOK_EVERY);
            if let Err(error) = bury_all(&shared, &Scope::All).await {
                tracing::warn!(%error, "could not check the turns of other daemons");
            }
        }
        if let Err(error) = look_at_waiting(&shared, &held, is_due).await {
            tracing::warn!(%error, "could not check queued prompts");
        }
        tokio::select! {
            _ = closing.wait() => return,
            () = Deadline::after(&shared.clock, LOOK_GAP).passed() => {}
        }
    }
}

/// Starts prompts that wait for this machine. If it is due, or a prompt waits for a machine that hasn't been checked, checks
/// which of the other machines are running.
async fn look_at_waiting(
    shared: &Arc<SessionsInner>,
    held: &BTreeMap<SessionId, u64>,
    is_due: bool,
) -> Result<(), SessionError> {
    let mut awaited: BTreeSet<HomeId> = BTreeSet::new();
    for session in Session::all(&shared.log, Some(SessionState::Waiting.name())).await? {
        let home = match home_of(shared, &session).await {
            Ok(home) => home,
            Err(error) => {
                quarantined(error)?;
                continue;
            }
        };
        if home != shared.owner.home {
            awaited.insert(home);
        } else if held.get(&session.id) != Some(&session.record.prompts) {
            go_on(shared, session.id);
        }
    }
    if is_due || !shared.machines.knows(&awaited) {
        look_for(shared, awaited).await?;
    }
    Ok(())
}

async fn bury_all(shared: &Arc<SessionsInner>, scope: &Scope) -> Result<(), SessionError> {
    for turn in Turn::all(&shared.log, Some(TurnState::Running.name())).await? {
        let is_ours = turn
            .record
            .owner
            .is_none_or(|owner| owner.home == shared.owner.home || shared.sharing == Sharing::Alone);
        if matches!(scope, Scope::Ours) && !is_ours {
            continue;
        }
        let session = match store::session(&shared.log, turn.record.session).await {
            Ok(session) => session,
            Err(SessionError::NotFound(_) | SessionError::Unreadable { .. }) => continue,
            Err(error) => return Err(error),
        };
        match bury(shared, &session).await {
            Ok(Some(made)) if matches!(scope, Scope::All) => go_on(shared, made.session.id),
            Ok(_) | Err(SessionError::Stale { .. } | SessionError::NotStale { .. }) => {}
            Err(error) => quarantined(error)?,
        }
    }
    Ok(())
}

/// A session that can't be read is quarantined; it doesn't stop the daemon from starting.
fn quarantined(error: SessionError) -> Result<(), SessionError> {
    match error {
        SessionError::Unreadable { .. } => Ok(()),
        error => Err(error),
    }
}

/// Ends the active turn of a session if its owner is gone and the session hasn't changed since it was read. `None` if
/// no turn is active.
pub(crate) async fn bury(
    shared: &Arc<SessionsInner>,
    session: &Session,
) -> Result<Option<Made>, SessionError> {
    let Some(active) = &session.record.active else {
        return Ok(None);
    };
    if !is_gone(shared, active.owner, active.turn).await? {
        return Err(SessionError::NotStale { turn: active.turn });
    }
    let turn = store::turn(&shared.log, active.turn).await?;
    let end = End {
        state: TurnState::Interrupted,
        error: Some(TurnError {
            code: "daemon_gone".to_owned(),
            text: "the daemon that ran it is gone".to_owned(),
        }),
        usage: turn.record.usage,
        plan: session.record.plan,
    };
    let now = shared.wall.now();
    let stale = |current| SessionError::Stale {
        current: Box::new(current),
    };
    let Ok(step) = state::end(&session.record, turn.id, &turn.record, end, now) else {
        return Err(stale(store::session(&shared.log, session.id).await?));
    };
    let on = On {
        session,
        turn: Some((turn.id, turn.version)),
    };
    match store::commit(&shared.log, on, step, Vec::new()).await {
        Ok(made) => Ok(Some(made)),
        Err(CommitError::Conflict { .. } | CommitError::RolledBack { .. }) => {
            Err(stale(store::session(&shared.log, session.id).await?))
        }
        Err(error) => Err(error.into()),
    }
}
