//! Runs turns. Each has a task, from its first event to the commit that ends it. Then the task runs the next turn of its
//! session.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{CommitError, ConflictRetries, UnsettledEvents, Write};
use futures_util::FutureExt as _;
use kernel::{CancellationToken, Cause};
use plans::PlanError;
use protocol::{JobId, SessionId, TurnError, TurnState};
use tokio::sync::oneshot;

use crate::agent::{AgentEnd, AgentTurn};
use crate::asking::Asker;
use crate::desk::PlanDesk;
use crate::error::SessionError;
use crate::inner::{SessionsInner, refusal};
use crate::machines::home_of;
use crate::pause::LogPause;
use crate::permits::TurnPermit;
use crate::ports::FinishOrder;
use crate::recorder::{self, Recorded};
use crate::session::{Actor, Session};
use crate::sink::Sink;
use crate::state::{self, End, Refused};
use crate::store::{self, Made, On, TRIES};
use crate::streams::turn_stream;
use crate::tools::{Toolbox, ToolboxOptions};
use crate::turn::Turn;
use crate::watch::{Questions, Why, watch};

/// Starts the next prompt of a session, if no turn is running and a permit is free.
pub(crate) fn go_on(shared: &Arc<SessionsInner>, session: SessionId) {
    let own = Arc::clone(shared);
    shared
        .tasks
        .spawn("session", async move { run_waiting(&own, session, None).await });
}

/// Like [`go_on`], with a permit that was reserved for the session.
pub(crate) fn go_on_with(shared: &Arc<SessionsInner>, session: SessionId, permit: TurnPermit) {
    let own = Arc::clone(shared);
    shared.tasks.spawn("session", async move {
        run_waiting(&own, session, Some(permit)).await
    });
}

/// Runs a turn that has begun, and then the prompts queued behind it.
pub(crate) fn run(shared: &Arc<SessionsInner>, begun: Made, permit: TurnPermit) {
    let own = Arc::clone(shared);
    shared.tasks.spawn("turn", async move {
        let session = begun.session.id;
        run_one(&own, begun, permit).await;
        run_waiting(&own, session, None).await;
    });
}

/// Runs the queued prompts of a session. While the log fails, it retries until the daemon closes, because nothing else
/// would start them.
async fn run_waiting(shared: &Arc<SessionsInner>, session: SessionId, mut permit: Option<TurnPermit>) {
    let mut pause = LogPause::new();
    while let Err(error) = begin_and_run(shared, session, permit.take()).await {
        if !error.is_transient() || shared.open.is_cancelled() {
            tracing::warn!(%error, %session, "could not start a waiting prompt");
            return;
        }
        tracing::warn!(%error, %session, "could not start a waiting prompt; retrying");
        pause_while_open(shared, &mut pause).await;
    }
}

/// Pauses before the next attempt, or until the daemon closes.
async fn pause_while_open(shared: &SessionsInner, pause: &mut LogPause) {
    let closing = shared.open.scope();
    tokio::select! {
        _ = closing.wait() => {}
        () = pause.wait(&shared.clock) => {}
    }
}

async fn begin_and_run(
    shared: &Arc<SessionsInner>,
    session: SessionId,
    mut kept: Option<TurnPermit>,
) -> Result<(), SessionError> {
    while !shared.open.is_cancelled() {
        let permit = kept.take().or_else(|| shared.permits.take(shared, session));
        let Some(mut permit) = permit else {
            return Ok(());
        };
        let Some(begun) = begin_next(shared, session, &mut permit).await? else {
            return Ok(());
        };
        run_one(shared, begun, permit).await;
    }
    Ok(())
}

/// Begins the turn that has waited longest, if no turn is running and the session belongs to this machine.
async fn begin_next(
    shared: &Arc<SessionsInner>,
    id: SessionId,
    permit: &mut TurnPermit,
) -> Result<Option<Made>, SessionError> {
    let mut retries = ConflictRetries::new(TRIES);
    loop {
        let begun = try_begin_next(shared, id, permit).await;
        if !retries.again(&begun) {
            return shared.or_stale(id, begun).await;
        }
    }
}

async fn try_begin_next(
    shared: &Arc<SessionsInner>,
    id: SessionId,
    permit: &mut TurnPermit,
) -> Result<Option<Made>, SessionError> {
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
        // Another caller has begun or cancelled it between the two reads, so the session has changed too.
        Err(_) if turn.record.state != TurnState::Queued => {
            let stream = turn_stream(turn.id)?;
            return Err(CommitError::Conflict { stream, actual: None }.into());
        }
        Err(refused) => return Err(refusal(&refused, &session, &turn)),
    };
    permit.reserve(next);
    let on = On {
        session: &session,
        turn: Some((next, turn.version)),
    };
    Ok(Some(store::commit(&shared.log, on, step, Vec::new()).await?))
}

