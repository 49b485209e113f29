//! The shared vocabulary: ids, requests, responses, events, states and error codes.
//!
//! Each is declared once. The domain crates return these types, the daemon serves them, and clients read them. They
//! are plain data with `serde` and `utoipa` derives. [`sse`] parses event streams for clients that follow one.
//!
//! **Boundary**: this crate depends on no other crate of the workspace. Times are strings, and durations are whole
//! milliseconds with `_ms` in their name.

mod activity;
mod boot;
mod breaker;
mod clients;
mod context;
mod daemon;
mod error_code;
mod history;
mod ids;
mod input;
mod jobs;
mod lenient;
mod log;
mod lsp;
mod machine;
mod needs;
mod plans;
mod problem;
mod processes;
mod sessions;
mod settings;
mod short_ids;
pub mod sse;

pub use activity::{Activity, ActivityKind, ActivityList};
pub use boot::{Boot, BootList, BootState};
pub use breaker::{
    Breaker, BreakerList, BreakerState, ForceBreaker, ForcedState, Outcome, RecordOutcome, ResetBreaker,
    ResetBreakers,
};
pub use clients::{Client, ClientList, ClientTransport};
pub use context::{
    ChangeContextIndex, ContextAnswer, ContextCounts, ContextDepth, ContextFragment, ContextIndex,
    ContextIndexList, ContextIndexRemoved, ContextIndexState, ContextLeftOut, ContextOutcome,
    ContextQuestion, ContextScorePart, ContextStrategy, ContextStrategyInfo, ContextStrategyList,
    ContextStrategyState, ContextTokenizer,
};
pub use daemon::{
    BreakerSummary, Health, HealthStatus, PageLink, Phase, Readiness, ReadinessStatus, ShutdownAccepted,
    Status,
};
pub use error_code::ErrorCode;
pub use history::{Actor, BreakerEvent, BreakerEventList, Resync};
pub use ids::{
    BootId, ChangesetId, HomeId, IdError, JobId, PermissionId, PlanId, RequestId, RescuedId, SessionId,
    TurnId, WorkspaceId,
};
pub use input::{
    INPUT_DATA, INPUT_END, INPUT_HELLO, INPUT_OVER, INPUT_PIECE_BYTES, INPUT_PROTOCOL, INPUT_TAKEN,
};
pub use jobs::{
    CancelJob, CollectJobs, Job, JobCancelRequest, JobChannel, JobCommand, JobCounts, JobExit, JobHistory,
    JobIfInterrupted, JobKilled, JobLane, JobLimits, JobList, JobMoment, JobOutput, JobProgress, JobState,
    JobSubmitted, JobTerminal, JobWaiting, JobsCollected, RetryJob, SetJobWorkers, SubmitJob,
};
pub use lenient::{lenient, lenient_list};
pub use log::{
    ARCHIVE_MEDIA_TYPE, BackupLog, LogBackup, LogCheck, LogEngine, LogIntegrity, LogServer, LogSizes,
    LogState, LogStatus, QuarantineList, QuarantinedHead, QuarantinedStream,
};
pub use lsp::{
    AnsweredBy, Availability, Call, CallDirection, CallsAnswer, ChangeServer, CodeAction, CodeActionsAnswer,
    CodeAnswer, CodeQuery, CodeVerb, Completion, CompletionsAnswer, ConfigNote, ConfiguredServer, Diagnostic,
    DiagnosticSeverity, DiagnosticsAnswer, EditAnswer, FileEdit, HoverAnswer, Location, LocationsAnswer,
    LspConfig, NotAnswered, Position, Range, RawAnswer, RawRequest, Related, SEARCH_VARIABLES, Server,
    ServerHealth, ServerList, ServerLog, ServerLogLine, ServerProgress, ServerReadiness, ServerState,
    Signature, SignatureAnswer, StartServer, Symbol, SymbolsAnswer, TextEdit, TrustConfig, Trusted,
};
pub use machine::Machine;
pub use needs::{Need, NeedKind, NeedList};
pub use plans::{
    ApplyPlans, ChangeFiles, ChangePlan, Changeset, ChangesetList, ChangesetState, CheckPlan, CheckState,
    CollectPlans, CollectedSandbox, CommitPlans, DiffHunk, DiffLine, DiffLineKind, DiffSummary, FileDiff,
    FileOperation, FilesChanged, FinishOutcome, FinishPlan, FinishThen, ForgetPlan, IfChildFails, OpenPlan,
    OutcomeKind, OutcomePath, Plan, PlanBranch, PlanCheck, PlanCommand, PlanConflict, PlanConflictHunk,
    PlanCounts, PlanDiff, PlanFile, PlanFinish, PlanForgotten, PlanHistory, PlanLeftOut, PlanList,
    PlanMoment, PlanOutcome, PlanOverlap, PlanOverlapPath, PlanRefused, PlanState, PlanUnrecorded,
    PlansCollected, RecordedChange, RepairState, RepairWorkspace, Rescued, RescuedList, RescuedRestored,
    RestoreRescued, SandboxStrategy, SetWorkspaceChecks, StartChangeset, StrategyList, StrategyState,
    StuckLanding, UndoPlan, Workspace, WorkspaceList, WorkspaceRepaired, WorkspaceState,
};
pub use problem::{Current, PROBLEM_MEDIA_TYPE, Problem};
pub use processes::{
    Confinement, Process, ProcessAncestor, ProcessExplanation, ProcessList, ProcessRole, ProcessState,
    ProcessSummary,
};
pub use sessions::{
    ActiveTurn, Agent, AgentChoice, AgentKind, AgentList, AnswerPermission, ArchiveSession, Attachment,
    AwaitedMachine, CancelTurn, ClearStaleTurn, EditQueued, ForkSession, IfBusy, NewAttachment, OpenSession,
    PermissionAnswer, PermissionAnswered, PermissionOption, PermissionRule, Prompt, RenameSession,
    RulePermission, Session, SessionCounts, SessionHistory, SessionList, SessionMoment, SessionState,
    StartTurn, StopRequest, ToolState, Turn, TurnAccepted, TurnEnd, TurnError, TurnEvent, TurnEventBody,
    TurnEventList, TurnItem, TurnList, TurnResync, TurnState, TurnTranscript, Usage, WaitingPermission,
};
pub use settings::{Setting, SettingList, SettingSource};
pub use short_ids::{IdKind, IdMatches, is_part_of_id};
