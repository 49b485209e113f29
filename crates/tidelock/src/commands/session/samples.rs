//! Sessions and turns for tests, with every field set.

use protocol::{
    ActiveTurn, AgentChoice, ForkSession, Session, SessionState, Turn, TurnError, TurnState, Usage,
    WaitingPermission,
};

pub(super) const TURN: &str = "turn_01JCZ8T6V8Y3N5K2M4Q7R9T1TX";

pub(super) fn session() -> Session {
    Session {
        id: "session_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
        state: SessionState::Idle,
        version: 7,
        title: "mend the parser".to_owned(),
        machine: None,
        waits_for: None,
        directory: "/home/me/project".to_owned(),
        agent: AgentChoice {
            name: "rehearsal".to_owned(),
            model: None,
            script: None,
        },
        opened_by: "me".to_owned(),
        opened_at: "then".to_owned(),
        changed_at: "later".to_owned(),
        plan: Some("plan_01JCZ8T6V8Y3N5K2M4Q7R9P1TX".to_owned()),
        active: None,
        queue: Vec::new(),
        last_turn: Some(TURN.to_owned()),
        last_state: Some(TurnState::Done),
        prompts: 2,
        archived: false,
        forked_from: Some(ForkSession {
            session: Some("session_01JCZ8T6V8Y3N5K2M4Q7R9FRMX".to_owned()),
            turn: None,
        }),
        forks: 1,
        rules: Vec::new(),
    }
}

pub(super) fn asking(session: Session, permissions: &[&str]) -> Session {
    let asking = permissions.iter().map(|permission| WaitingPermission {
        permission: (*permission).to_owned(),
        tool: "shell".to_owned(),
        subject: "cargo publish".to_owned(),
    });
    Session {
        state: SessionState::Asking,
        active: Some(ActiveTurn {
            turn: TURN.to_owned(),
            prompt: "publish it".to_owned(),
            attachments: vec!["notes.txt".to_owned()],
            started_at: "just now".to_owned(),
            boot: "boot_1".to_owned(),
            home: "home_1".to_owned(),
            stop: None,
            asking: asking.collect(),
        }),
        ..session
    }
}

pub(super) fn turn(state: TurnState) -> Turn {
    let error = matches!(state, TurnState::Failed | TurnState::Interrupted).then(|| TurnError {
        code: "model_timeout".to_owned(),
        text: "the model did not answer in time".to_owned(),
    });
    Turn {
        id: TURN.to_owned(),
        state,
        session: session().id,
        number: 2,
        prompt: "mend the parser\nplease".to_owned(),
        attachments: Vec::new(),
        agent: session().agent,
        by: "me".to_owned(),
        accepted_at: "2026-01-31T09:30:00.000Z".to_owned(),
        started_at: Some("2026-01-31T09:30:00.000Z".to_owned()),
        ended_at: Some("2026-01-31T09:30:07.000Z".to_owned()),
        plan: session().plan,
        usage: Usage {
            input_tokens: 1_234,
            output_tokens: 56,
            requests: 3,
            cost_micros: 1_500,
        },
        error,
        finish: None,
        finish_job: None,
        finished: None,
        last_sequence: 42,
    }
}
