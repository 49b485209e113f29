//! Ten plans at once, against ten times one.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use tokio::task::JoinSet;

use super::project::{Project, append};
use super::service::{Service, must_be_done};
use super::{scratch, settle};
use crate::jobs::runtime;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const FILES: usize = 5_000;
const PLANS: usize = 10;
/// How many files each plan changes; no two plans share one.
const CHANGED: usize = 100;
const ROUNDS: Rounds = Rounds {
    counted: 5,
    warm_up: 1,
};

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Plans: ten at once",
        "A plan is opened on a repository of 5,000 files, a command in its sandbox appends a line to 100 files that no other \
         plan touches, and the plan is applied. Ten such plans at once, from the first order to the last answer, against ten \
         times the time of one that has the machine for itself, and against ten one after the other, each of which finds \
         what the one before has changed.",
    );
    let runtime = runtime()?;
    let scratch = scratch()?;
    let project = Arc::new(Project::make(scratch.join("project"), FILES)?);
    let data = scratch.join("data");
    std::fs::create_dir(&data)?;
    let service = Arc::new(runtime.block_on(Service::open(tidelock, &data))?);
    // So that every plan finds a current image of the workspace.
    let prepare = || {
        let prepared = runtime.block_on(async {
            service.collect().await?;
            let plan = service.plan(&project.root).await?;
            service.discard(plan).await
        });
        settle();
        prepared
    };
    let at_once = |_: &Path| {
        prepare()?;
        let began = Instant::now();
        runtime.block_on(async {
            let mut plans = JoinSet::new();
            for number in 0..PLANS {
                let (service, project) = (Arc::clone(&service), Arc::clone(&project));
                plans.spawn(async move { one(&service, &project, number).await });
            }
            plans.join_all().await.into_iter().collect::<Result<()>>()
        })?;
        Ok([nanoseconds(began.elapsed())])
    };
    let alone = |_: &Path| {
        prepare()?;
        let began = Instant::now();
        runtime.block_on(one(&service, &project, 0))?;
        Ok([nanoseconds(began.elapsed()) * PLANS as f64])
    };
    let one_by_one = |_: &Path| {
        prepare()?;
        let began = Instant::now();
        for number in 0..PLANS {
            runtime.block_on(one(&service, &project, number))?;
        }
        Ok([nanoseconds(began.elapsed())])
    };
    let [[at_once], [alone], [one_by_one]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("ten at once", at_once),
            LongContender::new("ten times one", alone),
            LongContender::new("one after the other", one_by_one),
        ],
    )?;
    table.compare("ten plans at once", &at_once, &alone, Bar::NoSlower);
    table.compare("ten plans at once", &at_once, &one_by_one, Bar::None);
    if let Some(service) = Arc::into_inner(service) {
        runtime.block_on(service.close());
    }
    Ok(table)
}

async fn one(service: &Service, project: &Project, number: usize) -> Result<()> {
    let plan = service.plan(&project.root).await?;
    let files = number * CHANGED..(number + 1) * CHANGED;
    service.shell(plan, &append(files)).await?;
    must_be_done(&service.apply(plan).await?, CHANGED)
}
