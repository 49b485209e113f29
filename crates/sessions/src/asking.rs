//! Asking the user, and waiting for the first answer.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Deadline, PermissionId, Scope, SessionId, TurnId};

use crate::error::SessionError;
use crate::event::{PermissionOption, TurnEvent};
use crate::permissions::{Answer, Rule};
use crate::session::{Actor, Asked};
use crate::shared::Shared;
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
    /// What can be answered; allow, always allow and deny if it is empty.
    pub options: Vec<PermissionOption>,
    /// How long an answer is waited for; as the settings say if it is not given.
    pub timeout: Option<Duration>,
}

/// Asks the user. Clones ask for the same turn.
#[derive(Clone, Debug)]
pub struct Asker {
    shared: Arc<Shared>,
    session: SessionId,
    turn: TurnId,
    sink: Sink,
    questions: Questions,
    scope: Scope,
}

impl Asker {
    pub(crate) fn new(
        shared: &Arc<Shared>,
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
        }
    }

    /// Asks, and waits for the first answer. A question that nobody answers in time, or whose turn is stopped, is denied by
    /// nobody (the actor is empty). `AllowAlways` has become a rule of the session by then.
    ///
    /// *Cancel safety*: dropped half-way, the question stays open until the turn ends.
    pub async fn ask(&self, question: Question) -> Result<(Answer, Actor), SinkError> {
        let id = PermissionId::generate();
        let timeout = question
            .timeout
            .unwrap_or(self.shared.settings.permission_timeout);
        let asked = Asked {
            id,
            tool: question.tool.clone(),
            subject: question.subject.clone(),
            answer: None,
        };
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
        if let Err(error) = asking.await {
            tracing::warn!(%error, turn = %self.turn, "the user cannot be asked");
            return Ok((Answer::Deny, Actor::from("")));
        }
        let options = match question.options.is_empty() {
            true => usual_options(),
            false => question.options,
        };
        self.sink
            .send(TurnEvent::PermissionAsked {
                item: question.item,
                permission: id,
                tool: question.tool,
                subject: question.subject,
                options,
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
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

    async fn wait(&self, id: PermissionId, timeout: Duration) -> Option<(Answer, Actor)> {
        let deadline = Deadline::after(&self.shared.clock, timeout);
        let is_answered = move |asked: &Vec<Asked>| answer_in(asked, id).is_some();
        let waited = self
            .questions
            .asked
            .wait_until(is_answered, deadline, &self.scope);
        let seen = waited.await.ok()?;
        answer_in(&seen.state, id)
    }

    /// Nobody answered in time: that is an answer too, unless somebody was faster after all.
    async fn give_up(&self, id: PermissionId) -> (Answer, Actor) {
        let nobody = Actor::from("");
        answer(&self.shared, self.session, id, (Answer::Deny, nobody.clone()))
            .await
            .unwrap_or((Answer::Deny, nobody))
    }

    /// The rules as they are now: those of the session, then those of the daemon.
    ///
    /// *Cancel safety*: it only reads.
    pub async fn rules(&self) -> Vec<Rule> {
        let mut rules = match store::session(&self.shared.log, self.session).await {
            Ok(session) => session.record.rules,
            // Without its rules, whatever they say, nothing is done unasked.
            Err(error) => {
                tracing::warn!(%error, session = %self.session, "the rules of a session cannot be read");
                vec![Rule {
                    tool: "*".to_owned(),
                    pattern: None,
                    permission: crate::permissions::Permission::Ask,
                }]
            }
        };
        rules.extend_from_slice(&self.shared.settings.rules);
        rules
    }
}

/// Answers a question, and says which answer counts.
pub(crate) async fn answer(
    shared: &Shared,
    session: SessionId,
    permission: PermissionId,
    (answer, by): (Answer, Actor),
) -> Result<(Answer, Actor), SessionError> {
    let mut before = None;
    let changed = shared.change(session, |found| {
        let step = state::answer(&found.record, permission, (answer, &by), shared.wall.now());
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

fn answer_in(asked: &[Asked], id: PermissionId) -> Option<(Answer, Actor)> {
    let asked = asked.iter().find(|asked| asked.id == id)?;
    asked.answer.clone()
}

fn usual_options() -> Vec<PermissionOption> {
    [
        ("Allow", Answer::Allow),
        ("Always allow", Answer::AllowAlways),
        ("Deny", Answer::Deny),
    ]
    .map(|(label, answer)| PermissionOption {
        label: label.to_owned(),
        answer,
        id: String::new(),
    })
    .into()
}
