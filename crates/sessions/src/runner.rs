//! Runs turns: one task for each, from its first event to the commit that ends it, and then the next one of its session.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{CommitError, UnsettledEvents, Write};
use futures_util::FutureExt as _;
use kernel::{CancellationToken, Cause};
use plans::PlanError;
use protocol::{JobId, SessionId, TurnError, TurnState};
use tokio::sync::oneshot;

use crate::agent::{AgentEnd, AgentTurn};
use crate::asking::Asker;
use crate::desk::PlanDesk;
use crate::error::SessionError;
use crate::machines::home_of;
use crate::pause::LogPause;
use crate::places::Place;
use crate::ports::FinishOrder;
use crate::recorder::{self, Recorded};
use crate::session::{Actor, Session};
use crate::shared::{Shared, refusal};
use crate::sink::Sink;
use crate::state::{self, End, Refused};
use crate::store::{self, Made, On, TRIES};
use crate::tools::{Toolbox, ToolboxOptions};
use crate::turn::Turn;
use crate::watch::{Questions, Why, watch};

/// Begins what waits in a session, if nothing runs there and there is a place.
pub(crate) fn go_on(shared: &Arc<Shared>, session: SessionId) {
    let own = Arc::clone(shared);
    shared
        .tasks
        .spawn("session", async move { run_waiting(&own, session, None).await });
}

/// The same, with a place that was kept for it.
pub(crate) fn go_on_with(shared: &Arc<Shared>, session: SessionId, place: Place) {
    let own = Arc::clone(shared);
    shared.tasks.spawn(
        "session",
        async move { run_waiting(&own, session, Some(place)).await },
    );
}

/// Runs a turn that has begun, and then what waits behind it.
pub(crate) fn run(shared: &Arc<Shared>, begun: Made, place: Place) {
    let own = Arc::clone(shared);
    shared.tasks.spawn("turn", async move {
        let session = begun.session.id;
        run_one(&own, begun, place).await;
        run_waiting(&own, session, None).await;
    });
}

/// Runs what waits in a session. While the log fails, it is tried again, as long as the daemon takes prompts: nobody else
/// would begin them.
async fn run_waiting(shared: &Arc<Shared>, session: SessionId, mut place: Option<Place>) {
    let mut pause = LogPause::new();
    while let Err(error) = begin_and_run(shared, session, place.take()).await {
        if !error.is_transient() || shared.open.is_cancelled() {
            tracing::warn!(%error, %session, "a prompt that waits cannot be begun");
            return;
        }
        tracing::warn!(%error, %session, "a prompt that waits cannot be begun yet");
        pause_while_open(shared, &mut pause).await;
    }
}

/// Waits before the log is asked again, but not for the end of the daemon.
async fn pause_while_open(shared: &Shared, pause: &mut LogPause) {
    let closing = shared.open.scope();
    tokio::select! {
        _ = closing.wait() => {}
        () = pause.wait(&shared.clock) => {}
    }
}

async fn begin_and_run(
    shared: &Arc<Shared>,
    session: SessionId,
    mut kept: Option<Place>,
) -> Result<(), SessionError> {
    while !shared.open.is_cancelled() {
        let place = kept.take().or_else(|| shared.places.take(shared, session));
        let Some(mut place) = place else {
            return Ok(());
        };
        let Some(begun) = begin_next(shared, session, &mut place).await? else {
            return Ok(());
        };
        run_one(shared, begun, place).await;
    }
    Ok(())
}

