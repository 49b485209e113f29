//! Job handlers that know plans. The command handler runs the commands themselves.

use std::sync::Arc;

use async_trait::async_trait;
use jobs::{AttemptOutcome, AttemptVerdict, Handler, Work};
use plans::Actor;

use super::checks::{failed, passed, report};
use super::children::watch_failure;
use super::jobs_slot::Watch;
use crate::jobs::{CommandHandler, CommandLine, CommandPayload, Tool};

/// Runs commands, in plans or not.
#[derive(Debug)]
pub(crate) struct PlannedHandler {
    commands: Arc<CommandHandler>,
    watch: Watch,
}

impl PlannedHandler {
    pub(crate) fn new(commands: Arc<CommandHandler>, watch: Watch) -> Self {
        Self { commands, watch }
    }
}

#[async_trait]
impl Handler for PlannedHandler {
    async fn run(&self, work: Work) -> AttemptOutcome {
        let (job, payload) = (work.job, Arc::clone(&work.payload));
        let outcome = self.commands.run(work, Tool::Shell).await;
        if outcome.verdict != AttemptVerdict::Succeeded {
            let plan = CommandPayload::decode(&payload)
                .ok()
                .and_then(|payload| payload.plan_id());
            if let Some(plan) = plan {
                watch_failure(&self.watch, plan, job);
            }
        }
        outcome
    }
}

/// Runs checks of plans, and reports their results before the job ends, so that callers that wait for the job see the
/// result.
#[derive(Debug)]
pub(crate) struct CheckHandler {
    commands: Arc<CommandHandler>,
    watch: Watch,
}

impl CheckHandler {
    pub(crate) fn new(commands: Arc<CommandHandler>, watch: Watch) -> Self {
        Self { commands, watch }
    }
}

#[async_trait]
impl Handler for CheckHandler {
    async fn run(&self, work: Work) -> AttemptOutcome {
        let job = work.job;
        let by = Actor::from(work.submitted_by.as_str());
        let payload = CommandPayload::decode(&work.payload).ok();
        let check = payload.and_then(|payload| match (payload.plan_id(), payload.line) {
            (Some(plan), CommandLine::Shell(command)) => Some((plan, command)),
            _ => None,
        });
        let Some((plan, command)) = check else {
            return AttemptOutcome {
                verdict: AttemptVerdict::FailedPermanently,
                text: "this is not a check of a plan".to_owned(),
                result: serde_json::Value::Null,
            };
        };
        let plans = &self.watch.plans;
        // The submitter records this too, and may be slower. The check is valid for the current state of the
        // plan.
        if let Err(error) = plans
            .check_started(plan, Arc::clone(&by), command.clone(), job.to_string())
            .await
        {
            return AttemptOutcome {
                verdict: AttemptVerdict::Failed,
                text: format!("the check was not run: {error}"),
                result: serde_json::Value::Null,
            };
        }
        let outcome = self.commands.run(work, Tool::Check).await;
        let end = match outcome.verdict {
            AttemptVerdict::Succeeded => passed(&outcome.result),
            AttemptVerdict::Failed | AttemptVerdict::FailedPermanently | AttemptVerdict::Stopped => {
                failed(&outcome.text)
            }
        };
        report(plans, plan, by, command, job, end).await;
        outcome
    }
}
