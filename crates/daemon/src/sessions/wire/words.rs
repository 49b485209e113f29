//! Words that both sides have, one by one.

use sessions::permissions::{Answer, Permission, Rule};
use sessions::{AgentKind, SessionState, TurnState};

pub(crate) fn state_to_wire(state: SessionState) -> api::SessionState {
    match state {
        SessionState::Idle => api::SessionState::Idle,
        SessionState::Waiting => api::SessionState::Waiting,
        SessionState::Running => api::SessionState::Running,
        SessionState::Asking => api::SessionState::Asking,
        SessionState::Stopping => api::SessionState::Stopping,
        SessionState::Archived => api::SessionState::Archived,
    }
}

pub(crate) fn state_of(state: api::SessionState) -> SessionState {
    match state {
        api::SessionState::Idle => SessionState::Idle,
        api::SessionState::Waiting => SessionState::Waiting,
        api::SessionState::Running => SessionState::Running,
        api::SessionState::Asking => SessionState::Asking,
        api::SessionState::Stopping => SessionState::Stopping,
        api::SessionState::Archived => SessionState::Archived,
    }
}

pub(crate) fn turn_state_to_wire(state: TurnState) -> api::TurnState {
    match state {
        TurnState::Queued => api::TurnState::Queued,
        TurnState::Running => api::TurnState::Running,
        TurnState::Done => api::TurnState::Done,
        TurnState::Failed => api::TurnState::Failed,
        TurnState::Cancelled => api::TurnState::Cancelled,
        TurnState::Interrupted => api::TurnState::Interrupted,
    }
}

pub(super) fn kind_to_wire(kind: AgentKind) -> api::AgentKind {
    match kind {
        AgentKind::Rehearsal => api::AgentKind::Rehearsal,
        AgentKind::Model => api::AgentKind::Model,
        AgentKind::Acp => api::AgentKind::Acp,
    }
}

pub(crate) fn answer_to_wire(answer: Answer) -> api::PermissionAnswer {
    match answer {
        Answer::Allow => api::PermissionAnswer::Allow,
        Answer::AllowAlways => api::PermissionAnswer::AllowAlways,
        Answer::Deny => api::PermissionAnswer::Deny,
    }
}

pub(crate) fn answer_of(answer: api::PermissionAnswer) -> Answer {
    match answer {
        api::PermissionAnswer::Allow => Answer::Allow,
        api::PermissionAnswer::AllowAlways => Answer::AllowAlways,
        api::PermissionAnswer::Deny => Answer::Deny,
    }
}

pub(super) fn rule_to_wire(rule: &Rule) -> api::PermissionRule {
    api::PermissionRule {
        tool: rule.tool.clone(),
        pattern: rule.pattern.clone(),
        permission: match rule.permission {
            Permission::Allow => api::RulePermission::Allow,
            Permission::Ask => api::RulePermission::Ask,
            Permission::Deny => api::RulePermission::Deny,
        },
    }
}

pub(super) fn permission_of(permission: api::RulePermission) -> Permission {
    match permission {
        api::RulePermission::Allow => Permission::Allow,
        api::RulePermission::Ask => Permission::Ask,
        api::RulePermission::Deny => Permission::Deny,
    }
}
