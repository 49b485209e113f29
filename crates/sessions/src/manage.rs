//! What is done to sessions besides prompting them: open, list, fork, rename, put away, remove.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Commit, CommitError, HeadsOrder, HeadsQuery, Version, Write};
use protocol::{AgentChoice, SessionId, SessionState, TurnId};

use crate::answers::{NewSession, SessionQuery};
use crate::error::SessionError;
use crate::session::{Actor, Fork, Session, SessionFacts, SessionRecord};
use crate::shared::Shared;
use crate::starting::check_choice;
use crate::state::{Happening, Step, alone, first_line};
use crate::store::{self, TRIES, happening_to_log};
use crate::streams::{SESSION_KIND, session_head, session_stream};
use crate::turn::Turn;

/// How many sessions are in a list unless it says so.
const USUAL_LIMIT: u32 = 50;
/// How many heads are read at a time.
const PAGE: u32 = 200;
/// The most characters of a title.
const TITLE_LIMIT: usize = 200;

pub(crate) async fn create(shared: &Shared, new: NewSession) -> Result<Session, SessionError> {
    shared.check_open()?;
    check_choice(&new.agent)?;
    shared.check_choice(&new.agent)?;
    let directory = existing(new.directory).await?;
    if let Some(plan) = new.plan {
        shared
            .plans
            .get(plan)
            .await
            .map_err(|source| SessionError::Plan {
                plan,
                source: Box::new(source),
            })?;
    }
    let now = shared.wall.now();
    let record = SessionRecord {
        facts: SessionFacts {
            directory,
            opened_by: Arc::clone(&new.by),
            opened_at: now,
            forked_from: None,
        },
        home: Some(shared.owner.home),
        title: first_line(&new.title, TITLE_LIMIT),
        agent: new.agent,
        rules: new.rules,
        learned_rules: 0,
        plan: new.plan,
        active: None,
        queue: Vec::new(),
        last_turn: None,
        prompts: 0,
        last_state: None,
        archived: false,
        removing: false,
        forks: 0,
        changed_at: now,
    };
    let id = SessionId::generate();
    let opened = Happening::new("opened", &new.by, None, "");
    shared
        .log
        .commit(Commit::one(birth(id, &record, &opened)?))
        .await?;
    store::session(&shared.log, id).await
}

/// A directory that is there, by the path that leads to it without links: all sessions of one directory are found by it.
pub(crate) async fn existing(directory: PathBuf) -> Result<PathBuf, SessionError> {
    let unusable = |why: String| SessionError::Directory { why };
    if !directory.is_absolute() {
        return Err(unusable("is not an absolute path".to_owned()));
    }
    let looked = tokio::task::spawn_blocking(move || {
        let found = directory.canonicalize()?;
        Ok::<_, std::io::Error>((found.is_dir(), found))
    });
    match looked.await.unwrap_or_else(|failed| Err(failed.into())) {
        Ok((true, found)) => Ok(found),
        Ok((false, _)) => Err(unusable("is not a directory".to_owned())),
        Err(error) => Err(unusable(format!("cannot be used: {error}"))),
    }
}

fn birth(id: SessionId, record: &SessionRecord, happened: &Happening) -> Result<Write, SessionError> {
    Ok(Write {
        stream: session_stream(id)?,
        expected: Version::NONE,
        head: Some(session_head(record)?),
        events: vec![happening_to_log(happened)?],
    })
}

