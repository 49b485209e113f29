//! Which of ten open plans conflict with each other.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use plans::{Change, Contents, OverlapDetector, Plans};
use protocol::PlanId;
use tokio::runtime::Runtime;

use super::project::{Project, edited, path};
use super::service::Service;
use super::{git, scratch, settle};
use crate::jobs::runtime;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const FILES: usize = 1_000;
const PLANS: usize = 10;
/// All plans change the same files, which is the worst case.
const CHANGED: usize = 100;
/// Two neighbors change the same line, and so conflict; others are some lines apart.
const PAIRS_IN_CONFLICT: usize = PLANS / 2;
const ROUNDS: Rounds = Rounds {
    counted: 11,
    warm_up: 1,
};
const LIMIT_MS: f64 = 50.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Plans: the merge oracle",
        "Ten open plans change the same 100 files, each in one line; five pairs of plans change the same line of all of them. \
         All are compared with all: 45 pairs, 4,500 pairs of files. *Cold*: nothing is known yet, and all contents are read from the log. *After one \
         change*: one plan has changed one of its files again and is compared with the other nine. The peer is \
         `git merge-tree --write-tree` of ten branches with the same changes, once for each pair.",
    );
    let runtime = runtime()?;
    let scratch = scratch()?;
    let project = Project::make(scratch.join("project"), FILES)?;
    for plan in 0..PLANS {
        let files = (0..CHANGED).map(|file| (file, edited(file, line_of(plan), &text_of(plan))));
        project.branch(&format!("plan-{plan}"), files)?;
    }
    let data = scratch.join("data");
    std::fs::create_dir(&data)?;
    let service = runtime.block_on(Service::open(tidelock, &data))?;
    let plans = runtime.block_on(open_plans(&service, &project))?;
    let before = changes(&runtime, &service.plans, &plans)?;
    let again = format!("echo again >> {}", path(0));
    runtime.block_on(service.shell(plans[0], &again))?;
    let after = changes(&runtime, &service.plans, &plans[..1])?;
    let contents = service.plans.contents();
    settle();

    let ours = |_: &Path| {
        let mut overlaps = OverlapDetector::default();
        let began = Instant::now();
        let conflicts = all_with_all(&mut overlaps, &before, &*contents)?;
        let cold = nanoseconds(began.elapsed());
        ensure!(
            conflicts == PAIRS_IN_CONFLICT,
            "{conflicts} pairs are in conflict"
        );
        let began = Instant::now();
        for other in &before[1..] {
            overlaps.compare(&after[0], other, &*contents)?;
        }
        Ok([cold, nanoseconds(began.elapsed())])
    };
    let theirs = |_: &Path| {
        let began = Instant::now();
        let pairs = (0..PLANS).flat_map(|first| (first + 1..PLANS).map(move |second| (first, second)));
        let [mut all, mut of_first] = [0.0; 2];
        for (first, second) in pairs {
            let branches = [first, second].map(|plan| format!("plan-{plan}"));
            let arguments = ["merge-tree", "--write-tree", &branches[0], &branches[1]];
            // git exits with an error if they conflict.
            git::command(&project.root, &arguments).status()?;
            all = nanoseconds(began.elapsed());
            if first == 0 {
                of_first = all;
            }
        }
        Ok([all, of_first])
    };
    let [[cold, one_change], [all, of_first]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("tidelock", ours),
            LongContender::new("git merge-tree", theirs),
        ],
    )?;
    table.under("10 plans with 100 files, cold", &cold, LIMIT_MS);
    table.under("after one change", &one_change, LIMIT_MS);
    table.compare("10 plans with 100 files, cold", &cold, &all, Bar::None);
    table.compare("after one change", &one_change, &of_first, Bar::None);
    runtime.block_on(service.close());
    Ok(table)
}

/// The line that a plan changes, from 1.
fn line_of(plan: usize) -> usize {
    3 + 8 * (plan / 2)
}

fn text_of(plan: usize) -> String {
    format!("this is what plan {plan} says")
}

async fn open_plans(service: &Service, project: &Project) -> Result<Vec<PlanId>> {
    let paths: Vec<String> = (0..CHANGED).map(path).collect();
    let mut plans = Vec::new();
    for number in 0..PLANS {
        let plan = service.plan(&project.root).await?;
        let (line, text) = (line_of(number), text_of(number));
        let edit = format!("sed -i '{line}s/.*/{text}/' {}", paths.join(" "));
        service.shell(plan, &edit).await?;
        plans.push(plan);
    }
    Ok(plans)
}

fn changes(runtime: &Runtime, service: &Plans, plans: &[PlanId]) -> Result<Vec<Vec<Change>>> {
    let of_plan = |plan: &PlanId| {
        let changes = runtime.block_on(service.changes(*plan, None))?;
        ensure!(changes.len() == CHANGED, "a plan has {} changes", changes.len());
        Ok(changes)
    };
    plans.iter().map(of_plan).collect()
}

fn all_with_all(
    overlaps: &mut OverlapDetector,
    plans: &[Vec<Change>],
    contents: &dyn Contents,
) -> Result<usize> {
    let mut conflicts = 0;
    for (number, first) in plans.iter().enumerate() {
        for second in &plans[number + 1..] {
            let found = overlaps.compare(first, second, contents)?;
            ensure!(found.len() == CHANGED, "{} files overlap", found.len());
            conflicts += usize::from(found.iter().all(|path| path.conflicts));
        }
    }
    Ok(conflicts)
}
