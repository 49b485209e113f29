//! Words that both sides have, one by one.

use sessions::permissions::{Answer, Permission, Rule};
use sessions::{AgentKind, SessionState, TurnState};

pub(crate) fn state_to_wire(state: SessionState) -> protocol::SessionState {
    match state {
        SessionState::Idle => protocol::SessionState::Idle,
        SessionState::Waiting => protocol::SessionState::Waiting,
        SessionState::Running => protocol::SessionState::Running,
        SessionState::Asking => protocol::SessionState::Asking,
        SessionState::Stopping => protocol::SessionState::Stopping,
        SessionState::Archived => protocol::SessionState::Archived,
    }
}

pub(crate) fn state_of(state: protocol::SessionState) -> SessionState {
    match state {
        protocol::SessionState::Idle => SessionState::Idle,
        protocol::SessionState::Waiting => SessionState::Waiting,
        protocol::SessionState::Running => SessionState::Running,
        protocol::SessionState::Asking => SessionState::Asking,
        protocol::SessionState::Stopping => SessionState::Stopping,
        protocol::SessionState::Archived => SessionState::Archived,
    }
}

pub(crate) fn turn_state_to_wire(state: TurnState) -> protocol::TurnState {
    match state {
        TurnState::Queued => protocol::TurnState::Queued,
        TurnState::Running => protocol::TurnState::Running,
        TurnState::Done => protocol::TurnState::Done,
        TurnState::Failed => protocol::TurnState::Failed,
        TurnState::Cancelled => protocol::TurnState::Cancelled,
        TurnState::Interrupted => protocol::TurnState::Interrupted,
    }
}

pub(super) fn kind_to_wire(kind: AgentKind) -> protocol::AgentKind {
    match kind {
        AgentKind::Rehearsal => protocol::AgentKind::Rehearsal,
        AgentKind::Model => protocol::AgentKind::Model,
        AgentKind::Acp => protocol::AgentKind::Acp,
    }
}

pub(crate) fn answer_to_wire(answer: Answer) -> protocol::PermissionAnswer {
    match answer {
        Answer::Allow => protocol::PermissionAnswer::Allow,
        Answer::AllowAlways => protocol::PermissionAnswer::AllowAlways,
        Answer::Deny => protocol::PermissionAnswer::Deny,
    }
}

pub(crate) fn answer_of(answer: protocol::PermissionAnswer) -> Answer {
    match answer {
        protocol::PermissionAnswer::Allow => Answer::Allow,
        protocol::PermissionAnswer::AllowAlways => Answer::AllowAlways,
        protocol::PermissionAnswer::Deny => Answer::Deny,
    }
}

pub(super) fn rule_to_wire(rule: &Rule) -> protocol::PermissionRule {
    protocol::PermissionRule {
        tool: rule.tool.clone(),
        pattern: rule.pattern.clone(),
        permission: match rule.permission {
            Permission::Allow => protocol::RulePermission::Allow,
            Permission::Ask => protocol::RulePermission::Ask,
            Permission::Deny => protocol::RulePermission::Deny,
        },
    }
}

pub(super) fn permission_of(permission: protocol::RulePermission) -> Permission {
    match permission {
        protocol::RulePermission::Allow => Permission::Allow,
        protocol::RulePermission::Ask => Permission::Ask,
        protocol::RulePermission::Deny => Permission::Deny,
    }
}
