//! What each code means, independent of the specific case.

use super::ErrorCode;

/// What all problems with one code share.
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) status: u16,
    pub(super) title: &'static str,
    pub(super) advice: &'static str,
}

impl ErrorCode {
    pub(super) fn describe(self) -> Description {
        let (name, status, title, advice) = match self {
            Self::MalformedJson => (
                "malformed_json",
                400,
                "The body is not JSON",
                "Fix the JSON at the given line and column and send it again.",
            ),
            Self::InvalidName => (
                "invalid_name",
                400,
                "The name is not valid",
                "Use a name of 1 to 128 bytes without control characters, and percent-encode it in the path.",
            ),
            Self::InvalidQuery => (
                "invalid_query",
                400,
                "The query is not valid",
                "Correct the named parameter; /openapi.json describes them all.",
            ),
            Self::Unauthorized => (
                "unauthorized",
                401,
                "No valid token or session",
                "Send `Authorization: Bearer TOKEN` with the content of the token file, or run \
                 `tidelock up` and open the link it prints.",
            ),
            Self::OriginNotAllowed => (
                "origin_not_allowed",
                403,
                "The request comes from a foreign page",
                "Send the request from the daemon's own page, or from a program that doesn't set an Origin \
                 header.",
            ),
            Self::FormTokenInvalid => (
                "form_token_invalid",
                403,
                "The form is not from this session",
                "Reload the page and submit the form from there.",
            ),
            Self::ApplyNotAllowed => (
                "apply_not_allowed",
                403,
                "Commands of agents do not change your files",
                "Run it in your own terminal or on the page. To let agents do it, set `mcp.apply = \"allow\"` in \
                 config.toml and restart the daemon.",
            ),
            Self::NotFound => (
                "not_found",
                404,
                "There is nothing here",
                "Check the path against the list at /openapi.json.",
            ),
            Self::BreakerUnknown => (
                "breaker_unknown",
                404,
                "No breaker has this name",
                "An unknown name counts as closed. List the known ones with GET /v1/breakers.",
            ),
            Self::ProcessNotFound => (
                "process_not_found",
                404,
                "The daemon owns no such process",
                "GET /v1/processes lists the processes that this daemon started.",
            ),
            Self::ServerNotFound => (
                "server_not_found",
                404,
                "No language server has this name",
                "GET /v1/lsp/servers lists the servers that were used, and GET /v1/lsp/config lists the \
                 configured ones.",
            ),
            Self::NoServerForFile => (
                "no_server_for_file",
                404,
                "No language server is for this file",
                "Use a file in a language that `tidelock lsp config` lists, or configure a server for this \
                 one.",
            ),
            Self::JobNotFound => (
                "job_not_found",
                404,
                "There is no such job",
                "List the jobs with GET /v1/jobs; jobs that ended long ago are deleted.",
            ),
            Self::PlanNotFound => (
                "plan_not_found",
                404,
                "There is no such plan",
                "List the plans with GET /v1/plans.",
            ),
            Self::ChangesetNotFound => (
                "changeset_not_found",
                404,
                "There is no such changeset in the plan",
                "List the plan's changesets with GET /v1/plans/{id}/changesets.",
            ),
            Self::FileNotFound => (
                "file_not_found",
                404,
                "There is nothing at this path of the sandbox",
                "List the directory with GET /v1/plans/{id}/file and correct the path.",
            ),
            Self::WorkspaceNotFound => (
                "workspace_not_found",
                404,
                "There is no such workspace",
                "List the workspaces with GET /v1/workspaces.",
            ),
            Self::RescuedNotFound => (
                "rescued_not_found",
                404,
                "There is no such rescued content",
                "List the rescued content with GET /v1/rescued; this may already have been restored or \
                 dropped.",
            ),
            Self::SessionNotFound => (
                "session_not_found",
                404,
                "There is no such session",
                "List the sessions with GET /v1/sessions.",
            ),
            Self::TurnNotFound => (
                "turn_not_found",
                404,
                "There is no such turn in the session",
                "List the session's turns with GET /v1/sessions/{id}/turns, and the waiting ones with \
                 GET /v1/sessions/{id}/queue.",
            ),
            Self::AgentNotFound => (
                "agent_not_found",
                404,
                "No agent has this name",
                "List the agents with GET /v1/agents; you can add others in the configuration.",
            ),
            Self::PermissionNotFound => (
                "permission_not_found",
                404,
                "No such question is open",
                "Check the session: `active.asking` lists the open questions.",
            ),
            Self::StrategyNotFound => (
                "strategy_not_found",
                404,
                "There is no such strategy",
                "Use one of the strategies that GET /v1/context/strategies lists.",
            ),
            Self::FocusNotFound => (
                "focus_not_found",
                404,
                "A file in focus is not there",
                "Correct the path, or leave the file out.",
            ),
            Self::NotQuarantined => (
                "not_quarantined",
                404,
                "This is not quarantined",
                "Run `tidelock quarantine list` to see what's quarantined.",
            ),
            Self::MethodNotAllowed => (
                "method_not_allowed",
                405,
                "The path does not take this method",
                "Use one of the methods in the Allow header.",
            ),
            Self::RequestTimeout => (
                "request_timeout",
                408,
                "The request did not arrive in time",
                "Send the whole request without long pauses.",
            ),
            Self::StaleGeneration => (
                "stale_generation",
                409,
                "The state has moved since you looked",
                "Check `current`, decide whether you still want the change, and send it with the new \
                 generation.",
            ),
            Self::BackupExists => (
                "backup_exists",
                409,
                "There is a file already",
                "Choose another path, or move the file away. It was left untouched.",
            ),
            Self::ServerStopped => (
                "server_stopped",
                409,
                "The language server was stopped",
                "Start it with `tidelock lsp start` and try again.",
            ),
            Self::JobEnded => (
                "job_ended",
                409,
                "The job has ended",
                "Check `current` to see how it ended. The result is final.",
            ),
            Self::JobNotEnded => (
                "job_not_ended",
                409,
                "The job has not ended yet",
                "Wait until it ends with GET /v1/jobs/{id}?wait_ms=60000, or cancel it first.",
            ),
            Self::IdempotencyKeyReused => (
                "idempotency_key_reused",
                409,
                "The idempotency key belongs to another request",
                "Use a new key for a new request; `current` is what this key belongs to.",
            ),
            Self::NoActiveChangeset => (
                "no_active_changeset",
                409,
                "There is no active changeset",
                "Start one with POST /v1/plans/{id}/changesets, then record the change again.",
            ),
            Self::ChangesetClosed => (
                "changeset_closed",
                409,
                "The changeset is closed",
                "Start another one with POST /v1/plans/{id}/changesets.",
            ),
            Self::PlanWrongState => (
                "plan_wrong_state",
                409,
                "The plan is in another state",
                "Check `current`, which is the plan, to see what its state allows.",
            ),
            Self::PlanBusy => (
                "plan_busy",
                409,
                "The plan is in use",
                "Wait for what `detail` names, or cancel it, then try again.",
            ),
            Self::PlanHasWork => (
                "plan_has_work",
                409,
                "The plan has work that is not applied",
                "Apply the plan, or discard it with `even_with_work`.",
            ),
            Self::ChecksNotPassed => (
                "checks_not_passed",
                409,
                "Checks of the plan have not passed",
                "Run them with POST /v1/plans/{id}/check, wait until they finish, and apply again.",
            ),
            Self::PlanElsewhere => (
                "plan_elsewhere",
                409,
                "The plan belongs to another daemon",
                "Run it on the machine that `tidelock plan show` names. If that machine is gone for good, \
                 discard the plan with `tidelock plan discard PLAN --force`.",
            ),
            Self::WorkspaceInUse => (
                "workspace_in_use",
                409,
                "The workspace has plans that are not over",
                "Apply or discard its plans first.",
            ),
            Self::LandingStuck => (
                "landing_stuck",
                409,
                "An apply or undo is stuck half-way",
                "Fix what `detail` names and run `tidelock workspace repair DIR`. If you can't fix it, run \
                 `tidelock workspace repair DIR --abort`, which sets it aside and keeps everything it \
                 holds.",
            ),
            Self::RestoreOccupied => (
                "restore_occupied",
                409,
                "Something is at the path",
                "Restore to another path with `--to PATH`, or use `--swap`, which rescues what's there in \
                 exchange.",
            ),
            Self::PathNotPermitted => (
                "path_not_permitted",
                409,
                "Permission denied in the workspace",
                "Make the path and its directory writable for the user that runs the daemon, and try again.",
            ),
            Self::PathReadOnly => (
                "path_read_only",
                409,
                "The file system is read-only",
                "Remount it as writable (`mount -o remount,rw`) and try again.",
            ),
            Self::SpecialFileInTheWay => (
                "special_file_in_the_way",
                409,
                "A pipe, socket or device is in the way",
                "Move it away and try again. The plan has a file at this path.",
            ),
            Self::FileRefused => (
                "file_refused",
                409,
                "The file was not changed",
                "Read `detail`, check the file, and send a corrected write.",
            ),
            Self::FileStale => (
                "file_stale",
                409,
                "The file is not what you saw",
                "Read the file again, decide whether you still want the change, and send it with the new \
                 hash.",
            ),
            Self::GitCommitRefused => (
                "git_commit_refused",
                409,
                "No git commit can be made",
                "Fix what `detail` names, or apply without `--commit`. Nothing was changed.",
            ),
            Self::TurnActive => (
                "turn_active",
                409,
                "A turn runs already",
                "Follow the turn that `current` names, stop it, or send the prompt with `if_busy: queue`.",
            ),
            Self::TurnNotActive => (
                "turn_not_active",
                409,
                "The turn does not run",
                "Check `current`: the turn is over, it's waiting, or another one is running.",
            ),
            Self::TurnNotQueued => (
                "turn_not_queued",
                409,
                "The turn does not wait any more",
                "Check `current`: the turn has started or is over. You can cancel it if it's running.",
            ),
            Self::TurnNotStale => (
                "turn_not_stale",
                409,
                "The turn is not stale",
                "Its daemon is still alive. Stop the turn with POST /v1/sessions/{id}/cancel.",
            ),
            Self::SessionArchived => (
                "session_archived",
                409,
                "The session is archived",
                "Unarchive it with POST /v1/sessions/{id}/archive and `archived: false`.",
            ),
            Self::SessionInUse => (
                "session_in_use",
                409,
                "A turn of the session runs or waits",
                "Cancel the running turn, remove the waiting ones, and try again.",
            ),
            Self::SessionHasForks => (
                "session_has_forks",
                409,
                "Other sessions go on from this one",
                "Remove the forks first, or archive the session.",
            ),
            Self::SandboxGone => (
                "sandbox_gone",
                410,
                "The sandbox of the plan is gone",
                "You can still view what the plan changed. Open another plan to continue.",
            ),
            Self::WorkspaceGone => (
                "workspace_gone",
                410,
                "The workspace is not where it was",
                "Put the directory back, or forget the workspace and open a plan at the new location.",
            ),
            Self::BodyTooLarge => (
                "body_too_large",
                413,
                "The body is too large",
                "Send a smaller body.",
            ),
            Self::UnsupportedMediaType => (
                "unsupported_media_type",
                415,
                "The media type is not understood",
                "Send JSON with `Content-Type: application/json`.",
            ),
            Self::HostNotAllowed => (
                "host_not_allowed",
                421,
                "The request is meant for another host",
                "Use 127.0.0.1 or localhost with the daemon's port, or start the daemon with this name as \
                 an allowed host.",
            ),
            Self::InvalidRequest => (
                "invalid_request",
                422,
                "The body does not have the right shape",
                "Correct the named field; /openapi.json describes the shape.",
            ),
            Self::NotStorable => (
                "not_storable",
                422,
                "Something in the request cannot be stored",
                "Read `detail`. The usual cause is a path that isn't UTF-8: rename the file or directory.",
            ),
            Self::FileNotUsable => (
                "file_not_usable",
                422,
                "The file cannot be used",
                "Give the absolute path of a file that exists, is UTF-8 text, and isn't too large.",
            ),
            Self::PositionInvalid => (
                "position_invalid",
                422,
                "There is no such place in the file",
                "Lines and columns start at 1, and columns count characters. `detail` says how long the \
                 line is.",
            ),
            Self::JobDependencyNotFound => (
                "job_dependency_not_found",
                422,
                "A job to wait for is not there",
                "Use jobs in `after` that GET /v1/jobs lists, or leave it out.",
            ),
            Self::PlansNotTogether => (
                "plans_not_together",
                422,
                "The plans do not belong together",
                "Apply plans together only if they have the same workspace or parent. Apply the others \
                 separately.",
            ),
            Self::PlanTooDeep => (
                "plan_too_deep",
                422,
                "Plans would be nested too deeply",
                "Open the plan on the workspace, or on a plan further up.",
            ),
            Self::WorkspaceUnusable => (
                "workspace_unusable",
                422,
                "The directory cannot be a workspace",
                "Choose another directory, or remove what's in the way. `tidelock workspace list` shows \
                 the workspaces, and `tidelock workspace forget` removes one.",
            ),
            Self::StrategyNotPossible => (
                "strategy_not_possible",
                422,
                "Sandboxes cannot be made like that here",
                "Leave `strategy` out, or choose one that works according to GET /v1/plans/strategies.",
            ),
            Self::PathNotAllowed => (
                "path_not_allowed",
                422,
                "The path cannot be used",
                "Give the file's path relative to the root of the workspace.",
            ),
            Self::InvalidPrompt => (
                "invalid_prompt",
                422,
                "It cannot be used as a prompt",
                "Read `detail`: it says what's wrong with the prompt, the title or the script.",
            ),
            Self::ContextEmpty => (
                "context_empty",
                422,
                "There is nothing to look for",
                "Provide a query, or a file that the question is about.",
            ),
            Self::ContextTooLarge => (
                "context_too_large",
                422,
                "The question is too large",
                "Ask for less: `detail` says what's too large and what the limit is.",
            ),
            Self::ServerNotInstalled => (
                "server_not_installed",
                424,
                "The language server is not installed",
                "Install it as `detail` says and try again; you don't need to restart anything.",
            ),
            Self::AgentNotReady => (
                "agent_not_ready",
                424,
                "The agent cannot be asked yet",
                "Do what `detail` says, or use another agent that GET /v1/agents lists as ready.",
            ),
            Self::StreamLimitReached => (
                "stream_limit_reached",
                429,
                "Too many streams are open",
                "Close streams that you don't read, or send the request without `Accept: text/event-stream`.",
            ),
            Self::JobsFull => (
                "jobs_full",
                429,
                "Too many jobs wait",
                "Wait until some have ended, or cancel jobs that you don't need, then submit it again.",
            ),
            Self::QueueFull => (
                "queue_full",
                429,
                "Too many prompts wait",
                "Wait until some have run, or remove some from the queue.",
            ),
            Self::Internal => (
                "internal",
                500,
                "Something broke inside the daemon",
                "Look up the request id in the daemon's log and report what you find there.",
            ),
            Self::LogFailed => (
                "log_failed",
                500,
                "The log could not be read",
                "Run `tidelock doctor --deep`. The daemon's log says what happened.",
            ),
            Self::RecordUnreadable => (
                "record_unreadable",
                500,
                "What is stored of it cannot be read",
                "Run `tidelock quarantine list` to see it. Everything else keeps working.",
            ),
            Self::BackupFailed => (
                "backup_failed",
                500,
                "The backup could not be written",
                "Make sure that the daemon can write there and that there's enough space, then try again.",
            ),
            Self::SandboxFailed => (
                "sandbox_failed",
                500,
                "The sandbox could not be used",
                "Look up the request id in the daemon's log, which says which file it was and why.",
            ),
            Self::ContentDamaged => (
                "content_damaged",
                500,
                "Stored content is missing or damaged",
                "Run `tidelock doctor --deep`. Restore a backup of the log, or discard the plan.",
            ),
            Self::BackupNotSupported => (
                "backup_not_supported",
                501,
                "This log is not backed up from here",
                "Use the database server's own tools, or `tidelock export`.",
            ),
            Self::QueryUnsupported => (
                "query_unsupported",
                501,
                "The language server cannot do this",
                "Try a different query, or use another server for the language.",
            ),
            Self::ServerFailed => (
                "server_failed",
                502,
                "The language server has failed",
                "Read `detail` and check `tidelock lsp health`. Fix the problem, then run \
                 `tidelock lsp restart`.",
            ),
            Self::ServerError => (
                "server_error",
                502,
                "The language server answered with an error",
                "Read `detail`; the server may need different input.",
            ),
            Self::ServerProtocol => (
                "server_protocol",
                502,
                "The language server broke the protocol",
                "Try again: a new process has replaced the old one.",
            ),
            Self::NotReady => (
                "not_ready",
                503,
                "The daemon does not take work now",
                "Try again in a moment. If it's shutting down, start it again.",
            ),
            Self::ShuttingDown => (
                "shutting_down",
                503,
                "The daemon is shutting down",
                "Wait until it has exited, start it again with `tidelock up`, and resend the request.",
            ),
            Self::BreakerLimitReached => (
                "breaker_limit_reached",
                503,
                "The table of breakers is full",
                "Reset breakers that you don't need, or use fewer names.",
            ),
            Self::LogRefusing => (
                "log_refusing",
                503,
                "The log refuses writes",
                "Fix what `detail` names (disk space, permissions, the database) and send the request again.",
            ),
            Self::ServerRestarting => (
                "server_restarting",
                503,
                "The language server is starting",
                "Try again in a moment, or leave out `no_wait`.",
            ),
            Self::ServerNotReady => (
                "server_not_ready",
                503,
                "The language server is still reading the workspace",
                "Use `wait_ready`, or try again in a moment.",
            ),
            Self::ServerTimeout => (
                "server_timeout",
                504,
                "The language server did not answer in time",
                "Try again with a larger `timeout_ms`, or check `tidelock lsp health`.",
            ),
            Self::SandboxesFull => (
                "sandboxes_full",
                507,
                "There is no room for another sandbox",
                "List the open plans with `tidelock plan list`, then apply or discard some. Or free some \
                 disk space.",
            ),
            Self::DiskFull => (
                "disk_full",
                507,
                "No space left on the disk",
                "Free some space (`tidelock plan gc` removes sandboxes that are no longer needed) and try \
                 again.",
            ),
        };
        Description {
            name,
            status,
            title,
            advice,
        }
    }
}
