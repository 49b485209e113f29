//! What outlives a daemon: the log, and what the daemon itself keeps in it.
//!
//! - `boots`: one stream for each life of a daemon; the next one finds out which of them crashed.
//! - `overrides`: breakers that are held by hand. One task owns them, so that memory and log never disagree.
//! - `trust`: which configurations in repositories the user has accepted.
//! - `upkeep`: what is old is dropped, what is unused is given back.
//!
//! **What must not happen here:** SQL, and any look at how the log keeps its data. Streams of this home carry its id
//! in their names or bodies, because several homes can share one database.

mod boots;
mod closing;
mod error;
mod health;
mod history;
mod home_id;
mod offline;
mod open;
mod overrides;
pub(crate) mod quarantine;
mod trust;
mod upkeep;

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use eventlog::{CommitError, Log};
use kernel::{CircuitBreaker, Clock, Scope};
use protocol::{BootId, HomeId};
use tokio::sync::mpsc;

pub(crate) use boots::{Boots, Note};
pub use error::{ImportLogError, LogStartError};
pub(crate) use health::{Health, sizes_to_wire};
pub(crate) use history::{BreakerHistory, Holder, to_wire as event_to_wire};
pub(crate) use home_id::FILE_NAME as HOME_ID_FILE;
pub use offline::{HomeIdentityError, Imported, adopt_home, check_log_file, import_log, renew_home};
pub(crate) use open::open_log;
use open::open_own_log;
pub use open::{Database, DatabaseUrl};
pub(crate) use overrides::{Change, OverrideError, Overrides, Who};
pub(crate) use trust::TrustedConfigs;
pub(crate) use upkeep::{Subjects, keep_up};

use crate::home::Home;
use machines::{
    ElsewherePolicy, HomeLocation, Identity, IdentityClaim, Machine, MachineLabel, Machines, claim, host_name,
};
use process::Tasks;

/// The durable parts of one daemon, as its requests see them.
#[derive(Debug)]
pub(crate) struct Durable {
    pub(crate) log: Log,
    /// What only this machine has to know: which processes it has.
    pub(crate) own_log: Log,
    pub(crate) engine: protocol::LogEngine,
    pub(crate) home_id: HomeId,
    /// Everybody on this log, by name.
    pub(crate) machines: Machines,
    /// The right to be this home, if others could be taken for it.
    pub(crate) identity: Option<IdentityClaim>,
    /// Who shares the breakers that are held by hand.
    pub(crate) holder: Holder,
    pub(crate) boots: Boots,
    pub(crate) overrides: Overrides,
    pub(crate) trusted: TrustedConfigs,
    pub(crate) health: Arc<Health>,
}

/// Who is starting.
#[derive(Clone, Debug)]
pub(crate) struct Starting {
    pub(crate) boot_id: BootId,
    pub(crate) started_at: SystemTime,
    /// What the user calls this machine; nothing for the name of the host.
    pub(crate) machine_name: Option<String>,
}

