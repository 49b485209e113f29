//! Access to the page: one-time codes, and the logins that they open.
//!
//! A login is a cookie sealed with the daemon's token. It needs no table, so a page keeps working when the daemon
//! restarts, and replacing the token ends all logins. Codes and notices are kept in memory and end with the daemon.
//! Both tables are bounded; the oldest entry makes room.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::secret::Secret;
use crate::page::Notice;

/// How long a link can be used: long enough to find the browser window.
pub(crate) const CODE_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// How long a browser stays signed in, unless it is closed first.
const LOGIN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many unused links can exist. One person opens one at a time; beyond this, the oldest stops working.
const MAX_CODES: usize = 16;

/// How many unread notices are kept. One person does one thing at a time.
const MAX_NOTICES: usize = 64;

/// The purposes of the two keys. They are derived from the token, which is never used directly.
const COOKIE_KEY: &str = "tidelock 2026-11-17 cookie of the page";
const FORM_KEY: &str = "tidelock 2026-11-16 form token of a cookie";

pub(crate) struct Logins {
    cookie_key: [u8; 32],
    form_key: [u8; 32],
    /// Guards both tables; held only to search them.
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    codes: VecDeque<Code>,
    notices: VecDeque<(LoginId, Notice)>,
}

#[derive(Debug)]
struct Code {
    secret: Secret,
    made: Instant,
}

/// Identifies a login inside the daemon; it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoginId([u8; 32]);

/// What a request with a valid cookie may know.
#[derive(Clone, Debug)]
pub(crate) struct SignedIn {
    pub(crate) id: LoginId,
    pub(crate) form_token: Secret,
}

impl Logins {
    pub(crate) fn new(token: &Secret) -> Self {
        let key = |purpose| blake3::derive_key(purpose, token.reveal().as_bytes());
        Self {
            cookie_key: key(COOKIE_KEY),
            form_key: key(FORM_KEY),
            tables: Mutex::default(),
        }
    }

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

    pub(crate) fn knows_code(&self, shown: &str, now: Instant) -> bool {
        let tables = self.lock();
        let mut valid = tables.codes.iter().filter(|code| code.is_valid(now));
        valid.any(|code| code.secret.matches(shown))
    }

    /// Uses up a valid code and returns the cookie of a new login.
    pub(crate) fn redeem(
        &self,
        shown: &str,
        now: Instant,
        today: SystemTime,
    ) -> Result<Option<Secret>, getrandom::Error> {
        let nonce = Secret::generate()?;
        let mut tables = self.lock();
        tables.codes.retain(|code| code.is_valid(now));
        let Some(position) = tables.codes.iter().position(|code| code.secret.matches(shown)) else {
            return Ok(None);
        };
        tables.codes.remove(position);
        let content = format!("{}-{}", seconds(today), nonce.reveal());
        let seal = self.seal(&content);
        Ok(Some(Secret::from_text(&format!("{content}-{}", seal.reveal()))))
    }

    pub(crate) fn find(&self, shown: &str, today: SystemTime) -> Option<SignedIn> {
        let (content, seal) = shown.rsplit_once('-')?;
        if !self.seal(content).matches(seal) {
            return None;
        }
        let (opened, _) = content.split_once('-')?;
        let age = seconds(today).saturating_sub(opened.parse().ok()?);
        if age >= LOGIN_LIFETIME.as_secs() {
            return None;
        }
        let id = blake3::hash(content.as_bytes());
        let form_token = blake3::keyed_hash(&self.form_key, content.as_bytes());
        Some(SignedIn {
            id: LoginId(*id.as_bytes()),
            form_token: Secret::from_text(&form_token.to_hex()),
        })
    }

    /// Keeps a notice for the next page that this login loads. It replaces an earlier one.
    pub(crate) fn leave_notice(&self, id: LoginId, notice: Notice) {
        let notices = &mut self.lock().notices;
        notices.retain(|(other, _)| *other != id);
        while notices.len() >= MAX_NOTICES {
            notices.pop_front();
        }
        notices.push_back((id, notice));
    }

    pub(crate) fn take_notice(&self, id: LoginId) -> Option<Notice> {
        let notices = &mut self.lock().notices;
        let position = notices.iter().position(|(other, _)| *other == id)?;
        notices.remove(position).map(|(_, notice)| notice)
    }

