//! Who may use the page: one-time codes, and the sessions that they open.
//!
//! All of it is kept in memory and ends with the daemon. Both tables are bounded; the oldest entry makes room.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret::Secret;
use crate::page::Notice;

/// For how long a link can be used: long enough to find the browser window.
pub(crate) const CODE_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// How many unused links there can be. One person opens one at a time; with more, the oldest stops working.
const MAX_CODES: usize = 16;

/// How many browsers can be signed in. With more, the one that signed in first has to sign in again.
const MAX_SESSIONS: usize = 64;

/// The codes and sessions of one daemon.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// Guards both tables; held for a search through them and nothing else.
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    codes: VecDeque<Code>,
    sessions: VecDeque<Session>,
    next_id: u64,
}

#[derive(Debug)]
struct Code {
    secret: Secret,
    made: Instant,
}

#[derive(Debug)]
struct Session {
    id: SessionId,
    cookie: Secret,
    form_token: Secret,
    notice: Option<Notice>,
}

/// Names a session inside the daemon; it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionId(u64);

/// What a request with a valid cookie is allowed to know.
#[derive(Clone, Debug)]
pub(crate) struct SignedIn {
    pub(crate) id: SessionId,
    /// To be sent back with every form.
    pub(crate) form_token: Secret,
}

impl Sessions {
    /// Makes a code that opens one session.
    pub(crate) fn make_code(&self, now: Instant) -> Result<Secret, getrandom::Error> {
        let secret = Secret::generate()?;
        let mut tables = self.lock();
        tables.codes.retain(|code| code.is_valid(now));
        while tables.codes.len() >= MAX_CODES {
            tables.codes.pop_front();
        }
        tables.codes.push_back(Code {
            secret: secret.clone(),
            made: now,
        });
        Ok(secret)
    }

    /// Opens a session for a valid code, which is used up by it, and returns the cookie.
    pub(crate) fn redeem(&self, shown: &str, now: Instant) -> Result<Option<Secret>, getrandom::Error> {
        let (cookie, form_token) = (Secret::generate()?, Secret::generate()?);
        let mut tables = self.lock();
        tables.codes.retain(|code| code.is_valid(now));
        let Some(position) = tables.codes.iter().position(|code| code.secret.matches(shown)) else {
            return Ok(None);
        };
        tables.codes.remove(position);
        while tables.sessions.len() >= MAX_SESSIONS {
            tables.sessions.pop_front();
        }
        tables.next_id += 1;
        let id = SessionId(tables.next_id);
        tables.sessions.push_back(Session {
            id,
            cookie: cookie.clone(),
            form_token,
            notice: None,
        });
        Ok(Some(cookie))
    }

    /// Finds the session of a cookie.
    pub(crate) fn find(&self, shown: &str) -> Option<SignedIn> {
        let tables = self.lock();
        let session = tables
            .sessions
            .iter()
            .find(|session| session.cookie.matches(shown))?;
        Some(SignedIn {
            id: session.id,
            form_token: session.form_token.clone(),
        })
    }

    /// Keeps something to be said on the next page that this session loads. A later one takes its place.
    pub(crate) fn leave_notice(&self, id: SessionId, notice: Notice) {
        let mut tables = self.lock();
        if let Some(session) = tables.sessions.iter_mut().find(|session| session.id == id) {
            session.notice = Some(notice);
        }
    }

    /// Takes what was left, to say it once.
    pub(crate) fn take_notice(&self, id: SessionId) -> Option<Notice> {
        let mut tables = self.lock();
        tables
            .sessions
            .iter_mut()
            .find(|session| session.id == id)?
            .notice
            .take()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Every change is complete before anything can panic, so a poisoned table is as good as any.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Code {
    fn is_valid(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made) < CODE_LIFETIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(sessions: &Sessions, now: Instant) -> Secret {
        let code = sessions.make_code(now).unwrap();
        sessions.redeem(code.reveal(), now).unwrap().unwrap()
    }

    #[test]
    fn a_code_works_once_and_in_time() {
        let start = Instant::now();
        let almost = CODE_LIFETIME - Duration::from_millis(1);
        for (waits, expected) in [
            (vec![Duration::ZERO, Duration::ZERO], vec![true, false]),
            (vec![almost], vec![true]),
            (vec![CODE_LIFETIME], vec![false]),
        ] {
            let sessions = Sessions::default();
            let code = sessions.make_code(start).unwrap();
            let found: Vec<bool> = waits
                .iter()
                .map(|wait| sessions.redeem(code.reveal(), start + *wait).unwrap().is_some())
                .collect();
            assert_eq!(found, expected, "{waits:?}");
        }
    }

    #[test]
    fn the_oldest_makes_room() {
        let now = Instant::now();
        let sessions = Sessions::default();
        let codes: Vec<Secret> = (0..=MAX_CODES)
            .map(|_| sessions.make_code(now).unwrap())
            .collect();
        assert!(sessions.redeem(codes[0].reveal(), now).unwrap().is_none());
        assert!(sessions.redeem(codes[1].reveal(), now).unwrap().is_some());

        let sessions = Sessions::default();
        let cookies: Vec<Secret> = (0..=MAX_SESSIONS).map(|_| open(&sessions, now)).collect();
        let known: Vec<bool> = cookies
            .iter()
            .map(|cookie| sessions.find(cookie.reveal()).is_some())
            .collect();
        let expected: Vec<bool> = (0..=MAX_SESSIONS).map(|index| index > 0).collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn sessions_have_their_own_form_tokens() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let (first, second) = (open(&sessions, now), open(&sessions, now));
        let first = sessions.find(first.reveal()).unwrap();
        let second = sessions.find(second.reveal()).unwrap();
        assert_ne!(first.id, second.id);
        assert!(!first.form_token.matches(second.form_token.reveal()));
        assert!(sessions.find("").is_none());
    }

    #[test]
    fn a_notice_is_said_once_to_its_session() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let (first, second) = (open(&sessions, now), open(&sessions, now));
        let first = sessions.find(first.reveal()).unwrap().id;
        let second = sessions.find(second.reveal()).unwrap().id;
        sessions.leave_notice(first, Notice::ResetAll { count: 1 });
        assert_eq!(sessions.take_notice(second), None);
        assert_eq!(sessions.take_notice(first), Some(Notice::ResetAll { count: 1 }));
        assert_eq!(sessions.take_notice(first), None);
    }
}