impl Durable {
    /// Opens the log and makes it true: earlier lives that have no end get one, this one begins, and breakers that
    /// are held by hand are held again. Only the owner of the home may call this, and before anybody is served.
    ///
    /// The second part of what it returns takes notes on this life. The tasks that it starts end when `closing` is
    /// cancelled and what was asked of them before is done.
    pub(crate) async fn open(
        home: &Home,
        database: &Database,
        clock: Arc<dyn Clock>,
        starting: Starting,
        breakers: &CircuitBreaker,
        (tasks, closing): (&Tasks, &Scope),
    ) -> Result<(Self, mpsc::Sender<Note>), LogStartError> {
        let mut home_id = load_home_id(home)?;
        let log = open_log(home, database, Arc::clone(&clock)).await?;
        let own_log = open_own_log(home, (database, &log), Arc::clone(&clock))?;
        if matches!(database, Database::File) {
            let of_log = boots::home_of_log(&log, home_id).await;
            let of_log = of_log.map_err(LogStartError::Read)?;
            if of_log != home_id {
                tracing::warn!(%home_id, %of_log, "the log comes from elsewhere, and brings the id of its home");
                home_id::replace(&home.home_id_file(), of_log).map_err(|source| no_id(home, source))?;
                home_id = of_log;
            }
        }
        let Starting {
            boot_id,
            started_at,
            machine_name,
        } = starting;
        let name = machine_name.unwrap_or_else(host_name);
        let claiming = async {
            match database {
                Database::File => Ok(None),
                Database::Postgres(_) => {
                    let identity = Identity {
                        home: home_id,
                        boot: boot_id,
                    };
                    let machine = this_machine(home, name.clone())?;
                    let claimed = claim(&log, &clock, identity, &machine, ElsewherePolicy::Refuse).await?;
                    Ok(Some(claimed))
                }
            }
        };
        // The way to the database may be long, so what does not depend on each other is done at once.
        let looking = async { boots::look(&log, home_id).await.map_err(LogStartError::Read) };
        let (identity, past) = tokio::try_join!(claiming, looking)?;
        let naming = async {
            if identity.is_none() {
                return Ok(Machines::alone(home_id, name));
            }
            let machines = Machines::load(&log, home_id).await.map_err(LogStartError::Read)?;
            let following = machines
                .clone()
                .follow(log.clone(), Arc::clone(&clock), closing.clone());
            tasks.spawn("machines", following);
            Ok(machines)
        };
        let alone = Holder::Home(home_id);
        let (holder, before) = match database {
            Database::File => (alone, Holder::Everybody),
            Database::Postgres(_) => (Holder::Everybody, alone),
        };
        let holding = async {
            let held = history::take_over(&log, before, holder, breakers).await;
            held.map_err(|error| match error {
                // Almost always there is nothing to write.
                CommitError::Log(error) => LogStartError::Read(error),
                error => LogStartError::Write(error),
            })
        };
        let trusting = async {
            let trusted = TrustedConfigs::load(log.clone(), home_id).await;
            trusted.map_err(LogStartError::Read)
        };
        let beginning = boots::begin(&log, past, home_id, boot_id, started_at);
        let ((boot, boots), held, trusted, machines) =
            tokio::try_join!(beginning, holding, trusting, naming)?;
        tracing::info!(%home_id, crashed = boots.found_crashed, held_breakers = held, "the log is open");

        let (notes, writing) = boot.notes(closing.clone());
        tasks.spawn("notes", writing);
        let (overrides, owning) = Overrides::new(
            log.clone(),
            holder,
            breakers.clone(),
            Arc::clone(&clock),
            closing.clone(),
        );
        tasks.spawn("overrides", owning);
        let durable = Self {
            health: Arc::new(Health::new(log.clone(), clock, home_id, boot_id)),
            engine: database.engine(),
            log,
            own_log,
            home_id,
            machines,
            identity,
            holder,
            boots,
            overrides,
            trusted,
        };
        Ok((durable, notes))
    }
}

/// A machine, for the wire.
pub(crate) fn machine_to_wire(label: MachineLabel) -> protocol::Machine {
    protocol::Machine {
        name: label.name,
        home: label.home.to_string(),
        here: label.is_here,
    }
}

fn this_machine(home: &Home, name: String) -> Result<Machine, LogStartError> {
    let place = HomeLocation::of(&home.state, &home.home_id_file()).map_err(|source| no_id(home, source))?;
    Ok(Machine {
        name,
        place,
        is_at: home_id::is_at,
    })
}

fn load_home_id(home: &Home) -> Result<HomeId, LogStartError> {
    home_id::load_or_create(&home.home_id_file()).map_err(|source| no_id(home, source))
}

fn no_id(home: &Home, source: io::Error) -> LogStartError {
    let path = home.home_id_file();
    LogStartError::HomeId { path, source }
}
