//! The state of a session and of a turn, in the words and colours that every page uses.

use maud::Markup;
use protocol::{Session, SessionState, TurnState};

use crate::page::parts::text::{self, percent_encode, titled};

pub(crate) fn path(id: &str) -> String {
    format!("/sessions/{}", percent_encode(id))
}

pub(crate) fn title(session: &Session) -> String {
    titled(&session.title, &session.id)
}

/// The state as a coloured word: what is running, or how the last turn ended.
pub(crate) fn badge(session: &Session) -> Markup {
    text::badge(match (session.state, session.last_state) {
        (SessionState::Running, _) => ("badge active busy", "Running"),
        (SessionState::Asking, _) => ("badge warn", "Waiting for you"),
        (SessionState::Stopping, _) => ("badge warn", "Stopping"),
        (SessionState::Waiting, _) => ("badge warn", "Waiting"),
        (SessionState::Archived, _) => ("badge", "Archived"),
        (SessionState::Idle, None) => ("badge", "New"),
        (SessionState::Idle, Some(state)) => turn_look(state),
    })
}

pub(crate) fn turn_badge(state: TurnState) -> Markup {
    text::badge(turn_look(state))
}

fn turn_look(state: TurnState) -> (&'static str, &'static str) {
    match state {
        TurnState::Queued => ("badge", "Queued"),
        TurnState::Running => ("badge active busy", "Running"),
        TurnState::Done => ("badge good", "Done"),
        TurnState::Failed => ("badge bad", "Failed"),
        TurnState::Cancelled => ("badge", "Stopped"),
        TurnState::Interrupted => ("badge bad", "Interrupted"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::{ActiveTurn, AgentChoice, WaitingPermission};

    use super::*;

    /// A session in a state, with a turn if the state has one.
    pub(crate) fn session(state: SessionState) -> Session {
        let asking = (state == SessionState::Asking).then(|| WaitingPermission {
            permission: "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
            tool: "shell".to_owned(),
            subject: "rm -rf target".to_owned(),
        });
        let active = ActiveTurn {
            turn: "turn_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
            prompt: "Fix it".to_owned(),
            attachments: Vec::new(),
            started_at: "2026-01-31T09:30:01.000Z".to_owned(),
            boot: "boot".to_owned(),
            home: "home".to_owned(),
            stop: None,
            asking: asking.into_iter().collect(),
        };
        Session {
            id: "session_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
            state,
            version: 3,
            title: "Fix the parser".to_owned(),
            machine: None,
            waits_for: None,
            directory: "/home/me/project".to_owned(),
            agent: AgentChoice {
                name: "rehearsal".to_owned(),
                ..AgentChoice::default()
            },
            opened_by: "unix".to_owned(),
            opened_at: "2026-01-31T09:30:00.000Z".to_owned(),
            changed_at: "2026-01-31T09:30:00.000Z".to_owned(),
            plan: None,
            active: (!matches!(
                state,
                SessionState::Idle | SessionState::Waiting | SessionState::Archived
            ))
            .then_some(active),
            queue: Vec::new(),
            last_turn: None,
            last_state: None,
            prompts: 1,
            archived: state == SessionState::Archived,
            forked_from: None,
            forks: 0,
            rules: Vec::new(),
        }
    }

    #[test]
    fn a_session_that_rests_says_how_its_last_turn_ended() {
        let cases = [
            (
                SessionState::Running,
                Some(TurnState::Failed),
                "badge active busy",
                "Running",
            ),
            (SessionState::Asking, None, "badge warn", "Waiting for you"),
            (SessionState::Stopping, None, "badge warn", "Stopping"),
            (
                SessionState::Archived,
                Some(TurnState::Failed),
                "badge",
                "Archived",
            ),
            (SessionState::Idle, None, "badge", "New"),
            (SessionState::Idle, Some(TurnState::Done), "badge good", "Done"),
            (SessionState::Idle, Some(TurnState::Failed), "badge bad", "Failed"),
            (SessionState::Idle, Some(TurnState::Cancelled), "badge", "Stopped"),
            (
                SessionState::Idle,
                Some(TurnState::Interrupted),
                "badge bad",
                "Interrupted",
            ),
        ];
        for (state, last_state, class, word) in cases {
            let session = Session {
                last_state,
                ..session(state)
            };
            let expected = format!("<span class=\"{class}\">{word}</span>");
            assert_eq!(badge(&session).into_string(), expected);
        }
    }
}