pub(crate) async fn list(shared: &Shared, query: SessionQuery) -> Result<Vec<Session>, SessionError> {
    let limit = if query.limit == 0 {
        USUAL_LIMIT
    } else {
        query.limit
    } as usize;
    let mut after = query.before.map(session_stream).transpose()?;
    let mut found = Vec::new();
    loop {
        let page = shared
            .log
            .heads(HeadsQuery {
                kind: SESSION_KIND.into(),
                status: query.state.map(|state| state.name().into()),
                order: HeadsOrder::NewestFirst,
                after: after.take(),
                limit: PAGE,
            })
            .await?;
        for stored in &page {
            // One that cannot be read does not hide the others.
            let Some(session) = shared.log.readable(stored, store::session_of(stored)) else {
                continue;
            };
            if is_wanted(&session.record, &query) {
                found.push(session);
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
        if page.len() < PAGE as usize {
            return Ok(found);
        }
        after = page.last().map(|stored| stored.stream.clone());
    }
}

fn is_wanted(record: &SessionRecord, query: &SessionQuery) -> bool {
    let in_state = match query.state {
        Some(state) => record.state() == state,
        None => record.state() != SessionState::Archived,
    };
    let directory = query.directory.as_ref();
    let in_directory = directory.is_none_or(|directory| record.facts.directory.starts_with(directory));
    in_state && in_directory && !record.removing
}

pub(crate) async fn turns(
    shared: &Shared,
    session: SessionId,
    before: Option<TurnId>,
    limit: usize,
) -> Result<Vec<Turn>, SessionError> {
    let session = store::session(&shared.log, session).await?;
    let mut next = match before {
        Some(before) => store::turn(&shared.log, before).await?.record.previous,
        None => session.record.last_turn,
    };
    let mut found = Vec::new();
    while let Some(id) = next
        && found.len() < limit
    {
        let turn = store::turn(&shared.log, id).await?;
        next = turn.record.previous;
        found.push(turn);
    }
    Ok(found)
}

pub(crate) async fn fork(
    shared: &Shared,
    id: SessionId,
    at: Option<TurnId>,
    by: Actor,
) -> Result<Session, SessionError> {
    shared.check_open()?;
    for _ in 0..TRIES {
        let parent = store::session(&shared.log, id).await?;
        let turn = fork_point(shared, &parent, at).await?;
        let now = shared.wall.now();
        let mut changed = parent.record.clone();
        changed.forks += 1;
        changed.changed_at = now;
        let child = SessionId::generate();
        let record = SessionRecord {
            facts: SessionFacts {
                directory: parent.record.facts.directory.clone(),
                opened_by: Arc::clone(&by),
                opened_at: now,
                forked_from: Some(Fork {
                    session: id,
                    turn: turn.id,
                }),
            },
            home: parent.record.home,
            title: parent.record.title.clone(),
            agent: parent.record.agent.clone(),
            rules: parent.record.rules.clone(),
            learned_rules: parent.record.learned_rules,
            plan: None,
            active: None,
            queue: Vec::new(),
            last_turn: Some(turn.id),
            prompts: turn.record.number,
            last_state: Some(turn.record.state),
            archived: false,
            removing: false,
            forks: 0,
            changed_at: now,
        };
        let told = Happening::new("forked", &by, Some(turn.id), child.to_string());
        let opened = Happening::new("opened", &by, Some(turn.id), format!("forked from {id}"));
        let of_parent = Write {
            stream: session_stream(id)?,
            expected: parent.version,
            head: Some(session_head(&changed)?),
            events: vec![happening_to_log(&told)?],
        };
        let commit = Commit::all(vec![of_parent, birth(child, &record, &opened)?]);
        match shared.log.commit(commit).await {
            Ok(_) => return store::session(&shared.log, child).await,
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    shared.contended(id).await
}

/// The turn that a fork shares with its parent.
async fn fork_point(shared: &Shared, parent: &Session, at: Option<TurnId>) -> Result<Turn, SessionError> {
    let mut next = parent.record.last_turn;
    while let Some(id) = next {
        let turn = store::turn(&shared.log, id).await?;
        let is_over = turn.record.state.is_terminal();
        match at {
            Some(at) if at == id && !is_over => {
                return Err(SessionError::TurnActive {
                    session: parent.id,
                    turn: id,
                });
            }
            Some(at) if at != id => {}
            _ if is_over => return Ok(turn),
            _ => {}
        }
        next = turn.record.previous;
    }
    match at {
        Some(at) => Err(SessionError::TurnNotFound(at)),
        None => Err(SessionError::Invalid {
            what: "no turn of the session is over yet".to_owned(),
        }),
    }
}

pub(crate) async fn rename(
    shared: &Shared,
    id: SessionId,
    title: &str,
    by: &Actor,
) -> Result<Session, SessionError> {
    let title = first_line(title, TITLE_LIMIT);
    if title.is_empty() {
        return Err(SessionError::Invalid {
            what: "the title is empty".to_owned(),
        });
    }
    shared
        .change(id, |session| {
            Ok(amend(
                shared,
                session,
                Happening::new("renamed", by, None, &title),
                |next| {
                    next.title.clone_from(&title);
                },
            ))
        })
        .await
}

pub(crate) async fn set_agent(
    shared: &Shared,
    id: SessionId,
    agent: &AgentChoice,
    by: &Actor,
) -> Result<Session, SessionError> {
    check_choice(agent)?;
    shared.check_choice(agent)?;
    shared
        .change(id, |session| {
            Ok(amend(
                shared,
                session,
                Happening::new("agent_set", by, None, &agent.name),
                |next| {
                    next.agent.clone_from(agent);
                },
            ))
        })
        .await
}

pub(crate) async fn archive(
    shared: &Shared,
    id: SessionId,
    archived: bool,
    by: &Actor,
) -> Result<Session, SessionError> {
    let event = if archived { "archived" } else { "unarchived" };
    shared
        .change(id, |session| {
            if archived {
                check_unused(session)?;
            }
            Ok(amend(
                shared,
                session,
                Happening::new(event, by, None, ""),
                |next| {
                    next.archived = archived;
                },
            ))
        })
        .await
}

pub(crate) async fn remove(shared: &Shared, id: SessionId, by: &Actor) -> Result<(), SessionError> {
    let marked = shared
        .change(id, |session| {
            check_unused(session)?;
            if session.record.forks > 0 {
                return Err(SessionError::HasForks {
                    session: id,
                    forks: session.record.forks,
                });
            }
            Ok(amend(
                shared,
                session,
                Happening::new("removing", by, None, ""),
                |next| {
                    next.removing = true;
                },
            ))
        })
        .await?;
    crate::removal::finish(&shared.log, &marked).await
}

fn check_unused(session: &Session) -> Result<(), SessionError> {
    match session.record.active.is_none() && session.record.queue.is_empty() {
        true => Ok(()),
        false => Err(SessionError::InUse(session.id)),
    }
}

pub(crate) fn amend(
    shared: &Shared,
    session: &Session,
    happened: Happening,
    amend: impl FnOnce(&mut SessionRecord),
) -> Step {
    let mut next = session.record.clone();
    next.changed_at = shared.wall.now();
    amend(&mut next);
    alone(next, happened)
}
