//! A session that an editor has open, and the prompts that the editor is waiting for.
//!
//! The state is a [`Slot`]: the thread that reads the editor's messages writes the editor's wishes, the thread that
//! watches the session writes the results, and each prompt waits for its end. The reading thread registers prompts
//! and cancel requests in the order of the messages. So a cancel request applies to the prompts before it and never
//! to one after it, however the threads are scheduled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::{CancellationToken, Clock, Deadline, Slot, SystemClock};
use protocol::{TurnError, TurnState};

use super::message::RequestId;
use super::refusal::Refused;

/// How long a prompt may take to reach the daemon. The slowest case is a daemon that has to be started first.
const SENDING_LIMIT: Duration = Duration::from_secs(120);
/// The longest single wait. A turn may take hours; the waiting thread then checks again.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) type Ticket = u64;

#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: String,
    /// The root of the workspace, which tool paths are relative to.
    pub(super) root: PathBuf,
    view: Slot<View>,
    clock: Arc<dyn Clock>,
    /// Never cancelled. Waits end because the view changes.
    token: CancellationToken,
}

#[derive(Clone, Debug, Default)]
struct View {
    is_closed: bool,
    /// Why the session is no longer watched.
    failed: Option<Refused>,
    replay: Replay,
    last_ticket: Ticket,
    prompts: BTreeMap<Ticket, Prompt>,
    telling: Option<String>,
    shown: Option<Shown>,
    /// A message to show before the next prompt is answered.
    notice: Option<String>,
    /// Counts this editor's requests to the daemon, so that a watcher waiting for a daemon knows when to check.
    nudges: u64,
}

#[derive(Clone, Debug, Default)]
enum Replay {
    #[default]
    Behind,
    Done,
    Failed(Refused),
}

#[derive(Clone, Debug)]
struct Prompt {
    request: RequestId,
    is_cancelled: bool,
    state: PromptState,
}

#[derive(Clone, Debug)]
enum PromptState {
    /// It is on its way, and its turn is not known yet.
    Sending,
    Turn(String),
    Ended(Result<Ended, Refused>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) turn: String,
    pub(super) state: TurnState,
    pub(super) error: Option<TurnError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) plan: String,
    pub(super) fingerprint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    GoOn,
    Cancel,
}

impl Open {
    pub(super) fn new(id: &str, directory: &Path) -> Open {
        Open {
            id: id.to_owned(),
            root: root_of(directory),
            view: Slot::new(View::default()),
            clock: SystemClock::shared(),
            token: CancellationToken::new(),
        }
    }

    /// Changes the view, and retries if another thread changed it first. The closure may run more than once.
    fn change<T>(&self, change: impl Fn(&mut View) -> T) -> T {
        let mut seen = self.view.read();
        loop {
            let mut next = (*seen.state).clone();
            let outcome = change(&mut next);
            match self.view.transition(seen.generation, next) {
                Ok(_) => return outcome,
                Err(stale) => seen = stale.current,
            }
        }
    }

    /// Waits until the view is as wanted, or until the limit.
    fn wait(&self, limit: Duration, is_wanted: impl Fn(&View) -> bool + Unpin) {
        let deadline = Deadline::after(&self.clock, limit);
        // The caller checks the view afterwards, however the wait ended.
        drop(
            self.view
                .wait_until_blocking(is_wanted, deadline, &self.token.scope()),
        );
    }

    pub(super) fn enter(&self, request: &RequestId) -> Ticket {
        self.change(|view| {
            view.last_ticket += 1;
            let prompt = Prompt {
                request: request.clone(),
                is_cancelled: false,
                state: PromptState::Sending,
            };
            view.prompts.insert(view.last_ticket, prompt);
            view.nudges += 1;
            view.last_ticket
        })
    }

    pub(super) fn wish(&self, ticket: Ticket) -> Wish {
        let view = self.view.read().state;
        match view.prompts.get(&ticket) {
            Some(prompt) if !prompt.is_cancelled && !view.is_closed => Wish::GoOn,
            _ => Wish::Cancel,
        }
    }

    /// The daemon accepted a prompt. Returns whether the editor cancelled it in the meantime.
    pub(super) fn sent(&self, ticket: Ticket, turn: &str) -> Wish {
        self.change(|view| {
            if let Some(prompt) = view.prompts.get_mut(&ticket)
                && matches!(prompt.state, PromptState::Sending)
            {
                prompt.state = PromptState::Turn(turn.to_owned());
            }
        });
        self.wish(ticket)
    }