    fn seal(&self, content: &str) -> Secret {
        Secret::from_text(&blake3::keyed_hash(&self.cookie_key, content.as_bytes()).to_hex())
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Every change is complete before anything can panic, so a poisoned table is still consistent.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Logins")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

impl Code {
    fn is_valid(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made) < CODE_LIFETIME
    }
}

fn seconds(today: SystemTime) -> u64 {
    let since = today.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins() -> Logins {
        Logins::new(&Secret::generate().unwrap())
    }

    fn notice() -> Notice {
        Notice::good(maud::html! { "Done." })
    }

    fn open(logins: &Logins, now: Instant) -> Secret {
        let code = logins.make_code(now).unwrap();
        let cookie = logins.redeem(code.reveal(), now, SystemTime::now());
        cookie.unwrap().unwrap()
    }

    fn find(logins: &Logins, cookie: &Secret) -> Option<SignedIn> {
        logins.find(cookie.reveal(), SystemTime::now())
    }

    #[test]
    fn a_code_works_once_and_in_time() {
        let (start, today) = (Instant::now(), SystemTime::now());
        let almost = CODE_LIFETIME - Duration::from_millis(1);
        for (waits, expected) in [
            (vec![Duration::ZERO, Duration::ZERO], vec![true, false]),
            (vec![almost], vec![true]),
            (vec![CODE_LIFETIME], vec![false]),
        ] {
            let logins = logins();
            let code = logins.make_code(start).unwrap();
            let redeem = |wait: &Duration| logins.redeem(code.reveal(), start + *wait, today);
            let found: Vec<bool> = waits.iter().map(|wait| redeem(wait).unwrap().is_some()).collect();
            assert_eq!(found, expected, "{waits:?}");
        }
    }

    #[test]
    fn the_oldest_makes_room() {
        let (now, today) = (Instant::now(), SystemTime::now());
        let logins = logins();
        let codes: Vec<Secret> = (0..=MAX_CODES).map(|_| logins.make_code(now).unwrap()).collect();
        let redeem = |code: &Secret| logins.redeem(code.reveal(), now, today).unwrap();
        assert!(redeem(&codes[0]).is_none());
        assert!(redeem(&codes[1]).is_some());

        let ids: Vec<LoginId> = (0..=MAX_NOTICES)
            .map(|_| find(&logins, &open(&logins, now)).unwrap().id)
            .collect();
        for id in &ids {
            logins.leave_notice(*id, notice());
        }
        let known: Vec<bool> = ids.iter().map(|id| logins.take_notice(*id).is_some()).collect();
        let expected: Vec<bool> = (0..=MAX_NOTICES).map(|index| index > 0).collect();
        assert_eq!(known, expected);
    }

    #[test]
    fn a_login_is_known_to_whoever_has_the_token_until_it_is_old() {
        let token = Secret::generate().unwrap();
        let (today, cookie) = (SystemTime::now(), open(&Logins::new(&token), Instant::now()));
        let later = Logins::new(&token);
        let almost = today + LOGIN_LIFETIME - Duration::from_secs(60);
        assert!(later.find(cookie.reveal(), almost).is_some());
        assert!(
            later
                .find(cookie.reveal(), today + LOGIN_LIFETIME + Duration::from_secs(60))
                .is_none()
        );
        assert!(find(&logins(), &cookie).is_none(), "another token");

        let (opened, rest) = cookie.reveal().split_once('-').unwrap();
        let younger = format!("{}-{rest}", opened.parse::<u64>().unwrap() + 1);
        let (content, seal) = cookie.reveal().rsplit_once('-').unwrap();
        let form_token = find(&later, &cookie).unwrap().form_token;
        for forged in [
            "",
            "-",
            "--",
            content,
            seal,
            &younger,
            &format!("{content}-"),
            &format!("{content}-{}", form_token.reveal()),
            &format!("-{}", later.seal("").reveal()),
            &format!("x-{}", later.seal("x").reveal()),
        ] {
            assert!(later.find(forged, today).is_none(), "{forged}");
        }
    }

    #[test]
    fn logins_have_their_own_form_tokens() {
        let logins = logins();
        let now = Instant::now();
        let cookies = (open(&logins, now), open(&logins, now));
        let first = find(&logins, &cookies.0).unwrap();
        let second = find(&logins, &cookies.1).unwrap();
        assert_ne!(first.id, second.id);
        assert!(!first.form_token.matches(second.form_token.reveal()));
        let again = find(&logins, &cookies.0).unwrap();
        assert!(again.id == first.id && again.form_token.matches(first.form_token.reveal()));
    }

    #[test]
    fn a_notice_is_said_once_to_its_login() {
        let logins = logins();
        let now = Instant::now();
        let cookies = (open(&logins, now), open(&logins, now));
        let first = find(&logins, &cookies.0).unwrap().id;
        let second = find(&logins, &cookies.1).unwrap().id;
        logins.leave_notice(first, notice());
        assert_eq!(logins.take_notice(second), None);
        assert_eq!(logins.take_notice(first), Some(notice()));
        assert_eq!(logins.take_notice(first), None);
    }
}
