//! The log, and what the daemon itself stores in it.
//!
//! - `boots`: one stream for each boot of a daemon; the next boot finds out which of them crashed.
//! - `overrides`: breakers that are held by hand. One task owns them, so that memory and log never disagree.
//! - `trust`: which configurations in repositories the user has accepted.
//! - `upkeep`: drops what is old and frees what is unused.
//!
//! **What must not happen here:** SQL, and any knowledge of how the log stores its data. Streams of this home carry its
//! id in their names or bodies, because several homes can share one database.

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
    /// For data that concerns only this machine: its processes.
    pub(crate) own_log: Log,
    pub(crate) engine: protocol::LogEngine,
    pub(crate) home_id: HomeId,
    /// All machines on this log, by name.
    pub(crate) machines: Machines,
    /// The claim to the identity of this home, if the log is shared.
    pub(crate) identity: Option<IdentityClaim>,
    /// Who shares the breakers that are held by hand.
    pub(crate) holder: Holder,
    pub(crate) boots: Boots,
    pub(crate) overrides: Overrides,
    pub(crate) trusted: TrustedConfigs,
    pub(crate) health: Arc<Health>,
}

#[derive(Clone, Debug)]
pub(crate) struct Starting {
    pub(crate) boot_id: BootId,
    pub(crate) started_at: SystemTime,
    /// The name that the user chose for this machine; by default the host name.
    pub(crate) machine_name: Option<String>,
}

impl Durable {
    /// Opens the log and makes it match reality: earlier boots without an end have crashed, this boot begins, and
    /// breakers that are held by hand are held again. Only the owner of the home may call this, before the first request.
    ///
    /// The second part of the result takes notes about this boot. The tasks that this starts end when `closing` is
    /// cancelled and their queues are empty.
    pub(crate) async fn open(
        home: &Home,
        database: &Database,
        clock: Arc<dyn Clock>,
        starting: Starting,
        breakers: &CircuitBreaker,
        tasks: &Tasks,
        closing: &Scope,
    ) -> Result<(Self, mpsc::Sender<Note>), LogStartError> {
        let mut home_id = load_home_id(home)?;
        let log = open_log(home, database, Arc::clone(&clock)).await?;
        let own_log = open_own_log(home, database, &log, Arc::clone(&clock))?;
        if matches!(database, Database::File) {
            let of_log = boots::home_of_log(&log, home_id).await;
            let of_log = of_log.map_err(LogStartError::Read)?;
            if of_log != home_id {
                tracing::warn!(%home_id, %of_log, "the log comes from another home, and brings its id");
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
        // The database may be far away, so independent requests run concurrently.
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
                // Usually there is nothing to write.
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