    pub(super) fn leave(&self, ticket: Ticket) {
        self.change(|view| {
            view.prompts.remove(&ticket);
        });
    }

    /// Cancels all prompts received so far. Returns the turns that are known; for the others, the sending thread sees
    /// the request. If this editor is waiting for no prompt, returns the turn it is watching.
    pub(super) fn cancel_all(&self) -> Vec<String> {
        self.change(|view| {
            let mut turns = Vec::new();
            for prompt in view.prompts.values_mut() {
                prompt.is_cancelled = true;
                if let PromptState::Turn(turn) = &prompt.state {
                    turns.push(turn.clone());
                }
            }
            if view.prompts.is_empty() {
                turns.extend(view.telling.clone());
            }
            turns
        })
    }

    /// Like `cancel_all`, for one request, if it is a prompt.
    pub(super) fn cancel_request(&self, request: &RequestId) -> Option<Vec<String>> {
        self.change(|view| {
            let mut found = view.prompts.values_mut();
            let prompt = found.find(|prompt| prompt.request == *request)?;
            prompt.is_cancelled = true;
            Some(match &prompt.state {
                PromptState::Turn(turn) => vec![turn.clone()],
                PromptState::Sending | PromptState::Ended(_) => Vec::new(),
            })
        })
    }

    pub(super) fn ended(&self, ended: &Ended) {
        self.change(|view| {
            for prompt in view.prompts.values_mut() {
                if matches!(&prompt.state, PromptState::Turn(turn) if *turn == ended.turn) {
                    prompt.state = PromptState::Ended(Ok(ended.clone()));
                }
            }
        });
    }

    /// The outcome of the turns can no longer be determined.
    pub(super) fn lost(&self, refused: &Refused) {
        self.change(|view| {
            for prompt in view.prompts.values_mut() {
                if matches!(prompt.state, PromptState::Turn(_)) {
                    prompt.state = PromptState::Ended(Err(refused.clone()));
                }
            }
            if matches!(view.replay, Replay::Behind) {
                view.replay = Replay::Failed(refused.clone());
            }
        });
    }

    /// Like `lost`, but permanently: the session is no longer watched.
    pub(super) fn failed(&self, refused: &Refused) {
        self.lost(refused);
        self.change(|view| view.failed = Some(refused.clone()));
    }

    /// Waits for a prompt to end. Returns `None` if its session was closed.
    pub(super) fn wait_for_end(&self, ticket: Ticket) -> Option<Result<Ended, Refused>> {
        loop {
            self.wait(LONGEST_WAIT, move |view| {
                let prompt = view.prompts.get(&ticket);
                let is_over = prompt.is_none_or(|prompt| matches!(prompt.state, PromptState::Ended(_)));
                is_over || view.is_closed || view.failed.is_some()
            });
            let view = self.view.read().state;
            match (
                view.prompts.get(&ticket).map(|prompt| &prompt.state),
                &view.failed,
            ) {
                (Some(PromptState::Ended(ended)), _) => return Some(ended.clone()),
                (Some(_), Some(failed)) => return Some(Err(failed.clone())),
                (Some(_), None) if !view.is_closed => {}
                (Some(_) | None, _) => return None,
            }
        }
    }

    pub(super) fn turns(&self) -> Vec<String> {
        let view = self.view.read().state;
        let turns = view.prompts.values().filter_map(|prompt| match &prompt.state {
            PromptState::Turn(turn) => Some(turn.clone()),
            PromptState::Sending | PromptState::Ended(_) => None,
        });
        turns.collect()
    }

    /// Whether this editor sent the prompt of a turn. Waits for a prompt that is on its way.
    pub(super) fn is_ours(&self, turn: &str) -> bool {
        self.wait(SENDING_LIMIT, |view| {
            let mut prompts = view.prompts.values();
            prompts.all(|prompt| !matches!(prompt.state, PromptState::Sending))
        });
        self.turns().iter().any(|known| known == turn)
    }

    pub(super) fn tells(&self, turn: Option<&str>) {
        self.change(|view| view.telling = turn.map(str::to_owned));
    }

    pub(super) fn replayed(&self) {
        self.change(|view| {
            if matches!(view.replay, Replay::Behind) {
                view.replay = Replay::Done;
            }
        });
    }

    /// Waits until the history has been replayed.
    pub(super) fn wait_for_replay(&self) -> Result<(), Refused> {
        self.wait(LONGEST_WAIT, |view| {
            !matches!(view.replay, Replay::Behind) || view.is_closed
        });
        let view = self.view.read().state;
        match &view.replay {
            Replay::Done => Ok(()),
            Replay::Failed(refused) => Err(refused.clone()),
            Replay::Behind => Err(Refused::not_open(&self.id)),
        }
    }

