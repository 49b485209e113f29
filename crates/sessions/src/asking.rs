//! Asks the user, and waits for the first answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Deadline, Scope};
use protocol::{
    PermissionAnswer, PermissionId, PermissionOption, PermissionRule, RulePermission, SessionId, TurnId,
};

use crate::error::SessionError;
use crate::event::TurnEvent;
use crate::inner::SessionsInner;
use crate::pause::LogPause;
use crate::session::{Actor, Asked};
use crate::sink::{Sink, SinkError};
use crate::state::{self, Refused};
use crate::store;
use crate::watch::Questions;

/// A question to the user.
#[derive(Clone, Debug)]
pub struct Question {
    /// The item of the tool that waits.
    pub item: Option<u64>,
    /// The tool.
    pub tool: String,
    /// What it wants to do, in one line.
    pub subject: String,
    /// The possible answers; if empty: allow, always allow and deny.
    pub options: Vec<PermissionOption>,
}

/// Asks the user. Clones ask for the same turn.
#[derive(Clone, Debug)]
pub struct Asker {
    shared: Arc<SessionsInner>,
    session: SessionId,
    turn: TurnId,
    sink: Sink,
    questions: Questions,
    scope: Scope,
    /// Guards the time spent waiting for the user.
    asked_for: Arc<Mutex<AskedFor>>,
}

/// How long the turn has waited for the user. Overlapping questions count once.
#[derive(Debug, Default)]
struct AskedFor {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

impl Asker {
    pub(crate) fn new(
        shared: &Arc<SessionsInner>,
        session: SessionId,
        turn: TurnId,
        sink: Sink,
        questions: Questions,
        scope: Scope,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            session,
            turn,
            sink,
            questions,
            scope,
            asked_for: Arc::default(),
        }
    }

    /// How long this turn has waited for the user so far.
    pub(crate) fn asked_for(&self) -> Duration {
        let asked_for = self.asked_for.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.shared.clock.now();
        let open = asked_for.since.map(|since| now.saturating_duration_since(since));
        asked_for.before + open.unwrap_or_default()
    }

    /// Asks, and waits for the first answer, up to the limit in the settings. If there is no answer in time, or the turn is
    /// stopped, the answer is deny, with an empty actor. When this returns, `AllowAlways` is a rule of the session.
    ///
    /// *Cancel safety*: if the future is dropped, the question stays open until the turn ends.
    pub async fn ask(&self, question: Question) -> Result<(PermissionAnswer, Actor), SinkError> {
        let id = PermissionId::generate();
        let timeout = self.shared.settings.permission_timeout;
        let subject = state::subject_to_ask(question.subject);
        let asked = Asked {
            id,
            tool: question.tool.clone(),
            subject: subject.clone(),
            answer: None,
        };
        if let Err(error) = self.put(&asked).await {
            tracing::warn!(%error, turn = %self.turn, "could not ask the user");
            return Ok((PermissionAnswer::Deny, Actor::from("")));
        }
        let _asking = Asking::begin(self);
        let options = match question.options.is_empty() {
            true => usual_options(),
            false => question.options,
        };
        self.sink
            .send(TurnEvent::PermissionAsked {
                item: question.item,
                permission: id,
                tool: question.tool,
                subject,
                options,
                timeout_ms: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            })
            .await?;
        let (answer, by) = match self.wait(id, timeout).await {
            Some(answered) => answered,
            None => self.give_up(id).await,
        };
        self.sink
            .send(TurnEvent::PermissionAnswered {
                permission: id,
                answer,
                by: by.to_string(),
            })
            .await?;
        Ok((answer, by))
    }

    /// Stores a question in the session. While the log fails, it retries until the turn must end.
    async fn put(&self, asked: &Asked) -> Result<(), SessionError> {
        let mut pause = LogPause::new();
        loop {
            let asking = self.shared.change(self.session, |session| {
                let now = self.shared.wall.now();
                state::ask(&session.record, self.turn, asked.clone(), now).map_err(|refused| match refused {
                    Refused::QueueFull => SessionError::QueueFull {
                        session: self.session,
                        limit: session
                            .record
                            .active
                            .as_ref()
                            .map_or(0, |active| active.asked.len()),
                    },
                    _ => SessionError::NotFound(self.session),
                })
            });
            match asking.await {
                Err(error) if error.is_transient() && !self.scope.is_cancelled() => {
                    tracing::warn!(%error, turn = %self.turn, "could not ask the user; retrying");
                    tokio::select! {
                        _ = self.scope.wait() => {}
                        () = pause.wait(&self.shared.clock) => {}
                    }
                }
                asked => return asked.map(drop),
            }
        }
    }

