//! Taking an archive in, while no daemon runs.

use std::io::Read;
use std::sync::Arc;

use eventlog::{Contents, Log};
use kernel::{BootId, SystemClock};

use super::boots;
use super::error::{ImportLogError, LogStartError};
use super::home_id;
use super::open::{Database, open_log};
use crate::home::Home;
use crate::ownership::Ownership;

/// What an import brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// How many streams.
    pub streams: u64,
    /// How many events.
    pub events: u64,
    /// How many blobs.
    pub blobs: u64,
    /// What was damaged where the archive was written, and so is not in it.
    pub left_out: Vec<String>,
}

/// Reads the whole log of a home that has no daemon, and lists what is wrong with it. It changes nothing.
///
/// # Errors
/// A daemon has it open, or it cannot be opened at all.
pub fn check_log_file(home: &Home) -> Result<Vec<String>, LogStartError> {
    Ok(Log::check_file(
        &home.log_database(),
        super::quarantine::unreadable,
    )?)
}

/// Fills the empty log of a home from an archive, all or nothing. The home is ours meanwhile, so that no daemon can
/// start in it.
///
/// The home takes over the id of the one that the archive comes from: what is said in the log of that home, such as
/// which breakers are held by hand, holds in this one from now on.
///
/// *Cancel safety*: dropped half-way, it may still be made, but never in part.
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
    }
    Ok(Imported {
        streams,
        events,
        blobs,
        left_out,
    })
}
