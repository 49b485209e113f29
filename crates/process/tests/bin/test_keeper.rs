//! The keeper of this crate's tests. Started by another name it is a small daemon: `spawn-and-hang DIRECTORY HOME
//! SCRIPT` runs a script under a keeper and then waits to be killed.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use eventlog::{Log, SqliteOptions};
use kernel::{BootId, HomeId, SystemClock};
use process::{Confinement, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, Tasks};

fn main() -> Result<(), Box<dyn Error>> {
    process::keep_if_asked();
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (Some("spawn-and-hang"), Some(directory), Some(home)) => {
            let script = arguments.next().ok_or("a script is missing")?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(spawn_and_hang(directory.into(), home.parse()?, script))
        }
        _ => Err("this is a keeper of tests".into()),
    }
}

async fn spawn_and_hang(directory: PathBuf, home_id: HomeId, script: String) -> Result<(), Box<dyn Error>> {
    let clock = SystemClock::shared();
    let options = SqliteOptions {
        path: directory.join("log.sqlite"),
    };
    let processes = Processes::open(ProcessesOptions {
        log: Log::open_sqlite(&options, clock.clone())?,
        home_id,
        boot_id: BootId::generate(),
        keeper: KeeperProgram::ThisProgram,
        tasks: Tasks::default(),
        clock,
    })
    .await?;
    let child = processes
        .spawn(Spec {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory,
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            owner: "test".to_owned(),
            reason: "to be left alone".to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
        })
        .await?;
    child.ended().await;
    Ok(())
}
