//! Sessions, turns and agents.

mod agents;
mod events;
mod session;
mod turn;

pub use agents::{Agent, AgentKind, AgentList};
pub use events::{
    PermissionAnswer, PermissionOption, Prompt, ToolState, TurnEnd, TurnEvent, TurnEventBody, TurnEventList,
    TurnItem, TurnResync, TurnTranscript,
};
pub use session::{
    ActiveTurn, AgentChoice, AnswerPermission, ArchiveSession, AwaitedMachine, ForkSession, OpenSession,
    PermissionAnswered, PermissionRule, RenameSession, RulePermission, Session, SessionCounts,
    SessionHistory, SessionList, SessionMoment, SessionState, StopRequest, WaitingPermission,
};
pub use turn::{
    Attachment, CancelTurn, ClearStaleTurn, EditQueued, IfBusy, NewAttachment, StartTurn, Turn, TurnAccepted,
    TurnError, TurnList, TurnState, Usage,
};
