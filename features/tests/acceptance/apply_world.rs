//! The world of `apply.feature`: a workspace with plans, and whoever applies them.

use std::{collections::BTreeMap, fmt, sync::Mutex};

use cucumber::World;
use futures_util::future::join_all;
use plans::{LandingOutcome, PlanError};
use protocol::OutcomeKind;
use protocol::PlanId;

use crate::{
    apply_faulty::{self, Hook, Verdict, Work},
    apply_kill::After,
    plans_kit::{Files, Running, Site},
};

/// Who applies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Subject {
    #[default]
    Ours,
    /// Files are written in place, one after the other, until one is not what it was. An undo writes the old ones back.
    OneByOne,
    /// It is said to be applied.
    StatusOnly,
    /// Branches are merged in the checkout.
    GitMerge,
}

#[derive(Default, World)]
pub(crate) struct ApplyWorld {
    pub(crate) subject: Subject,
    pub(crate) site: Option<Site>,
    pub(crate) running: Option<Running>,
    pub(crate) plans: Vec<PlanId>,
    /// What the workspace was at first, and before the last attempt.
    pub(crate) first: Files,
    pub(crate) before: Files,
    /// What the sandbox of the first plan was when its work was done.
    pub(crate) sandbox: Files,
    pub(crate) verdicts: Vec<Verdict>,
    /// What those of the reports say of a plan, and how often they said that they have applied it.
    said: Mutex<BTreeMap<PlanId, (&'static str, usize)>>,
    pub(crate) killed: Vec<After>,
}

impl fmt::Debug for ApplyWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ApplyWorld")
            .field("subject", &self.subject)
            .field("verdicts", &self.verdicts)
            .finish_non_exhaustive()
    }
}

impl ApplyWorld {
    pub(crate) fn site(&self) -> &Site {
        self.site.as_ref().expect("a step before has made a workspace")
    }

    pub(crate) fn running(&self) -> &Running {
        self.running
            .as_ref()
            .expect("a step before has opened the service")
    }

    pub(crate) async fn new_plan(&mut self, script: &str) {
        let plan = self.running().plan(&self.site().workspace, script).await;
        let exit = self.running().run(plan, "ann", script).await;
        assert_eq!(exit, process::Exit::Code(0), "{script}");
        if self.plans.is_empty() {
            self.sandbox = self.running().sandbox(plan).await;
        }
        if self.subject == Subject::GitMerge {
            let work = Work::of(self.running(), plan).await;
            apply_faulty::make_branch(self.site(), plan, &work);
        }
        self.plans.push(plan);
    }

    /// Applies plans together.
    pub(crate) async fn apply(&self, plans: &[PlanId]) -> Verdict {
        match self.subject {
            Subject::Ours => ours(self.running().plans.apply(Running::apply_order(plans)).await),
            Subject::StatusOnly => {
                self.say(plans, "applied");
                Verdict::Done
            }
            Subject::OneByOne => {
                for plan in plans {
                    let work = Work::of(self.running(), *plan).await;
                    match work.write(&self.site().workspace, work.len()) {
                        Verdict::Done => self.say(&[*plan], "applied"),
                        other => return other,
                    }
                }
                Verdict::Done
            }
            Subject::GitMerge => {
                for plan in plans {
                    match apply_faulty::merge(self.site(), *plan) {
                        Verdict::Done => self.say(&[*plan], "applied"),
                        other => return other,
                    }
                }
                Verdict::Done
            }
        }
    }

    /// Applies plans at the same time. Those of the reports are held where it hurts.
    pub(crate) async fn apply_at_once(&self, plans: &[PlanId]) -> Vec<Verdict> {
        match self.subject {
            Subject::Ours => {
                join_all(plans.iter().map(|plan| async move { self.apply(&[*plan]).await })).await
            }
            Subject::StatusOnly | Subject::OneByOne => {
                // All look at the status and at the files, and go on when all have looked.
                let mut looked = Vec::new();
                for plan in plans {
                    let work = Work::of(self.running(), *plan).await;
                    let is_free = self.state(*plan) != "applied" && work.look(&self.site().workspace);
                    looked.push((*plan, work, is_free));
                }
                let write = |(plan, work, is_free): (PlanId, Work, bool)| {
                    if !is_free {
                        return Verdict::Refused("it is applied".to_owned());
                    }
                    if self.subject == Subject::OneByOne {
                        work.write_later(&self.site().workspace);
                    }
                    self.say(&[plan], "applied");
                    Verdict::Done
                };
                looked.into_iter().map(write).collect()
            }
            Subject::GitMerge => {
                let (site, hook) = (self.site(), Hook::set(self.site()));
                let first = apply_faulty::begin_merge(site, plans[0]);
                hook.wait_until_held();
                let others: Vec<Verdict> = plans[1..]
                    .iter()
                    .map(|plan| apply_faulty::merge(site, *plan))
                    .collect();
                hook.let_go();
                let first = apply_faulty::ended(site, first);
                std::iter::once(first).chain(others).collect()
            }
        }
    }

    pub(crate) async fn undo(&self, plan: PlanId) -> Verdict {
        match self.subject {
            Subject::Ours => ours(self.running().plans.undo(Running::undo_order(plan)).await),
            Subject::OneByOne => {
                let work = Work::of(self.running(), plan).await;
                work.write_back(&self.site().workspace, work.len());
                self.say(&[plan], "undone");
                Verdict::Done
            }
            Subject::StatusOnly | Subject::GitMerge => panic!("they know of no undo"),
        }
    }

    fn say(&self, plans: &[PlanId], state: &'static str) {
        let mut said = self.said.lock().unwrap();
        for plan in plans {
            let (known, count) = said.entry(*plan).or_default();
            *known = state;
            *count += usize::from(state == "applied");
        }
    }

    /// What those of the reports say.
    fn state(&self, plan: PlanId) -> &'static str {
        self.said
            .lock()
            .unwrap()
            .get(&plan)
            .map_or("open", |(state, _)| state)
    }

    pub(crate) async fn state_of(&self, plan: PlanId) -> &'static str {
        match self.subject {
            Subject::Ours => self
                .running()
                .plans
                .get(plan)
                .await
                .unwrap()
                .record
                .state
                .as_str(),
            _ => self.state(plan),
        }
    }

    pub(crate) async fn count_applied(&self, plan: PlanId) -> usize {
        if self.subject != Subject::Ours {
            return self
                .said
                .lock()
                .unwrap()
                .get(&plan)
                .map_or(0, |(_, count)| *count);
        }
        let moments = self
            .running()
            .plans
            .timeline(plan, Default::default(), 1_000)
            .await
            .unwrap();
        moments.iter().filter(|moment| moment.event == "applied").count()
    }
}

fn ours(outcome: Result<LandingOutcome, PlanError>) -> Verdict {
    match outcome {
        Ok(outcome) if outcome.kind == OutcomeKind::Done => Verdict::Done,
        Ok(outcome) => Verdict::Clashes(
            outcome
                .conflicts
                .iter()
                .map(|conflict| conflict.path.to_string())
                .collect(),
        ),
        Err(error) => Verdict::Refused(error.to_string()),
    }
}
