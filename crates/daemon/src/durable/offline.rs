//! Changes to a home while no daemon runs: importing an archive, or changing the identity of the home.

use std::io::Read;
use std::sync::Arc;

use eventlog::{Contents, Log};
use kernel::SystemClock;
use machines::{ElsewherePolicy, Identity, claim, host_name};
use protocol::{BootId, HomeId};
use thiserror::Error;

use super::boots;
use super::error::{ImportLogError, LogStartError};
use super::home_id;
use super::open::{Database, open_log};
use crate::home::{Home, HomeError};
use crate::ownership::{Ownership, OwnershipError};

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// How many streams.
    pub streams: u64,
    /// How many events.
    pub events: u64,
    /// How many blobs.
    pub blobs: u64,
    /// What was damaged in the exported log, and so isn't in the archive.
    pub left_out: Vec<String>,
}

/// Reads the whole log of a home that has no running daemon, and lists what is wrong with it. It changes nothing.
///
/// # Errors
/// A daemon has it open, or it can't be opened at all.
pub fn check_log_file(home: &Home) -> Result<Vec<String>, LogStartError> {
    Ok(Log::check_file(
        &home.log_database(),
        super::quarantine::unreadable,
    )?)
}

/// Fills the empty log of a home from an archive, all or nothing. Meanwhile no daemon can start in the home.
///
/// The home takes over the id of the home that the archive comes from. So what that log says about the home, such as
/// which breakers are held by hand, applies to this one.
///
/// *Cancel safety*: if the future is dropped, the import may still be made, but never in part.
///
/// # Errors
/// See [`ImportLogError`]; its advice says what to do.
pub async fn import_log(
    home: &Home,
    database: &Database,
    archive: impl Read + Send + 'static,
) -> Result<Imported, ImportLogError> {
    home.prepare()?;
    let _ownership = Ownership::take(home, BootId::generate())?;
    let log = open_log(home, database, Arc::clone(&SystemClock::shared()))
        .await
        .map_err(LogStartError::from)?;
    let Contents {
        left_out,
        streams,
        events,
        blobs,
    } = eventlog::import(&log, archive).await?;
    if let Some(id) = boots::newest_home(&log).await.map_err(LogStartError::Read)? {
        let path = home.home_id_file();
        home_id::replace(&path, id).map_err(|source| LogStartError::HomeId { path, source })?;
        // If the archive says where that home was, it is here now.
        adopt(home, database, &log, id).await?;
    }
    Ok(Imported {
        streams,
        events,
        blobs,
        left_out,
    })
}

/// Why the identity of a home was not changed.
#[derive(Debug, Error)]
pub enum HomeIdentityError {
    /// The directories can't be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A daemon is running, or the lock can't be used.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The log or the id can't be used, or the other daemon is still running.
    #[error(transparent)]
    Log(#[from] LogStartError),
}

/// Gives a home a new id, and returns it. What the log says about the old id stays with the home that has it.
///
/// # Errors
/// A daemon runs in it, or its files cannot be written.
pub fn renew_home(home: &Home) -> Result<HomeId, HomeIdentityError> {
    home.prepare()?;
    let _ownership = Ownership::take(home, BootId::generate())?;
    let (path, id) = (home.home_id_file(), HomeId::generate());
    home_id::replace(&path, id).map_err(|source| LogStartError::HomeId { path, source })?;
    Ok(id)
}

/// Records that a home has moved here for good, and returns its id. Fails if a daemon still runs where it was.
///
/// *Cancel safety*: if the future is dropped, the move may or may not be recorded.
///
/// # Errors
/// A daemon runs in it or where it was, or the log cannot be used.
pub async fn adopt_home(home: &Home, database: &Database) -> Result<HomeId, HomeIdentityError> {
    home.prepare()?;
    let _ownership = Ownership::take(home, BootId::generate())?;
    let id = super::load_home_id(home)?;
    let log = open_log(home, database, Arc::clone(&SystemClock::shared()))
        .await
        .map_err(LogStartError::from)?;
    adopt(home, database, &log, id).await?;
    Ok(id)
}

async fn adopt(home: &Home, database: &Database, log: &Log, home_id: HomeId) -> Result<(), LogStartError> {
    if matches!(database, Database::File) {
        // Nothing else uses this log.
        return Ok(());
    }
    // The next daemon sets the name that the user chose.
    let machine = super::this_machine(home, host_name())?;
    let identity = Identity {
        home: home_id,
        boot: BootId::generate(),
    };
    let claimed = claim(
        log,
        &SystemClock::shared(),
        identity,
        &machine,
        ElsewherePolicy::Adopt,
    )
    .await
    .map_err(LogStartError::from)?;
    claimed.release().await;
    Ok(())
}