/// Begins the turn that has waited longest, if nothing runs and this is the machine of the session.
async fn begin_next(
    shared: &Arc<Shared>,
    id: SessionId,
    place: &mut Place,
) -> Result<Option<Made>, SessionError> {
    for _ in 0..TRIES {
        let session = match store::session(&shared.log, id).await {
            Ok(session) => session,
            Err(SessionError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(next) = session.record.queue.first().copied() else {
            return Ok(None);
        };
        if session.record.active.is_some() || home_of(shared, &session).await? != shared.owner.home {
            return Ok(None);
        }
        let turn = store::turn(&shared.log, next).await?;
        let now = shared.wall.now();
        let step = match state::begin(&session.record, next, &turn.record, shared.owner, now) {
            Ok(step) => step,
            Err(Refused::Active(_)) => return Ok(None),
            // Somebody else has begun it, or taken it away, between the two looks.
            Err(_) if turn.record.state != TurnState::Queued => continue,
            Err(refused) => return Err(refusal(&refused, &session, &turn)),
        };
        place.reserve(next);
        let on = On {
            session: &session,
            turn: Some((next, turn.version)),
        };
        match store::commit(&shared.log, on, step, Vec::new()).await {
            Ok(made) => return Ok(Some(made)),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    shared.contended(id).await
}

/// Runs one turn to its end. The place is given back when the session is free.
async fn run_one(shared: &Arc<Shared>, begun: Made, place: Place) {
    let Made {
        session,
        turn: Some(turn),
    } = begun
    else {
        return;
    };
    let token = CancellationToken::new();
    let (sink, entries) = Sink::new();
    let (report, recorded) = oneshot::channel();
    {
        let recording = recorder::record(Arc::clone(shared), turn.id, turn.version, entries, token.clone());
        shared.tasks.spawn("recorder", async move {
            drop(report.send(recording.await));
        });
    }
    let ended = work(shared, &session, &turn, &sink, &token).await;
    sink.close().await;
    let mut unsettled = UnsettledEvents::default();
    let (version, end) = match recorded.await {
        Ok(Recorded::Whole(version, last)) => {
            unsettled = last;
            (version, ended)
        }
        Ok(Recorded::Failed { version, error }) => {
            let text = format!("what the agent said could not be kept: {error}");
            (version, instead(ended, TurnState::Failed, "log_failed", text))
        }
        // Whether it was really taken away is seen when its end is written: that is refused then.
        Ok(Recorded::TakenAway) | Err(_) => {
            tracing::info!(turn = %turn.id, "a turn was taken away");
            let text = "the turn could not go on here".to_owned();
            let end = instead(ended, TurnState::Interrupted, "turn_taken_away", text);
            (turn.version, end)
        }
    };
    let mut turn = Turn { version, ..turn };
    let finish_job = finish_submission(shared, &session, &turn, &end).await;
    turn.record.finish_job = finish_job.as_ref().map(|(job, _)| *job);
    let submission = finish_job.map(|(_, write)| write);
    finish(shared, session.id, (turn, &unsettled), (end, submission), place).await;
}

/// The job that finishes the plan of a turn that is done, if its prompt asked for that. A turn that only talked finishes what
/// the session still has to review.
async fn finish_submission(
    shared: &Shared,
    session: &Session,
    turn: &Turn,
    end: &End,
) -> Option<(JobId, Write)> {
    let finish = turn
        .record
        .finish
        .clone()
        .filter(|_| end.state == TurnState::Done)?;
    let plan = match end.plan {
        Some(plan) => plan,
        None => {
            let plan = session.record.plan?;
            match shared.plans.get(plan).await {
                Ok(found) if found.record.state.is_over() => return None,
                Err(PlanError::NotFound(_)) => return None,
                // If it cannot be read now, the job tries again.
                Ok(_) | Err(_) => plan,
            }
        }
    };
    let order = FinishOrder {
        turn: turn.id,
        plan,
        finish,
        title: session.record.title.clone(),
        by: Arc::clone(&turn.record.by),
    };
    match shared.ports.finisher.submission(&order) {
        Ok(submission) => Some(submission),
        Err(error) => {
            tracing::error!(%error, turn = %turn.id, %plan, "the plan of a turn cannot be finished");
            None
        }
    }
}

/// Another end than the agent came to.
fn instead(ended: End, state: TurnState, code: &str, text: String) -> End {
    let error = Some(TurnError {
        code: code.to_owned(),
        text,
    });
    End {
        state,
        error,
        ..ended
    }
}

/// Lets the agent do its work, and says how it ended.
async fn work(
    shared: &Arc<Shared>,
    session: &Session,
    turn: &Turn,
    sink: &Sink,
    token: &CancellationToken,
) -> End {
    let agent = match shared.agent(&turn.record.agent.name) {
        Ok(agent) => Arc::clone(agent),
        Err(error) => return failed(sink, "agent_not_ready", error.to_string()),
    };
    let questions = Questions::default();
    let actor: Actor = format!("{} in {}", turn.record.agent.name, session.id).into();
    let desk = PlanDesk::new(shared, session, turn.id, sink.clone(), actor);
    let asker = Asker::new(
        shared,
        session.id,
        turn.id,
        sink.clone(),
        questions.clone(),
        token.scope(),
    );
    let tools = Toolbox::new(ToolboxOptions {
        desk: desk.clone(),
        asker: asker.clone(),
        ports: shared.ports.clone(),
        scope: token.scope(),
        timeout: shared.settings.tool_timeout,
        clock: Arc::clone(&shared.clock),
    });
    let running = agent.run(AgentTurn {
        session: session.id,
        turn: turn.id,
        previous: turn.record.previous,
        prompt: turn.record.prompt.clone(),
        choice: turn.record.agent.clone(),
        scope: token.scope(),
        sink: sink.clone(),
        tools,
        desk: desk.clone(),
        asker,
        log: shared.log.clone(),
        clock: Arc::clone(&shared.clock),
    });
    let mut running = std::pin::pin!(AssertUnwindSafe(running).catch_unwind());
    let mut watching = std::pin::pin!(watch(shared, session, turn.id, &questions));
    let mut why = None;
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut running => break outcome,
            seen = &mut watching, if why.is_none() => {
                token.cancel(seen.cause());
                why = Some(seen);
            }
        }
    };
    let outcome = outcome.unwrap_or_else(|_| {
        tracing::error!(turn = %turn.id, agent = %turn.record.agent.name, "an agent panicked");
        AgentEnd::failed("agent_panicked", "the agent ended by an error of its own")
    });
    // Whatever it left behind sees that the turn is over.
    token.cancel(Cause::new("the turn", "its agent is done"));
    let (state, error) = judge(outcome, why);
    let then = turn.record.finish.as_ref().map(|finish| finish.then);
    let plan = desk.finish(state, then).await;
    End {
        state,
        error,
        usage: sink.usage(),
        plan,
    }
}

/// What the end of an agent means, with what was wanted of it meanwhile.
fn judge(outcome: AgentEnd, why: Option<Why>) -> (TurnState, Option<TurnError>) {
    let error = |code: &str, text: &str| {
        Some(TurnError {
            code: code.to_owned(),
            text: text.to_owned(),
        })
    };
    match (outcome, why) {
        // It came to its end before it noticed.
        (AgentEnd::Done, _) => (TurnState::Done, None),
        (_, Some(Why::Stopped(stop))) => (TurnState::Cancelled, stop.error),
        (_, Some(Why::Closing)) => (
            TurnState::Interrupted,
            error("daemon_stopped", "the daemon was told to end"),
        ),
        (_, Some(Why::TimedOut)) => (
            TurnState::Failed,
            error("limit_time", "the turn took longer than a turn may take"),
        ),
        (AgentEnd::Failed(error), _) => (TurnState::Failed, Some(error)),
        (AgentEnd::Interrupted(error), _) => (TurnState::Interrupted, Some(error)),
        (AgentEnd::Cancelled, _) => (
            TurnState::Interrupted,
            error("turn_taken_away", "the turn could not go on here"),
        ),
    }
}

fn failed(sink: &Sink, code: &str, text: String) -> End {
    End {
        state: TurnState::Failed,
        error: Some(TurnError {
            code: code.to_owned(),
            text,
        }),
        usage: sink.usage(),
        plan: sink.plan(),
    }
}

/// Writes the end of a turn and frees its session, in one commit. If the log takes nothing, it is tried again until it does,
/// or the daemon ends: then the next one finds a turn that is nobody's.
async fn finish(
    shared: &Arc<Shared>,
    id: SessionId,
    (mut turn, unsettled): (Turn, &UnsettledEvents),
    (end, submission): (End, Option<Write>),
    place: Place,
) {
    let _place = place;
    let mut pause = LogPause::new();
    while let Err(error) = try_finish(shared, id, (&mut turn, unsettled), (&end, &submission)).await {
        if !error.is_transient() || shared.open.is_cancelled() {
            tracing::warn!(%error, turn = %turn.id, "the end of a turn was not written");
            return;
        }
        tracing::warn!(%error, turn = %turn.id, "the end of a turn cannot be written yet");
        pause_while_open(shared, &mut pause).await;
    }
    let Some(job) = turn.record.finish_job else { return };
    while let Err(error) = shared.ports.finisher.start(job).await {
        if shared.open.is_cancelled() {
            tracing::warn!(%error, turn = %turn.id, %job, "the next daemon finishes the plan of a turn");
            return;
        }
        tracing::warn!(%error, turn = %turn.id, %job, "the plan of a turn cannot be finished yet");
        pause_while_open(shared, &mut pause).await;
    }
}

async fn try_finish(
    shared: &Arc<Shared>,
    id: SessionId,
    (turn, unsettled): (&mut Turn, &UnsettledEvents),
    (end, submission): (&End, &Option<Write>),
) -> Result<(), SessionError> {
    for _ in 0..TRIES {
        let session = store::session(&shared.log, id).await?;
        let step = state::end(
            &session.record,
            turn.id,
            &turn.record,
            end.clone(),
            shared.wall.now(),
        );
        // Somebody has buried it, or an earlier try came through after all.
        let Ok(step) = step else { return Ok(()) };
        let on = On {
            session: &session,
            turn: Some((turn.id, turn.version)),
        };
        match store::commit(&shared.log, on, step, submission.iter().cloned().collect()).await {
            Ok(_) => {
                let (now, began) = (shared.wall.now(), turn.record.started_at);
                if let Some(observer) = shared.observer.get() {
                    observer.turn_ended(end.state, began.map_or(Duration::ZERO, |began| now.since(began)));
                }
                return Ok(());
            }
            Err(CommitError::Conflict { .. } | CommitError::RolledBack { .. }) => {
                let current = store::turn(&shared.log, turn.id).await?;
                if current.record.state != TurnState::Running || current.record.owner != Some(shared.owner) {
                    return Ok(());
                }
                // Only its owner writes to it while it runs, and that is us: at another version than we know of, some of what
                // we wrote was taken back, and is written again, or came through without our being told.
                turn.version = recorder::write_again(shared, &current, unsettled).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    shared.contended(id).await
}
