//! Reports to an editor what happens in a session, from one thread and in stream order.
//!
//! The state decides: on every wake-up, the watcher reads the session and reports the turns that have begun since. A
//! watcher with nothing to report starts no daemon: it may have been stopped on purpose.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use protocol::{ErrorCode, Plan, Session, Turn, TurnState};
use serde_json::{Value, json};

use super::changes::{self, has_work};
use super::converse::{see_whether_it_ended, stop_reason};
use super::ear::{Ear, Earlier, ReplayEnds};
use super::open::{self, Open};
use super::refusal::Refused;
use super::serve::{Site, note};
use super::setup::{config_options, forget};
use super::slash::next_steps;
use super::updates::{TurnUpdates, Voice, chunk};
use crate::client::{Client, ClientError, Ended, Interrupts, PATIENCE, Probe, StreamEnd};
use crate::commands::plan::path as plan_path;
use crate::commands::session::attach::{turns_after, turns_path};
use crate::commands::session::follow::{follow, has_crashed};
use crate::commands::session::printer;
use crate::commands::session::{path, turn_path};
use crate::error::{Exit, Failure};

/// How long to wait before looking for a daemon again. There is no notification when another process starts one.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// No history yet.
    Nothing,
    All,
    Now,
}

#[derive(Debug)]
enum Over {
    Closed,
    Failed(Failure),
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Over {
        // The editor no longer reads.
        Over::Closed
    }
}

impl From<Failure> for Over {
    fn from(failure: Failure) -> Over {
        Over::Failed(failure)
    }
}

impl From<ClientError> for Over {
    fn from(error: ClientError) -> Over {
        Over::Failed(error.into())
    }
}

pub(super) fn start(site: &Arc<Site>, open: &Arc<Open>, beginning: Beginning) -> io::Result<()> {
    let client = Client::new(&site.context)?;
    let mut watcher = Watcher {
        site: Arc::clone(site),
        open: Arc::clone(open),
        client,
        newest: None,
        title: None,
        agent: None,
        place: "0".to_owned(),
        silent_since: None,
    };
    let watching = thread::Builder::new().name("acp-watch".to_owned());
    watching.spawn(move || {
        let over = match watcher.begin(beginning) {
            Ok(()) => watcher.go_on(),
            Err(over) => over,
        };
        if let Over::Failed(failure) = over {
            note(&format!(
                "stopped watching {}: {}",
                watcher.open.id, failure.message
            ));
            watcher.open.failed(&failure.into());
            forget(&watcher.site, &watcher.open);
        }
    })?;
    Ok(())
}

#[derive(Debug)]
struct Watcher {
    site: Arc<Site>,
    open: Arc<Open>,
    client: Client,
    newest: Option<String>,
    title: Option<String>,
    agent: Option<String>,
    place: String,
    /// Since when prompts have been waiting without a daemon.
    silent_since: Option<Instant>,
}

impl Watcher {
    fn begin(&mut self, beginning: Beginning) -> Result<(), Over> {
        match beginning {
            Beginning::Nothing => self.open.replayed(),
            Beginning::All => {
                let turns = self.turns_after(None)?;
                let count = turns.len();
                for (index, turn) in turns.into_iter().enumerate() {
                    let is_last = index + 1 == count;
                    self.tell(&turn, Earlier::Told, is_last)?;
                }
                self.open.replayed();
            }
            Beginning::Now => {
                let session = self.session()?;
                self.open.replayed();
                match &session.active {
                    Some(active) => self.tell(&active.turn, Earlier::Known, true)?,
                    None => self.newest = session.last_turn,
                }
            }
        }
        Ok(())
    }

    /// Reports what happens, until the session is closed.
    fn go_on(&mut self) -> Over {
        loop {
            if self.open.is_closed() {
                return Over::Closed;
            }
            match self.look() {
                Ok(()) => {}
                // It may come back. Waiting prompts get the error, and later events are still reported.
                Err(Over::Failed(failure)) if failure.exit == Exit::Unreachable => {
                    self.open.lost(&failure.into());
                    self.open.wait_for_nudge(LOOK_AGAIN_AFTER);
                }
                Err(over) => return over,
            }
        }
    }

