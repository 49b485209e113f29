//! The keeper of this crate's tests. Started by another name it is a small daemon: `spawn-and-hang DIRECTORY HOME
//! SCRIPT` runs a script under a keeper and then waits to be killed. With `view` at the end, the script runs in a view:
//! `DIRECTORY/upper` on `DIRECTORY/lower`, seen at `DIRECTORY/place`. And `umount PATH` asks the kernel to unmount
//! something, without the precautions of the command of that name.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use process::{
    Confinement, KeeperProgram, Limits, Mount, Processes, ProcessesOptions, Spec, StandardError, Tasks,
    ViewSpec,
};
use protocol::{BootId, HomeId};
use rustix::mount::UnmountFlags;

fn main() -> Result<(), Box<dyn Error>> {
    process::keep_if_asked();
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (Some("spawn-and-hang"), Some(directory), Some(home)) => {
            let script = arguments.next().ok_or("a script is missing")?;
            let wants_view = arguments.next().as_deref() == Some("view");
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(spawn_and_hang(
                directory.into(),
                home.parse()?,
                script,
                wants_view,
            ))
        }
        (Some("umount"), Some(path), None) => Ok(rustix::mount::unmount(path, UnmountFlags::DETACH)?),
        _ => Err("this is a keeper of tests".into()),
    }
}

async fn spawn_and_hang(
    directory: PathBuf,
    home_id: HomeId,
    script: String,
    wants_view: bool,
) -> Result<(), Box<dyn Error>> {
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
    let place = directory.join("place");
    let view = match wants_view {
        false => None,
        true => Some(
            processes
                .make_view(ViewSpec {
                    mounts: vec![Mount::Overlay {
                        lower: vec![directory.join("lower")],
                        upper: directory.join("upper"),
                        work: directory.join("work"),
                        at: place.clone(),
                    }],
                    root: place.clone(),
                })
                .await?,
        ),
    };
    let child = processes
        .spawn(Spec {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: if wants_view { place } else { directory },
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            owner: "test".to_owned(),
            reason: "to be left alone".to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: view.clone(),
        })
        .await?;
    child.ended().await;
    Ok(())
}
