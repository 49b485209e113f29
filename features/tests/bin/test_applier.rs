//! Applies plans or takes them back, and is killed at the step that a scenario names.
//!
//! `test-applier apply|undo DIRECTORY HOME STEP PLAN...`. The directory has `log.sqlite` and `data`. Step 0 is never
//! reached. It is the parent of the commands of the scenarios as well.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use plans::landing::{Step, Steps};
use plans::{
    ApplyRequest, LandingOutcome, LandingSteps, Plans, PlansOptions, PlansSettings, Run, UndoRequest,
};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{BootId, HomeId, PlanId};

fn main() -> Result<(), Box<dyn Error>> {
    process::keep_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [action, directory, home, step, plans @ ..] = arguments.as_slice() else {
        return Err("this is a program of scenarios".into());
    };
    let plans = plans.iter().map(|plan| plan.parse());
    let plans: Vec<PlanId> = plans.collect::<Result<_, _>>()?;
    let killed = Arc::new(Killed {
        at: step.parse()?,
        reached: Mutex::new(0),
    });
    let runtime = tokio::runtime::Runtime::new()?;
    let steps = LandingSteps(Arc::clone(&killed) as Arc<dyn Steps>);
    let outcome = runtime.block_on(async {
        let service = open(Path::new(directory), home.parse()?, steps).await?;
        act(&service, action, plans).await
    })?;
    let reached = killed.reached.lock().map_err(|_| "a step panicked")?;
    writeln!(io::stdout(), "{:?} after {reached} steps", outcome.kind)?;
    Ok(())
}

async fn act(service: &Plans, action: &str, plans: Vec<PlanId>) -> Result<LandingOutcome, Box<dyn Error>> {
    let by = Arc::from("ann");
    let outcome = match (action, plans.as_slice()) {
        ("apply", _) => {
            let order = ApplyRequest {
                plans,
                seen: Vec::new(),
                by,
                run: Run::Real,
                commit: None,
            };
            service.apply(order).await
        }
        ("undo", [plan]) => {
            let order = UndoRequest {
                plan: *plan,
                changeset: None,
                seen: None,
                by,
                run: Run::Real,
            };
            service.undo(order).await
        }
        _ => return Err("this is a program of scenarios".into()),
    };
    Ok(outcome?)
}

async fn open(directory: &Path, home_id: HomeId, steps: LandingSteps) -> Result<Plans, Box<dyn Error>> {
    let path = directory.join("log.sqlite");
    let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared())?;
    let tasks = Tasks::default();
    let processes = Processes::open(ProcessesOptions {
        log: log.clone(),
        home_id,
        boot_id: BootId::generate(),
        keeper: KeeperProgram::At(std::env::current_exe()?),
        tasks: tasks.clone(),
        clock: SystemClock::shared(),
    })
    .await?;
    let options = PlansOptions {
        log,
        directory: directory.join("data"),
        guarded: Vec::new(),
        home_id,
        processes,
        environment: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
        settings: PlansSettings::default(),
        tasks,
        clock: SystemClock::shared(),
        steps,
    };
    let (plans, mut recovered) = Plans::open(options).await?;
    recovered.notes().await;
    Ok(plans)
}

/// Ends the process at one step.
struct Killed {
    at: u64,
    /// How many steps were reached.
    reached: Mutex<u64>,
}

impl Steps for Killed {
    fn reached(&self, _step: Step<'_>) {
        let Ok(mut reached) = self.reached.lock() else {
            return;
        };
        *reached += 1;
        if *reached == self.at {
            let killed =
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            assert!(killed.is_ok(), "{killed:?}");
        }
    }
}
