//! The cost of owning a process: a keeper, and a row on disk before the command runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};
use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use process::{
    Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, StopPlan,
    Tasks,
};
use protocol::{BootId, HomeId};
use tokio::runtime::Runtime;

use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const ROUNDS: Rounds = Rounds {
    counted: 21,
    warm_up: 2,
};
/// How many processes are started in a turn, one after another.
const PROCESSES: usize = 10;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Owning a process",
        "`true`, from its start to the news of its end. An owned process has a keeper, which is its parent and ends with \
         it, and its row in the ledger is on disk before it runs. That costs one more process and some commits; it is \
         shown, and not judged.",
    );
    // A keeper starts in another directory than ours.
    let tidelock = tidelock.canonicalize()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let owned = LongContender::new("tidelock", |directory: &Path| {
        owned(&runtime, &tidelock, directory).map(|took| [took])
    });
    let plain = LongContender::new("std::process", |_: &Path| plain().map(|took| [took]));
    let [[owned], [plain]] = in_long_turns(ROUNDS, [owned, plain])?;
    table.compare("start and end of `true`", &owned, &plain, Bar::None);
    Ok(table)
}

fn plain() -> Result<f64> {
    let began = Instant::now();
    for _ in 0..PROCESSES {
        let ended = Command::new("true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        ensure!(ended.success(), "`true` ended with {ended}");
    }
    Ok(nanoseconds(began.elapsed()) / PROCESSES as f64)
}

fn owned(runtime: &Runtime, tidelock: &Path, directory: &Path) -> Result<f64> {
    runtime.block_on(async {
        let tasks = Tasks::default();
        let options = SqliteOptions {
            path: directory.join("log.sqlite3"),
        };
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&options, SystemClock::shared())?,
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(tidelock.to_owned()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let spec = Spec {
            program: "true".into(),
            arguments: Vec::new(),
            directory: directory.to_owned(),
            environment: BTreeMap::from([("PATH".into(), path)]),
            owner: "bench".to_owned(),
            reason: "to be measured".to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: None,
        };
        let began = Instant::now();
        for _ in 0..PROCESSES {
            let ended = processes.spawn(spec.clone()).await?.ended().await;
            ensure!(ended.exit == Exit::Code(0), "`true` ended with {}", ended.exit);
        }
        let took = nanoseconds(began.elapsed()) / PROCESSES as f64;
        processes.stop_all(StopPlan::NOW).await;
        tasks.finished().await;
        Ok(took)
    })
}