/// Runs one turn to its end. The permit is returned when the session is free.
async fn run_one(shared: &Arc<SessionsInner>, begun: Made, permit: TurnPermit) {
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
            let text = format!("the output of the agent could not be stored: {error}");
            (version, instead(ended, TurnState::Failed, "log_failed", text))
        }
        // If another daemon really ended it, the commit that ends it is refused.
        Ok(Recorded::TakenAway) | Err(_) => {
            tracing::info!(turn = %turn.id, "another daemon has ended a turn of this one");
            let text = "another daemon has ended the turn".to_owned();
            let end = instead(ended, TurnState::Interrupted, "turn_taken_away", text);
            (turn.version, end)
        }
    };
    let mut turn = Turn { version, ..turn };
    let finish_job = finish_submission(shared, &session, &turn, &end).await;
    turn.record.finish_job = finish_job.as_ref().map(|(job, _)| *job);
    let submission = finish_job.map(|(_, write)| write);
    finish(shared, session.id, turn, &unsettled, end, submission, permit).await;
}

/// The job that finishes the plan of a turn that is done, if its prompt asked for that. A turn that only talked
/// finishes the session's plan that is still waiting for review.
async fn finish_submission(
    shared: &SessionsInner,
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
                // If the plan can't be read now, the job tries again.
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

/// Replaces the end that the agent reported.
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

/// Runs the agent, and returns how it ended.
async fn work(
    shared: &Arc<SessionsInner>,
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
        AgentEnd::failed("agent_panicked", "the agent crashed")
    });
    // Lets tasks that it left behind see that the turn is over.
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

/// The end of the turn, given how the agent ended and why it was asked to stop.
fn judge(outcome: AgentEnd, why: Option<Why>) -> (TurnState, Option<TurnError>) {
    let error = |code: &str, text: &str| {
        Some(TurnError {
            code: code.to_owned(),
            text: text.to_owned(),
        })
    };
    match (outcome, why) {
        // It finished before it noticed the request to stop.
        (AgentEnd::Done, _) => (TurnState::Done, None),
        (_, Some(Why::Stopped(stop))) => (TurnState::Cancelled, stop.error),
        (_, Some(Why::Closing)) => (
            TurnState::Interrupted,
            error("daemon_stopped", "the daemon was stopped"),
        ),
        (_, Some(Why::TimedOut)) => (
            TurnState::Failed,
            error("limit_time", "the turn exceeded its time limit"),
        ),
        (AgentEnd::Failed(error), _) => (TurnState::Failed, Some(error)),
        (AgentEnd::Interrupted(error), _) => (TurnState::Interrupted, Some(error)),
        (AgentEnd::Cancelled, _) => (
            TurnState::Interrupted,
            error("turn_taken_away", "another daemon has ended the turn"),
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

/// Writes the end of a turn and frees its session, in one commit. While the log fails, it retries until the daemon closes;
/// then the next daemon finds the abandoned turn and ends it.
async fn finish(
    shared: &Arc<SessionsInner>,
    id: SessionId,
    mut turn: Turn,
    unsettled: &UnsettledEvents,
    end: End,
    submission: Option<Write>,
    permit: TurnPermit,
) {
    let _permit = permit;
    let mut pause = LogPause::new();
    while let Err(error) = try_finish(shared, id, &mut turn, unsettled, &end, submission.as_ref()).await {
        if !error.is_transient() || shared.open.is_cancelled() {
            tracing::warn!(%error, turn = %turn.id, "could not write the end of a turn");
            return;
        }
        tracing::warn!(%error, turn = %turn.id, "could not write the end of a turn; retrying");
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
    shared: &Arc<SessionsInner>,
    id: SessionId,
    turn: &mut Turn,
    unsettled: &UnsettledEvents,
    end: &End,
    submission: Option<&Write>,
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
        // Another daemon has ended it, or an earlier attempt succeeded after all.
        let Ok(step) = step else { return Ok(()) };
        let on = On {
            session: &session,
            turn: Some((turn.id, turn.version)),
        };
        match store::commit(&shared.log, on, step, submission.into_iter().cloned().collect()).await {
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
                // Only its owner, this daemon, writes to it while it runs. If it is at another version, the log has rolled
                // back some of our writes, or has made one without acknowledging it.
                turn.version = recorder::write_again(shared, &current, unsettled).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(SessionError::Stale {
        current: Box::new(store::session(&shared.log, id).await?),
    })
}