    /// Checks the session once, and waits if there was nothing to report.
    fn look(&mut self) -> Result<(), Over> {
        let session: Session = match self.client.get::<Session>(&path(&self.open.id, "")) {
            Ok(session) => session,
            Err(ClientError::Refused(refusal)) if !refusal.is_about_the_daemons_end() => {
                return Err(Failure::from(*refusal).into());
            }
            Err(error) => return self.without_a_daemon(error),
        };
        self.silent_since = None;
        self.tell_news(&session)?;
        if session.last_turn.is_some() && session.last_turn != self.newest {
            let newest = self.newest.clone();
            for turn in self.turns_after(newest.as_deref())? {
                self.tell(&turn, Earlier::Told, true)?;
            }
            return Ok(());
        }
        for turn in self.open.turns() {
            see_whether_it_ended(&self.open, &turn, &self.client)?;
        }
        self.wait_for_a_moment();
        Ok(())
    }

    /// No daemon answers. One that crashed is restarted if a prompt waits for it; one that was stopped is not.
    fn without_a_daemon(&mut self, error: ClientError) -> Result<(), Over> {
        if !self.open.turns().is_empty() {
            if has_crashed(&self.site.context) {
                self.session()?;
                return Ok(());
            }
            let since = *self.silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= PATIENCE {
                self.open.lost(&Refused::from(error).advise(
                    "the prompt isn't lost: it continues with the next daemon, and `session/load` shows the result",
                ));
            }
        }
        self.open.wait_for_nudge(LOOK_AGAIN_AFTER);
        Ok(())
    }

    /// Returns when something has happened to the session, or when that can't be determined.
    fn wait_for_a_moment(&mut self) {
        let open = &self.open;
        let events = path(&open.id, "/events");
        let interrupts = &mut Interrupts::default();
        let is_closed = || open.is_closed();
        let ended = self
            .client
            .next_event(&events, &mut self.place, interrupts, is_closed);
        if !matches!(ended, Ok(StreamEnd::Enough)) {
            // The next check handles it, whatever it is. Don't let that become a busy loop.
            self.open.wait_for_nudge(LOOK_AGAIN_AFTER);
        }
    }

    fn session(&self) -> Result<Session, Failure> {
        self.client.fetch(&path(&self.open.id, ""))
    }

    fn turn(&self, turn: &str) -> Result<Turn, Failure> {
        self.client.fetch(&turn_path(&self.open.id, turn, ""))
    }

    /// The turns that began after another one, in order.
    fn turns_after(&self, newest: Option<&str>) -> Result<Vec<String>, Failure> {
        turns_after(newest, |before| {
            let path = turns_path(&self.open.id, before);
            self.client.fetch(&path)
        })
    }

    fn update(&self, update: &Value) -> io::Result<()> {
        self.site.outbox.update(&self.open.id, update)
    }

