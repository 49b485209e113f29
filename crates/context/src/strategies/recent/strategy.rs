//! Finds what people and agents are working on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Deadline, Scope};

use super::git;
use super::head::{self, Head};
use super::history::History;
use super::log::Whole;
use super::memory::Memory;
use super::score::{Asked, Scored, score};
use crate::answer::Depth;
use crate::executor::on_thread;
use crate::ports::{ForCommands, OpenPlan, OpenPlans};
use crate::strategy::{Ask, Hit, Strategy, StrategyError, StrategyName};

/// The fraction of the time that is reserved for the steps after git.
const KEPT_PART: u32 = 4;
/// The most files of plans that are examined. A plan that changes more is a checkout of something else.
const PLAN_FILES: usize = 2000;

#[derive(Debug)]
pub(in super::super) struct Recent {
    commands: ForCommands,
    plans: Arc<dyn OpenPlans>,
    memory: Memory,
}

impl Recent {
    pub(in super::super) fn new(commands: ForCommands, plans: Arc<dyn OpenPlans>) -> Self {
        Self {
            commands,
            plans,
            memory: Memory::default(),
        }
    }

    /// The history of a tree, or why there is no history.
    async fn history(
        &self,
        root: &Path,
        scope: &Scope,
        deadline: &Deadline,
    ) -> Result<Arc<History>, StrategyError> {
        let looked_at = root.to_owned();
        let commit = match on_thread(scope.clone(), move |_| Ok(head::head(&looked_at))).await? {
            Head::None => return Err(not_applicable("the tree is in no repository")),
            Head::Empty => return Err(not_applicable("the repository has no commit")),
            Head::At(commit) => Some(commit),
            Head::Unknown => None,
        };
        if let Some(known) = commit.as_ref().and_then(|commit| self.memory.find(root, commit)) {
            return Ok(known);
        }
        let kept = deadline.remaining().unwrap_or(Duration::ZERO) / KEPT_PART;
        let asked = commit.as_deref().unwrap_or("HEAD");
        let read = git::history(&self.commands, root, asked, scope, &deadline.sooner(kept)).await?;
        let history = Arc::new(read.history);
        // A history that was cut short for lack of time may be complete the next time, when the disk cache is
        // warm.
        if let (Some(commit), Whole::Yes | Whole::Enough) = (&commit, read.whole) {
            self.memory.keep(root, commit, &history);
        }
        Ok(history)
    }

    /// The open plans. If they can't be determined, the rest still works.
    async fn open_plans(&self, root: &Path, scope: &Scope) -> Result<Vec<OpenPlan>, StrategyError> {
        let open = tokio::select! {
            biased;
            _ = scope.wait() => return Err(StrategyError::Cancelled),
            open = self.plans.open(root) => open,
        };
        let mut plans = open.unwrap_or_else(|error| {
            tracing::debug!(%error, "the open plans are not known");
            Vec::new()
        });
        let mut left = PLAN_FILES;
        for plan in &mut plans {
            plan.changed.truncate(left);
            left -= plan.changed.len();
        }
        plans.retain(|plan| !plan.changed.is_empty());
        Ok(plans)
    }
}

#[async_trait]
impl Strategy for Recent {
    fn name(&self) -> StrategyName {
        StrategyName::new("recent")
    }

    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Result<Vec<Hit>, StrategyError> {
        let root = &ask.searched.root;
        let (history, plans) = tokio::join!(
            self.history(root, &scope, &deadline),
            self.open_plans(root, &scope)
        );
        let plans = plans?;
        let history = match history {
            // Plans alone are enough evidence.
            Err(StrategyError::NotApplicable(_)) if !plans.is_empty() => Arc::default(),
            history => history?,
        };
        on_thread(scope, move |scope| {
            let asked = Asked::new(&ask.query, &ask.focus);
            there(score(&history, &plans, &asked), &ask, scope)
        })
        .await
    }
}

fn there(scored: Vec<Scored>, ask: &Ask, scope: &Scope) -> Result<Vec<Hit>, StrategyError> {
    let mut hits = Vec::new();
    for scored in scored {
        if scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        if hits.len() == ask.most_hits {
            break;
        }
        if ask.searched.view.read(&scored.path).is_ok() {
            hits.push(Hit {
                path: scored.path,
                lines: None,
                score: scored.score,
                why: scored.why,
                depth: Depth::Body,
            });
        }
    }
    Ok(hits)
}

fn not_applicable(why: &str) -> StrategyError {
    StrategyError::NotApplicable(why.to_owned())
}
