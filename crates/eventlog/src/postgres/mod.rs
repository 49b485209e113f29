//! The log in a Postgres database: for several daemons, on one machine or on many.
//!
//! The semantics are those of every engine. What is particular here:
//!
//! - A commit is one statement, and so one round trip (`commits.rs`). Who writes is decided by locks on rows, in one
//!   order for everybody.
//! - Time is the database's: leases, pins and the times of events do not depend on the clocks of the daemons.
//! - A relaxed commit is seen at once by everybody, and is on disk when the server writes its log out by itself,
//!   which is after three times `wal_writer_delay` at the latest (600 ms, unless the server is set otherwise).
//! - Commits that others make are learnt by notifications, and by looking (`listener.rs`).
//! - A write whose acknowledgement was lost is [`LogError::OutcomeUnknown`], and is never made again blindly
//!   (`failure.rs`).
//!
//! **Who owns the state:** the server. This process keeps a few connections, and what its tails have seen.

mod address;
mod blobs;
mod commits;
mod connection;
mod dump;
mod failure;
mod leases;
mod listener;
mod options;
mod pool;
mod pulse;
mod read;
mod refusal;
mod removal;
mod restore;
mod retention;
mod rows;
mod schema;
mod session;
mod statements;
mod tasks;
mod tls;
mod upkeep;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::{sync::mpsc, task::spawn_blocking};

use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    commit::{Commit, CommitError, Committed, StoredHead},
    error::{LogError, OpenError},
    hub::Hub,
    lease::{Lease, LeaseError},
    names::{Sequence, StreamId, Version},
    record::{Record, RestoreError},
    store::{HeadsQuery, Health, MovedQuery, Page, RetentionPolicy, ServerInfo, Sizes, Store, UploadId},
    time::LogTime,
};
use commits::Mark;
use connection::Connection;
use listener::Listener;
pub use options::PostgresOptions;
use options::Server;
use pool::Pool;
use refusal::Refusal;
use session::{ConnectError, Opening, SetUp};
use tasks::Tasks;

/// How many connections are made at once when a log is opened, beside the first one: much is read then.
const SPARE_CONNECTIONS: usize = 7;

#[derive(Debug)]
pub(crate) struct Postgres {
    pool: Arc<Pool>,
    hub: Hub,
    tasks: Tasks,
    info: ServerInfo,
}

impl Postgres {
    /// With the time of the server, which is followed from then on.
    pub(crate) async fn open(options: &PostgresOptions, hub: Hub) -> Result<(Self, LogTime), OpenError> {
        let tasks = Tasks::new();
        let server = understand(options).await?;
        let place = server.place();
        let Prepared {
            found,
            info,
            time,
            first,
            spares,
        } = prepare(&server, options.connections.get() - 1, &tasks)
            .await
            .map_err(|error| match error {
                ConnectError::Refused(refusal) => OpenError::Refused {
                    place: place.clone(),
                    reason: refusal.to_string(),
                },
                error => OpenError::Database {
                    place: place.clone(),
                    source: error.into(),
                },
            })?;
        let Some(first) = first else {
            return Err(OpenError::NewerDatabase {
                place,
                found,
                known: schema::NEWEST,
            });
        };
        let pool = Pool::new(options, server, tasks.clone(), first);
        let listener = Listener {
            pool: Arc::clone(&pool),
            hub: hub.clone(),
            scope: tasks.scope(),
        };
        tasks.spawn(listener.run());
        // Much is read at once when a daemon starts. Whoever found no connection would make one, which takes longer.
        let spares = spares.into_iter().map(|spare| pool.add_spare(spare));
        join_all(spares).await;
        tasks.spawn(pulse::look(Arc::clone(&pool), time.clone(), tasks.scope()));
        let store = Self {
            pool,
            hub,
            tasks,
            info,
        };
        Ok((store, time))
    }
}

/// Reads what the options name: certificates, and the file of passwords.
async fn understand(options: &PostgresOptions) -> Result<Server, OpenError> {
    let options = options.clone();
    let server = spawn_blocking(move || Server::new(&options)).await;
    server.unwrap_or_else(|error| {
        Err(OpenError::Address {
            reason: format!("it could not be looked at: {error}"),
        })
    })
}

/// A database that is ready to be used as a log.
struct Prepared {
    /// The schema that its tables have.
    found: i64,
    info: ServerInfo,
    time: LogTime,
    /// The first connection of the pool; `None` if the schema is too new to use.
    first: Option<Connection>,
    /// More of them, which are being opened.
    spares: Vec<Opening>,
}