    /// Reports the session's title and agent, if they changed.
    fn tell_news(&mut self, session: &Session) -> Result<(), Over> {
        if !session.title.is_empty() && self.title.as_ref() != Some(&session.title) {
            self.title = Some(session.title.clone());
            self.update(&json!({
                "sessionUpdate": "session_info_update",
                "title": session.title,
                "updatedAt": session.changed_at,
            }))?;
        }
        let before = self.agent.replace(session.agent.name.clone());
        if before.is_some_and(|before| before != session.agent.name) {
            // If the agents can't be listed, skip the update.
            if let Ok(options) = config_options(session, &self.client) {
                let update = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
                self.update(&update)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, id: &str, earlier: Earlier, is_last: bool) -> Result<(), Over> {
        let before = self.turn(id)?;
        let is_ours = self.open.is_ours(id);
        let was_over = before.ended_at.is_some();
        if !was_over {
            self.open.tells(Some(id));
        }
        if !is_ours && earlier == Earlier::Told {
            self.update(&chunk(Voice::User, &format!("{id}-prompt"), &prompt_of(&before)))?;
        }
        let mut updates = TurnUpdates::new(id, self.open.root.clone());
        loop {
            let mut ear = Ear {
                site: &self.site,
                open: &self.open,
                updates: &mut updates,
                goal: before.last_sequence,
                earlier,
                replay: if is_last && !was_over {
                    ReplayEnds::WhenLive
                } else {
                    ReplayEnds::Later
                },
            };
            let interrupts = &mut Interrupts::default();
            let beginning = printer::Beginning::Start;
            match follow(&self.client, &self.open.id, id, beginning, interrupts, &mut ear) {
                Ok(Ended::Over { .. }) => break,
                Ok(Ended::NobodyReads | Ended::LeftAlone) => return Err(Over::Closed),
                // Other readers have used up the stream limit.
                Err(failure) if failure.code == "stream_limit_reached" => {
                    self.open.wait_for_nudge(LOOK_AGAIN_AFTER);
                }
                // There was no daemon for long. Waiting prompts get the error; once there is a daemon again,
                // watching resumes.
                Err(failure) if failure.exit == Exit::Unreachable => {
                    self.open.lost(&failure.into());
                    self.until_there_is_a_daemon()?;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        self.newest = Some(id.to_owned());
        self.site
            .questions
            .withdraw_all(&self.site.outbox, &self.open.id)?;
        let turn = self.turn(id)?;
        let ended = open::Ended {
            turn: turn.id.clone(),
            state: turn.state,
            error: turn.error.clone(),
        };
        if earlier == Earlier::Told || !was_over {
            // The error response to the prompt says the same.
            let is_said = is_ours && stop_reason(&ended).is_none();
            if let Some(text) = how_it_ended(&ended).filter(|_| !is_said) {
                self.update(&chunk(Voice::Agent, &format!("{id}-end"), &text))?;
            }
            if is_last && was_over {
                // Someone who comes back sees what is pending, whichever turn it is from.
                let plan = self.session()?.plan;
                self.tell_changes(&turn.id, plan.as_deref())?;
            } else if is_last && updates.has_changes() {
                self.tell_changes(&turn.id, turn.plan.as_deref())?;
            }
        }
        if !was_over {
            // By now it has a title.
            let session = self.session()?;
            self.tell_news(&session)?;
        }
        self.open.tells(None);
        self.open.ended(&ended);
        Ok(())
    }

    fn until_there_is_a_daemon(&self) -> Result<(), Over> {
        while !matches!(self.client.probe(), Ok(Probe::Ready)) {
            if self.open.is_closed() {
                return Err(Over::Closed);
            }
            self.open.wait_for_nudge(LOOK_AGAIN_AFTER);
        }
        Ok(())
    }

    /// Shows the plan's changes, if they have yet to be applied.
    fn tell_changes(&self, turn: &str, plan: Option<&str>) -> Result<(), Over> {
        let Some(id) = plan else { return Ok(()) };
        let plan: Plan = match self.client.fetch(&plan_path(id, "")) {
            Ok(plan) => plan,
            // A plan that no longer exists needs no review.
            Err(failure) if failure.code == ErrorCode::PlanNotFound.as_str() => return Ok(()),
            Err(failure) => {
                let text = format!("The changes cannot be shown: {}\n", failure.message);
                self.update(&chunk(Voice::Agent, &format!("{turn}-next"), &text))?;
                return Ok(());
            }
        };
        if !has_work(&plan) {
            return Ok(());
        }
        let call = format!("{turn}-changes");
        let text = match changes::read(&plan, &call, &self.client) {
            Ok(found) => {
                self.update(&found.update)?;
                self.open.show(&found.shown);
                next_steps(&found.numbers, &plan)
            }
            Err(failure) => format!("The changes cannot be shown: {}\n", failure.message),
        };
        self.update(&chunk(Voice::Agent, &format!("{turn}-next"), &text))?;
        Ok(())
    }
}

/// The prompt of a turn that someone else sent, or that was sent earlier.
fn prompt_of(turn: &Turn) -> String {
    let mut text = turn.prompt.clone();
    for attachment in &turn.attachments {
        text.push_str(&format!("\n(with {})", attachment.name));
    }
    text
}

/// How a turn ended, if it did not succeed.
fn how_it_ended(ended: &open::Ended) -> Option<String> {
    let because = ended.error.as_ref();
    let because = because.map_or_else(String::new, |error| format!(": {} ({})", error.text, error.code));
    let kept = "Its messages and changes are kept.";
    Some(match ended.state {
        TurnState::Done | TurnState::Queued | TurnState::Running => return None,
        TurnState::Cancelled => format!("The turn was cancelled. {kept}\n"),
        TurnState::Interrupted => format!("The turn was interrupted{because}. {kept}\n"),
        TurnState::Failed => format!("The turn failed{because}.\n"),
    })
}