    /// Closes the session. The editor gets no more updates about it.
    pub(super) fn close(&self) {
        self.change(|view| view.is_closed = true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.view.read().state.is_closed
    }

    pub(super) fn show(&self, shown: &Shown) {
        self.change(|view| view.shown = Some(shown.clone()));
    }

    pub(super) fn shown(&self) -> Option<Shown> {
        self.view.read().state.shown.clone()
    }

    pub(super) fn notice(&self, text: &str) {
        self.change(|view| view.notice = Some(text.to_owned()));
    }

    pub(super) fn take_notice(&self) -> Option<String> {
        self.change(|view| view.notice.take())
    }

    /// Waits until the limit, or until this editor sends the daemon a request or closes the session.
    pub(super) fn wait_for_nudge(&self, limit: Duration) {
        let before = self.view.read().state.nudges;
        self.wait(limit, move |view| view.nudges != before || view.is_closed);
    }
}

/// A git repository is one workspace, no matter which of its directories is given; otherwise it is the directory
/// itself.
fn root_of(directory: &Path) -> PathBuf {
    let mut above = directory.ancestors();
    let found = above.find(|directory| directory.join(".git").exists());
    found.unwrap_or(directory).to_path_buf()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open() -> Open {
        Open::new("session_x", Path::new("/nowhere"))
    }

    fn enter(open: &Open, id: u64) -> Ticket {
        open.enter(&RequestId(json!(id)))
    }

    fn done(turn: &str) -> Ended {
        Ended {
            turn: turn.to_owned(),
            state: TurnState::Done,
            error: None,
        }
    }

    #[test]
    fn a_wish_to_cancel_is_for_the_prompts_before_it() {
        let open = open();
        let (first, second) = (enter(&open, 1), enter(&open, 2));
        assert_eq!(open.sent(first, "a"), Wish::GoOn);
        assert_eq!(open.cancel_all(), ["a"]);
        let third = enter(&open, 3);
        assert_eq!(open.sent(second, "b"), Wish::Cancel, "it was on its way");
        assert_eq!(open.sent(third, "c"), Wish::GoOn);
        assert_eq!(
            open.cancel_request(&RequestId(json!(3))),
            Some(vec!["c".to_owned()])
        );
        assert_eq!(open.cancel_request(&RequestId(json!(4))), None);
    }

    #[test]
    fn with_nothing_of_its_own_an_editor_stops_what_it_sees() {
        let open = open();
        assert_eq!(open.cancel_all(), Vec::<String>::new());
        open.tells(Some("theirs"));
        assert_eq!(open.cancel_all(), ["theirs"]);
        let ticket = enter(&open, 1);
        assert_eq!(open.cancel_all(), Vec::<String>::new());
        assert_eq!(open.sent(ticket, "ours"), Wish::Cancel);
    }

    #[test]
    fn a_prompt_ends_with_its_turn_however_early_that_was_told() {
        let open = open();
        let (one, other) = (enter(&open, 1), enter(&open, 2));
        open.sent(one, "a");
        open.sent(other, "b");
        assert!(open.is_ours("a") && !open.is_ours("z"));
        open.ended(&done("a"));
        assert_eq!(open.wait_for_end(one), Some(Ok(done("a"))));
        assert_eq!(open.turns(), ["b"]);
        open.lost(&Refused::params("x"));
        assert_eq!(open.wait_for_end(other), Some(Err(Refused::params("x"))));
        open.leave(one);
        assert_eq!(open.wait_for_end(one), None);
        // A prompt that arrives when the session is no longer watched does not wait forever.
        let late = enter(&open, 3);
        open.failed(&Refused::params("y"));
        open.sent(late, "c");
        assert_eq!(open.wait_for_end(late), Some(Err(Refused::params("y"))));
    }

    #[test]
    fn whoever_waits_is_told_when_the_session_is_closed() {
        let open = Arc::new(open());
        let ticket = enter(&open, 1);
        open.sent(ticket, "a");
        let waiter = std::thread::spawn({
            let open = Arc::clone(&open);
            move || (open.wait_for_end(ticket), open.wait_for_replay().is_err())
        });
        open.close();
        assert_eq!(waiter.join().unwrap(), (None, true));
        assert_eq!(open.wish(ticket), Wish::Cancel);
    }
}
