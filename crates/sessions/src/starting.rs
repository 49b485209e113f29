//! Accepts prompts.

use std::sync::Arc;

use eventlog::{MaybeConflict, Version, Write};
use protocol::{AgentChoice, FinishPlan, FinishThen, HomeId, SessionId, TurnId, TurnState};

use crate::answers::{Accepted, NewTurn, RunOn, Started};
use crate::error::SessionError;
use crate::inner::SessionsInner;
use crate::keys::{Key, KeyRecord};
use crate::machines::{check_directory, home_of, look_for_one};
use crate::prompt::{ATTACHMENT_LIMIT, PROMPT_LIMIT_BYTES, Prompt, SCRIPT_LIMIT_BYTES};
use crate::recover::bury;
use crate::runner;
use crate::session::Session;
use crate::state::{self, Draft, Refused};
use crate::store::{self, On, TRIES};
use crate::streams::key_id;

/// Accepts a prompt, durably, and begins its turn if possible.
pub(crate) async fn start_turn(
    shared: &Arc<SessionsInner>,
    id: SessionId,
    new: NewTurn,
) -> Result<Accepted, SessionError> {
    shared.check_open()?;
    check_prompt(&new.prompt)?;
    if let Some(choice) = &new.agent {
        check_choice(choice)?;
    }
    if let Some(finish) = &new.finish {
        check_finish(finish)?;
    }
    for _ in 0..TRIES {
        let session = store::session(&shared.log, id).await?;
        if let Some(before) = earlier(shared, &session, &new).await? {
            return Ok(before);
        }
        if let Some(seen) = new.seen
            && session.version != Version::from_u64(seen)
        {
            return Err(SessionError::Stale {
                current: Box::new(session),
            });
        }
        // A turn that its daemon has abandoned doesn't block the session.
        if session.record.active.is_some() {
            match bury(shared, &session).await {
                Ok(_) | Err(SessionError::Stale { .. }) if new.seen.is_none() => continue,
                Ok(_) | Err(SessionError::NotStale { .. } | SessionError::Stale { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let choice = new.agent.clone().unwrap_or_else(|| session.record.agent.clone());
        let home = match new.run_on {
            RunOn::ItsMachine => home_of(shared, &session).await?,
            RunOn::Here => shared.owner.home,
        };
        if new.run_on == RunOn::Here && session.record.home != Some(home) {
            check_directory(&session).await?;
        }
        if home == shared.owner.home {
            shared.check_choice(&choice)?;
        } else {
            // That machine may have other agents. The answer says whether its daemon is running.
            look_for_one(shared, home).await?;
        }
        match try_accept(shared, &session, &new, choice, home).await {
            Err(error) if error.is_conflict() => {}
            accepted => return accepted,
        }
    }
    Err(SessionError::Stale {
        current: Box::new(store::session(&shared.log, id).await?),
    })
}

/// Accepts a prompt on the session that was read.
async fn try_accept(
    shared: &Arc<SessionsInner>,
    session: &Session,
    new: &NewTurn,
    choice: AgentChoice,
    home: HomeId,
) -> Result<Accepted, SessionError> {
    let turn = TurnId::generate();
    let is_free = session.record.active.is_none() && session.record.queue.is_empty();
    let is_ours = home == shared.owner.home;
    let mut permit = if is_free && is_ours {
        shared.permits.take(shared, session.id)
    } else {
        None
    };
    if let Some(permit) = &mut permit {
        permit.reserve(turn);
    }
    let draft = Draft {
        id: turn,
        session: session.id,
        prompt: new.prompt.clone(),
        agent: choice,
        home,
        finish: new.finish.clone(),
        by: Arc::clone(&new.by),
    };
    let runner = permit.as_ref().map(|_| shared.owner);
    let step = state::accept(&session.record, draft, new.if_busy, runner, shared.wall.now());
    let step = step.map_err(|refused| match refused {
        Refused::Active(turn) => SessionError::TurnActive {
            session: session.id,
            turn,
        },
        Refused::QueueFull => SessionError::QueueFull {
            session: session.id,
            limit: state::QUEUE_LIMIT,
        },
        _ => SessionError::Archived(session.id),
    })?;
    let key = key_write(session.id, turn, new)?;
    let on = On {
        session,
        turn: Some((turn, Version::NONE)),
    };
    let made = store::commit(&shared.log, on, step, key.into_iter().collect()).await?;
    let accepted = made.turn.clone().ok_or(SessionError::TurnNotFound(turn))?;
    let answer = Accepted {
        session: made.session.clone(),
        turn: accepted,
        started: Started::New,
    };
    match permit {
        Some(permit) if answer.turn.record.state == TurnState::Running => runner::run(shared, made, permit),
        _ if is_ours && answer.session.record.active.is_none() => runner::go_on(shared, session.id),
        _ => {}
    }
    Ok(answer)
}

/// The turn of an earlier request with the same key.
async fn earlier(
    shared: &SessionsInner,
    session: &Session,
    new: &NewTurn,
) -> Result<Option<Accepted>, SessionError> {
    let Some(key) = &new.idempotency_key else {
        return Ok(None);
    };
    let Some(Key { record, .. }) = Key::read(&shared.log, key_id(session.id, key)).await? else {
        return Ok(None);
    };
    if record.prompt != fingerprint(new)? {
        return Err(SessionError::KeyReused { turn: record.turn });
    }
    Ok(Some(Accepted {
        session: session.clone(),
        turn: store::turn(&shared.log, record.turn).await?,
        started: Started::Before,
    }))
}

fn key_write(session: SessionId, turn: TurnId, new: &NewTurn) -> Result<Option<Write>, SessionError> {
    let Some(key) = &new.idempotency_key else {
        return Ok(None);
    };
    let record = KeyRecord {
        turn,
        prompt: fingerprint(new)?,
    };
    Ok(Some(Key::new(key_id(session, key), record).write(&[])?))
}

fn fingerprint(new: &NewTurn) -> Result<String, SessionError> {
    // Without `finish`, this matches what earlier releases stored.
    let body = match &new.finish {
        None => eventlog::json_body(&(&new.prompt, &new.agent))?,
        Some(finish) => eventlog::json_body(&(&new.prompt, &new.agent, finish))?,
    };
    Ok(blake3::hash(&body).to_hex().to_string())
}

pub(crate) fn check_prompt(prompt: &Prompt) -> Result<(), SessionError> {
    let invalid = |what: String| Err(SessionError::Invalid { what });
    if prompt.text.trim().is_empty() && prompt.attachments.is_empty() {
        return invalid("the prompt is empty".to_owned());
    }
    if prompt.text.len() > PROMPT_LIMIT_BYTES {
        let bytes = prompt.text.len();
        return invalid(format!(
            "the prompt has {bytes} bytes; the limit is {PROMPT_LIMIT_BYTES}, so attach longer text as a file"
        ));
    }
    if prompt.attachments.len() > ATTACHMENT_LIMIT {
        return invalid(format!("the prompt has more than {ATTACHMENT_LIMIT} attachments"));
    }
    Ok(())
}

fn check_finish(finish: &FinishPlan) -> Result<(), SessionError> {
    let invalid = |what: String| Err(SessionError::Invalid { what });
    let Some(commit) = &finish.commit else {
        return Ok(());
    };
    if finish.then != FinishThen::Apply {
        return invalid("`finish.commit` needs `finish.then` to be `apply`".to_owned());
    }
    if commit
        .message
        .as_ref()
        .is_some_and(|message| message.len() > PROMPT_LIMIT_BYTES)
    {
        return invalid(format!("a commit message has at most {PROMPT_LIMIT_BYTES} bytes"));
    }
    Ok(())
}

pub(crate) fn check_choice(choice: &AgentChoice) -> Result<(), SessionError> {
    match &choice.script {
        Some(script) if script.len() > SCRIPT_LIMIT_BYTES => Err(SessionError::Invalid {
            what: format!("the script has more than {SCRIPT_LIMIT_BYTES} bytes"),
        }),
        _ => Ok(()),
    }
}
