//! Which open plans touch the same files, reported while their actors still work.
//!
//! Each worker publishes its plan's net changes whenever they change; the plan is then compared with the others of the
//! same workspace or parent. The results are kept in memory: they are derived from the plans, and are computed again
//! after a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::Clock;
use process::Tasks;
use protocol::{PlanCounts, PlanId, PlanOverlap, PlanOverlapPath, PlanState, WorkspaceId};

use crate::PlanEvent;
use crate::inner::{PlansInner, blocking};
use crate::workers::{IDLE, Workers};
use crate::{Change, Net, OverlapDetector, OverlapPath, Plan};

/// Whether to report that two plans overlap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tell {
    Both,
    /// Don't: an earlier daemon has already reported it.
    Nobody,
}

#[derive(Debug)]
pub(crate) struct OverlapIndex {
    /// Guards what is known. Nothing is compared while it is held.
    book: Mutex<Book>,
    workers: Workers<WorkspaceId, OverlapWorker>,
}

#[derive(Debug, Default)]
struct Book {
    plans: HashMap<PlanId, Published>,
    /// The overlaps of two plans: the one with the lower id comes first.
    pairs: BTreeMap<(PlanId, PlanId), Vec<OverlapPath>>,
}

#[derive(Clone, Debug)]
struct Published {
    /// Plans with the same ground can conflict: those of the same workspace, or of the same parent.
    ground: (WorkspaceId, Option<PlanId>),
    title: String,
    state: PlanState,
    changes: Arc<Vec<Change>>,
}

/// Compares plans of one workspace, one after the other.
#[derive(Debug, Default)]
struct OverlapWorker {
    compared: Option<OverlapDetector>,
}

impl OverlapIndex {
    pub(crate) fn new(tasks: &Tasks, clock: &Arc<dyn Clock>) -> Self {
        Self {
            book: Mutex::default(),
            workers: Workers::new("overlaps of plans", tasks.clone(), Arc::clone(clock), IDLE),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> PlanCounts {
        let book = self.book();
        let count = |state| book.plans.values().filter(|plan| plan.state == state).count() as u64;
        PlanCounts {
            open: count(PlanState::Open),
            sealed: count(PlanState::Sealed),
        }
    }

    pub(crate) fn of(&self, id: PlanId) -> Vec<PlanOverlap> {
        let book = self.book();
        let pairs = book.pairs.iter().filter_map(|((first, second), paths)| {
            let is_first = *first == id;
            let other = match (is_first, *second == id) {
                (true, _) => *second,
                (_, true) => *first,
                _ => return None,
            };
            let paths = paths.iter().map(|path| PlanOverlapPath {
                path: path.path.to_string(),
                conflicts: path.conflicts,
                lines: match is_first {
                    true => path.second_lines.clone(),
                    false => path.first_lines.clone(),
                },
            });
            let title = book
                .plans
                .get(&other)
                .map(|plan| plan.title.clone())
                .unwrap_or_default();
            Some(PlanOverlap {
                plan: other.to_string(),
                title,
                paths: paths.collect(),
            })
        });
        pairs.collect()
    }

    /// Takes the net changes of a plan, and has them compared with the others.
    pub(crate) fn publish(&self, inner: &Arc<PlansInner>, plan: &Plan, net: &Net, tell: Tell) {
        let (id, record) = (plan.id, &plan.record);
        let workspace = record.facts.workspace;
        {
            let mut book = self.book();
            if matches!(record.state, PlanState::Open | PlanState::Sealed) {
                let published = Published {
                    ground: (workspace, record.facts.parent),
                    title: record.facts.title.clone(),
                    state: record.state,
                    changes: Arc::new(net.changes()),
                };
                book.plans.insert(id, published);
            } else {
                book.plans.remove(&id);
                book.pairs
                    .retain(|(first, second), _| *first != id && *second != id);
                return;
            }
        }
        let inner = Arc::clone(inner);
        self.workers
            .enqueue(&workspace, OverlapWorker::default, move |worker| {
                Box::pin(async move { worker.compare(&inner, id, tell).await })
            });
    }

    fn others(&self, id: PlanId) -> Option<(Published, Vec<(PlanId, Published)>)> {
        let book = self.book();
        let this = book.plans.get(&id)?.clone();
        let others = book
            .plans
            .iter()
            .filter(|(other, plan)| **other != id && plan.ground == this.ground);
        let others = others.map(|(other, plan)| (*other, plan.clone())).collect();
        Some((this, others))
    }

    /// Records the result of a comparison. Returns whether it is new that they overlap, or that they conflict.
    fn note(&self, first: PlanId, second: PlanId, paths: Vec<OverlapPath>) -> bool {
        let mut book = self.book();
        if !book.plans.contains_key(&first) || !book.plans.contains_key(&second) {
            return false;
        }
        let conflicting = |paths: &[OverlapPath]| -> Vec<_> {
            paths
                .iter()
                .map(|path| (path.path.clone(), path.conflicts))
                .collect()
        };
        if paths.is_empty() {
            book.pairs.remove(&(first, second));
            return false;
        }
        let told = conflicting(&paths);
        let before = book.pairs.insert((first, second), paths);
        before.is_none_or(|before| conflicting(&before) != told)
    }

    pub(crate) fn close(&self) {
        self.workers.close();
    }
}

impl OverlapWorker {
    async fn compare(&mut self, inner: &Arc<PlansInner>, id: PlanId, whom: Tell) {
        let Some((this, others)) = inner.overlaps.others(id) else {
            return;
        };
        for (other, plan) in others {
            let is_first = id < other;
            let ((first, mine), (second, theirs)) = if is_first {
                ((id, Arc::clone(&this.changes)), (other, plan.changes))
            } else {
                ((other, plan.changes), (id, Arc::clone(&this.changes)))
            };
            let mut compared = self.compared.take().unwrap_or_default();
            let contents = inner.contents.clone();
            let found = blocking(move || {
                let paths = compared.compare(&mine, &theirs, &contents);
                (compared, paths)
            });
            let Ok((compared, paths)) = found.await else {
                return;
            };
            self.compared = Some(compared);
            match paths {
                Ok(paths) => {
                    let conflicts = paths.iter().filter(|path| path.conflicts).count();
                    let count = paths.len();
                    if inner.overlaps.note(first, second, paths) && whom == Tell::Both {
                        tell(inner, first, second, count, conflicts);
                    }
                }
                Err(error) => tracing::warn!(%error, %first, %second, "two plans could not be compared"),
            }
        }
    }
}

/// Reports in the streams of both plans that they overlap.
fn tell(inner: &Arc<PlansInner>, first: PlanId, second: PlanId, count: usize, conflicts: usize) {
    for (plan, other) in [(first, second), (second, first)] {
        inner.enqueue_at_plan(plan, move |worker| {
            Box::pin(async move {
                let s = if count == 1 { "" } else { "s" };
                let text = format!("{count} file{s} in common with {other}, {conflicts} in conflict");
                let events = worker.change(None, |_, record, _| {
                    let nobody = Arc::from("");
                    Ok((
                        record.clone(),
                        vec![PlanEvent::new("overlapped", &nobody, text.clone())],
                    ))
                });
                if let Err(error) = events.await {
                    tracing::debug!(%error, %plan, "an overlap was not written down");
                }
            })
        });
    }
}