    async fn wait(&self, id: PermissionId, timeout: Option<Duration>) -> Option<(PermissionAnswer, Actor)> {
        let deadline = timeout.map_or_else(Deadline::never, |timeout| {
            Deadline::after(&self.shared.clock, timeout)
        });
        let is_answered = move |asked: &Vec<Asked>| answer_in(asked, id).is_some();
        let waited = self
            .questions
            .asked
            .wait_until(is_answered, deadline, &self.scope);
        let seen = waited.await.ok()?;
        answer_in(&seen.state, id)
    }

    /// Denies a question that wasn't answered in time, unless it has been answered after all.
    async fn give_up(&self, id: PermissionId) -> (PermissionAnswer, Actor) {
        let nobody = Actor::from("");
        answer(
            &self.shared,
            self.session,
            id,
            PermissionAnswer::Deny,
            nobody.clone(),
        )
        .await
        .unwrap_or((PermissionAnswer::Deny, nobody))
    }

    /// The current rules: those of the session, then those of the daemon.
    ///
    /// *Cancel safety*: it only reads.
    pub async fn rules(&self) -> Vec<PermissionRule> {
        let mut rules = match store::session(&self.shared.log, self.session).await {
            Ok(session) => session.record.rules,
            // If the rules can't be read, everything needs a question.
            Err(error) => {
                tracing::warn!(%error, session = %self.session, "could not read the rules of a session");
                vec![PermissionRule {
                    tool: "*".to_owned(),
                    pattern: None,
                    permission: RulePermission::Ask,
                }]
            }
        };
        rules.extend_from_slice(&self.shared.settings.rules);
        rules
    }
}

/// Counts the time of a question until it is dropped.
struct Asking<'a>(&'a Asker);

impl<'a> Asking<'a> {
    fn begin(asker: &'a Asker) -> Self {
        let mut asked_for = asker.asked_for.lock().unwrap_or_else(PoisonError::into_inner);
        asked_for.open += 1;
        asked_for.since.get_or_insert(asker.shared.clock.now());
        Self(asker)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut asked_for = self.0.asked_for.lock().unwrap_or_else(PoisonError::into_inner);
        asked_for.open -= 1;
        if asked_for.open == 0
            && let Some(since) = asked_for.since.take()
        {
            asked_for.before += self.0.shared.clock.now().saturating_duration_since(since);
        }
    }
}

/// Answers a question, and returns the answer that counts.
pub(crate) async fn answer(
    shared: &SessionsInner,
    session: SessionId,
    permission: PermissionId,
    answer: PermissionAnswer,
    by: Actor,
) -> Result<(PermissionAnswer, Actor), SessionError> {
    let mut before = None;
    let changed = shared.change(session, |found| {
        let step = state::answer(&found.record, permission, answer, &by, shared.wall.now());
        step.map_err(|refused| {
            let active = found.record.active.as_ref();
            before = active.and_then(|active| answer_in(&active.asked, permission));
            match refused {
                Refused::Nothing => SessionError::Stale {
                    current: Box::new(found.clone()),
                },
                _ => SessionError::PermissionNotFound { session, permission },
            }
        })
    });
    match changed.await {
        Ok(_) => Ok((answer, by)),
        Err(error) => before.ok_or(error),
    }
}

fn answer_in(asked: &[Asked], id: PermissionId) -> Option<(PermissionAnswer, Actor)> {
    let asked = asked.iter().find(|asked| asked.id == id)?;
    asked.answer.clone()
}

fn usual_options() -> Vec<PermissionOption> {
    [
        ("Allow", PermissionAnswer::Allow),
        ("Always allow", PermissionAnswer::AllowAlways),
        ("Deny", PermissionAnswer::Deny),
    ]
    .map(|(label, answer)| PermissionOption {
        label: label.to_owned(),
        answer,
        id: String::new(),
    })
    .into()
}
