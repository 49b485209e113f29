//! Opens, lists, forks, renames, archives and removes sessions.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Commit, ConflictRetries, EntityRecord, HeadsOrder, HeadsQuery};
use protocol::{AgentChoice, SessionId, SessionState, TurnId};

use crate::answers::{NewSession, SessionQuery};
use crate::error::SessionError;
use crate::inner::SessionsInner;
use crate::service::Sessions;
use crate::session::{Actor, Fork, Session, SessionFacts, SessionRecord};
use crate::starting::check_choice;
use crate::state::{Happening, Step, alone, first_line};
use crate::store::{self, TRIES};
use crate::streams::session_stream;
use crate::turn::Turn;

/// How many sessions are listed by default.
const USUAL_LIMIT: u32 = 50;
/// How many heads are read at a time.
const PAGE: u32 = 200;
const TITLE_LIMIT: usize = 200;

impl Sessions {
    /// Opens a session.
    ///
    /// # Errors
    /// The agent, directory or plan can't be used, or the log fails.
    ///
    /// *Cancel safety*: if the future is dropped, the session may or may not be opened.
    pub async fn create(&self, new: NewSession) -> Result<Session, SessionError> {
        let shared = &*self.shared;
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
        let mut session = Session::new(SessionId::generate(), record);
        let opened = Happening::new("opened", &new.by, None, "");
        session.save(&shared.log, &[opened]).await?;
        Ok(session)
    }

    /// Sessions, newest first. *Cancel safety*: it only reads.
    pub async fn list(&self, query: SessionQuery) -> Result<Vec<Session>, SessionError> {
        let shared = &*self.shared;
        let limit = if query.limit == 0 {
            USUAL_LIMIT
        } else {
            query.limit
        } as usize;
        let mut pages = shared.log.pages(HeadsQuery {
            kind: SessionRecord::KIND.into(),
            status: query.state.map(|state| state.name().into()),
            order: HeadsOrder::NewestFirst,
            after: query.before.map(session_stream).transpose()?,
            limit: PAGE,
        });
        let mut found = Vec::new();
        while let Some(page) = pages.next().await? {
            // A session that can't be read doesn't hide the others.
            let sessions = page
                .iter()
                .filter_map(|stored| Session::of_head(&shared.log, stored).ok());
            found.extend(sessions.filter(|session| is_wanted(&session.record, &query)));
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        Ok(found)
    }

    /// The turns of a session that have started, newest first, including those from before a fork. If `before` is
    /// given, only those before it; at most `limit`. *Cancel safety*: it only reads.
    pub async fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<Turn>, SessionError> {
        let shared = &*self.shared;
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

    /// Opens a session that continues from a turn of another one: by default from its newest turn that has ended.
    ///
    /// # Errors
    /// The turn hasn't ended, or belongs to another session.
    pub async fn fork(&self, id: SessionId, at: Option<TurnId>, by: Actor) -> Result<Session, SessionError> {
        let shared = &*self.shared;
        shared.check_open()?;
        let mut retries = ConflictRetries::new(TRIES);
        loop {
            let forked = try_fork(shared, id, at, &by).await;
            if !retries.again(&forked) {
                return shared.or_stale(id, forked).await;
            }
        }
    }

    /// Changes the title of a session.
    pub async fn rename(&self, id: SessionId, title: String, by: Actor) -> Result<Session, SessionError> {
        let shared = &*self.shared;
        let title = first_line(&title, TITLE_LIMIT);
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
                    Happening::new("renamed", &by, None, &title),
                    |next| {
                        next.title.clone_from(&title);
                    },
                ))
            })
            .await
    }

    /// Changes the default agent of a session.
    pub async fn set_agent(
        &self,
        id: SessionId,
        agent: AgentChoice,
        by: Actor,
    ) -> Result<Session, SessionError> {
        let shared = &*self.shared;
        check_choice(&agent)?;
        shared.check_choice(&agent)?;
        shared
            .change(id, |session| {
                Ok(amend(
                    shared,
                    session,
                    Happening::new("agent_set", &by, None, &agent.name),
                    |next| {
                        next.agent.clone_from(&agent);
                    },
                ))
            })
            .await
    }

    /// Archives a session, or restores it.
    ///
    /// # Errors
    /// A turn is running or queued.
    pub async fn archive(&self, id: SessionId, archived: bool, by: Actor) -> Result<Session, SessionError> {
        let shared = &*self.shared;
        let event = if archived { "archived" } else { "unarchived" };
        shared
            .change(id, |session| {
                if archived {
                    check_unused(session)?;
                }
                Ok(amend(
                    shared,
                    session,
                    Happening::new(event, &by, None, ""),
                    |next| {
                        next.archived = archived;
                    },
                ))
            })
            .await
    }

    /// Removes a session with its turns.
    ///
    /// # Errors
    /// A turn is running or queued, or the session has forks.
    ///
    /// *Cancel safety*: if the future is dropped, the session can no longer be found, and the rest is removed at the next
    /// start.
    pub async fn remove(&self, id: SessionId, by: Actor) -> Result<(), SessionError> {
        let shared = &*self.shared;
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
                    Happening::new("removing", &by, None, ""),
                    |next| {
                        next.removing = true;
                    },
                ))
            })
            .await?;
        crate::removal::finish(&shared.log, &marked).await
    }
}

/// The canonical path of an existing directory, without symlinks. All its sessions are found by this path.
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

fn is_wanted(record: &SessionRecord, query: &SessionQuery) -> bool {
    let in_state = match query.state {
        Some(state) => record.state() == state,
        None => record.state() != SessionState::Archived,
    };
    let directory = query.directory.as_ref();
    let in_directory = directory.is_none_or(|directory| record.facts.directory.starts_with(directory));
    in_state && in_directory && !record.removing
}

async fn try_fork(
    shared: &SessionsInner,
    id: SessionId,
    at: Option<TurnId>,
    by: &Actor,
) -> Result<Session, SessionError> {
    let mut parent = store::session(&shared.log, id).await?;
    let turn = fork_point(shared, &parent, at).await?;
    let now = shared.wall.now();
    let record = SessionRecord {
        facts: SessionFacts {
            directory: parent.record.facts.directory.clone(),
            opened_by: Arc::clone(by),
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
    parent.record.forks += 1;
    parent.record.changed_at = now;
    let mut child = Session::new(SessionId::generate(), record);
    let forked = Happening::new("forked", by, Some(turn.id), child.id.to_string());
    let opened = Happening::new("opened", by, Some(turn.id), format!("forked from {id}"));
    let of_parent = parent.write(&[forked])?;
    let of_child = child.write(&[opened])?;
    child
        .commit(&shared.log, Commit::all(vec![of_child, of_parent]))
        .await?;
    Ok(child)
}

async fn fork_point(
    shared: &SessionsInner,
    parent: &Session,
    at: Option<TurnId>,
) -> Result<Turn, SessionError> {
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
            what: "no turn of the session has ended yet".to_owned(),
        }),
    }
}

fn check_unused(session: &Session) -> Result<(), SessionError> {
    match session.record.active.is_none() && session.record.queue.is_empty() {
        true => Ok(()),
        false => Err(SessionError::InUse(session.id)),
    }
}

pub(crate) fn amend(
    shared: &SessionsInner,
    session: &Session,
    happened: Happening,
    amend: impl FnOnce(&mut SessionRecord),
) -> Step {
    let mut next = session.record.clone();
    next.changed_at = shared.wall.now();
    amend(&mut next);
    alone(next, happened)
}
