//! The state of a session and of a turn, as it is shown wherever one is.

use maud::{Markup, html};
use protocol::{Session, SessionState, TurnState};

use super::ansi::one_line;
use super::history::percent_encode;

/// Where a session is shown.
pub(super) fn path(id: &str) -> String {
    format!("/sessions/{}", percent_encode(id))
}

/// What a session is about, in one line. It never is empty, because it is a link.
pub(super) fn title(session: &Session) -> String {
    let title = one_line(&session.title);
    match title.trim().is_empty() {
        true => session.id.clone(),
        false => title,
    }
}

/// The state as a coloured word.
pub(super) fn badge(session: &Session) -> Markup {
    let class = match (session.state, session.last_state) {
        (SessionState::Running, _) => "badge active busy",
        (SessionState::Asking | SessionState::Stopping | SessionState::Waiting, _) => "badge warn",
        (SessionState::Idle, Some(TurnState::Failed | TurnState::Interrupted)) => "badge bad",
        (SessionState::Idle, Some(TurnState::Done)) => "badge good",
        (SessionState::Idle | SessionState::Archived, _) => "badge",
    };
    html! { span class=(class) { (label(session)) } }
}

/// The state for people: what runs, or how the last turn ended.
pub(super) fn label(session: &Session) -> &'static str {
    match session.state {
        SessionState::Running => "Running",
        SessionState::Asking => "Waiting for you",
        SessionState::Stopping => "Stopping",
        SessionState::Archived => "Archived",
        SessionState::Waiting => "Waiting",
        SessionState::Idle => match session.last_state {
            None => "New",
            Some(state) => turn_label(state),
        },
    }
}

/// The state of a turn for people.
pub(super) fn turn_label(state: TurnState) -> &'static str {
    match state {
        TurnState::Queued => "Queued",
        TurnState::Running => "Running",
        TurnState::Done => "Done",
        TurnState::Failed => "Failed",
        TurnState::Cancelled => "Stopped",
        TurnState::Interrupted => "Interrupted",
    }
}

/// The state of a turn as a coloured word.
pub(super) fn turn_badge(state: TurnState) -> Markup {
    let class = match state {
        TurnState::Queued | TurnState::Cancelled => "badge",
        TurnState::Running => "badge active busy",
        TurnState::Done => "badge good",
        TurnState::Failed | TurnState::Interrupted => "badge bad",
    };
    html! { span class=(class) { (turn_label(state)) } }
}

#[cfg(test)]
pub(super) mod tests {
    use protocol::{ActiveTurn, AgentChoice, WaitingPermission};

    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::*;

    /// A session in a state, with a turn if that has one.
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

    #[test]
    fn a_title_is_never_empty_and_never_markup() {
        let titled = |title: &str| Session {
            title: title.to_owned(),
            ..session(SessionState::Idle)
        };
        assert_eq!(title(&titled(" \n ")), "session_01JCZ8T6V8Y3N5K2M4Q7R9S1TX");
        let title = title(&titled(HOSTILE));
        assert_harmless(&html! { (title) }.into_string());
    }
}