/// Makes or updates the tables. Two connections are made at once: one looks, the other becomes the first of the pool.
/// Which sessions answer on them shows whether every connection has a session of its own. Once they are there, more are
/// opened, at most so many.
async fn prepare(server: &Server, more: usize, tasks: &Tasks) -> Result<Prepared, ConnectError> {
    let (looking, first) = tokio::try_join!(session::connect(server), session::connect(server))?;
    let spares = (0..SPARE_CONNECTIONS.min(more)).map(|_| session::begin_to_connect(server, tasks));
    let spares = spares.collect();
    let info = ServerInfo {
        place: format!("{} at {}", server.database, looking.place),
        version: looking
            .driver
            .parameter("server_version")
            .unwrap_or_default()
            .to_owned(),
        encryption: looking.encryption.map(|encryption| encryption.to_string()),
    };
    session::drive(looking.driver, tasks);
    let client = looking.client;
    let look = schema::look(&client, &server.schema).await;
    let schema::FirstLook {
        mut found,
        sessions,
        time,
    } = look.map_err(ConnectError::Lasting)?;
    let time = LogTime::of_server(time);
    let is_shared = |seen: bool| {
        let place = looking.place.clone();
        seen.then_some(ConnectError::Refused(Refusal::TransactionPooling { place }))
    };
    if let Some(refused) = is_shared(sessions[0] != sessions[1]) {
        return Err(refused);
    }
    if found < schema::NEWEST {
        let migrated = schema::migrate(&client, &server.schema).await;
        found = migrated.map_err(ConnectError::Lasting)?;
    }
    if found > schema::NEWEST {
        let first = None;
        return Ok(Prepared {
            found,
            info,
            time,
            first,
            spares: Vec::new(),
        });
    }
    let SetUp { session, connection } = session::set_up(first, server, tasks).await?;
    // The connection that looked is still open, and has nothing to do: a pooler that hands its session to somebody
    // else hands it to this one.
    let refused = is_shared(sessions.contains(&session));
    drop(client);
    match refused {
        Some(refused) => Err(refused),
        None => Ok(Prepared {
            found,
            info,
            time,
            first: Some(connection?),
            spares,
        }),
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

#[async_trait]
impl Store for Postgres {
    async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError> {
        let mark = Mark::new();
        let (committed, changes) = self
            .pool
            .write(|connection| commits::commit(connection, &commit, &mark))
            .await?;
        self.hub.tell(&changes);
        Ok(committed)
    }

    async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError> {
        let changes = self
            .pool
            .write(|connection| removal::remove(connection, &streams))
            .await?;
        self.hub.tell(&changes);
        // They are gone. Whatever happens to the rest, it is not seen any more, and is swept another time.
        if let Err(error) = removal::sweep(&self.pool).await {
            tracing::warn!(%error, "what is left of removed streams could not be dropped yet");
        }
        Ok(())
    }

    async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError> {
        self.pool
            .read(|connection| async move { read::head(&connection, stream).await })
            .await
    }

    async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError> {
        self.pool.read(|connection| read::heads(connection, &query)).await
    }

    async fn last_moved(&self, query: MovedQuery) -> Result<Vec<StoredHead>, LogError> {
        self.pool
            .read(|connection| read::last_moved(connection, &query))
            .await
    }

    async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError> {
        self.pool
            .read(|connection| read::read(connection, stream, after, limit))
            .await
    }

    async fn lease(&self, key: Arc<str>, owner: Arc<str>, ttl: Duration) -> Result<Lease, LeaseError> {
        self.pool
            .write(|connection| leases::take(connection, &key, &owner, ttl))
            .await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError> {
        self.pool
            .write(|connection| leases::renew(connection, lease, ttl))
            .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LeaseError> {
        self.pool
            .write(|connection| leases::release(connection, lease))
            .await
    }

    async fn begin_upload(&self) -> Result<UploadId, LogError> {
        self.pool.write(blobs::begin_upload).await
    }

    async fn put_chunk(&self, upload: UploadId, number: u32, compressed: Vec<u8>) -> Result<(), BlobError> {
        self.pool
            .write(|connection| blobs::put_chunk(connection, upload, number, &compressed))
            .await
    }

    async fn finish_upload(&self, upload: UploadId, id: BlobId, info: BlobInfo) -> Result<(), BlobError> {
        self.pool
            .write(|connection| blobs::finish_upload(connection, upload, id, info))
            .await
    }

    async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError> {
        self.pool.read(|connection| blobs::info(connection, id)).await
    }

    async fn blob_chunk(&self, id: BlobId, number: u32) -> Result<Option<Vec<u8>>, LogError> {
        self.pool
            .read(|connection| blobs::chunk(connection, id, number))
            .await
    }

    async fn unpin_blobs(&self, ids: Vec<BlobId>) -> Result<(), LogError> {
        self.pool.write(|connection| blobs::unpin(connection, &ids)).await
    }

    async fn collect_blobs(&self) -> Result<Collected, LogError> {
        removal::sweep(&self.pool).await?;
        blobs::collect(&self.pool).await
    }

    async fn trim(
        &self,
        kind: Arc<str>,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError> {
        retention::trim(&self.pool, &kind, policy).await
    }

    async fn drop_events(
        &self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<u64, CommitError> {
        retention::drop_events(&self.pool, stream, up_to, seen).await
    }

    async fn sizes(&self) -> Result<Sizes, LogError> {
        let schema = &self.pool.server().schema;
        self.pool
            .read(|connection| upkeep::sizes(connection, schema))
            .await
    }

    async fn check_integrity(&self) -> Result<Vec<String>, LogError> {
        self.pool.read(upkeep::check_integrity).await
    }

    async fn compact(&self) -> Result<(), LogError> {
        removal::sweep(&self.pool).await?;
        self.pool.write(upkeep::compact).await
    }

    async fn dump(&self, records: mpsc::Sender<Record>) -> Result<(), LogError> {
        self.pool
            .once(|connection| async move { dump::dump(connection, &records).await })
            .await
    }

    async fn restore(&self, records: mpsc::Receiver<Record>) -> Result<(), RestoreError> {
        self.pool
            .once(|connection| restore::restore(connection, records))
            .await
    }

    fn server(&self) -> Option<&ServerInfo> {
        Some(&self.info)
    }

    fn health(&self) -> Health {
        self.pool.health()
    }
}
