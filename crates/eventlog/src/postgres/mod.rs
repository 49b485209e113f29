//! The log in a Postgres database: for several daemons, on one machine or on many.
//!
//! The semantics are those of every engine. What is specific here:
//!
//! - A commit is one statement, and so one round trip (`commits.rs`). Row locks decide who writes, in one order
//!   for everyone.
//! - Time is the database's: leases, pins and the times of events don't depend on the clocks of the daemons.
//! - A relaxed commit is visible to everyone at once, and is on disk when the server flushes its log by itself,
//!   which is after three times `wal_writer_delay` at the latest (600 ms by default).
//! - The log learns of commits by other processes through notifications, and by reading (`listener.rs`).
//! - A write whose acknowledgement was lost is [`LogError::OutcomeUnknown`], and is never blindly repeated
//!   (`failure.rs`).
//!
//! **Who owns the state:** the server. This process keeps a few connections, and what its tails have seen.

mod address;
mod blobs;
mod commits;
mod connection;
mod dump;
mod failure;
mod heartbeat;
mod leases;
mod listener;
mod options;
mod pool;

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
    store::{
        HeadsQuery, Health, Page, RecentlyChangedQuery, RetentionPolicy, ServerInfo, Sizes, Store, UploadId,
    },
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

/// How many connections are opened at once with a log, besides the first one: a daemon reads a lot when it
/// starts.
const SPARE_CONNECTIONS: usize = 7;

#[derive(Debug)]
pub(crate) struct Postgres {
    pool: Arc<Pool>,
    hub: Hub,
    tasks: Tasks,
    info: ServerInfo,
}

impl Postgres {
    /// Also returns the time of the server, which is followed from then on.
    pub(crate) async fn open(options: &PostgresOptions, hub: Hub) -> Result<(Self, LogTime), OpenError> {
        let tasks = Tasks::new();
        let server = load_server(options).await?;
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
        // A daemon reads a lot at once when it starts. Opening connections on demand would take longer.
        let spares = spares.into_iter().map(|spare| pool.add_spare(spare));
        join_all(spares).await;
        tasks.spawn(heartbeat::look(Arc::clone(&pool), time.clone(), tasks.scope()));
        let store = Self {
            pool,
            hub,
            tasks,
            info,
        };
        Ok((store, time))
    }
}

/// Reads the files that the options name: certificates and the password file.
async fn load_server(options: &PostgresOptions) -> Result<Server, OpenError> {
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
    /// The schema of its tables.
    found: i64,
    info: ServerInfo,
    time: LogTime,
    /// The first connection of the pool; `None` if the schema is too new.
    first: Option<Connection>,
    /// More connections that are being opened.
    spares: Vec<Opening>,
}

/// Creates or migrates the tables. Two connections are opened at once: one looks, the other becomes the first of
/// the pool. The sessions that answer on them show whether every connection has its own session. Then up to
/// `more` further connections are opened.
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
    // The first connection is still open and idle, so a pooler that shares sessions would give its session to
    // this one.
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
        self.hub.publish_changes(&changes);
        Ok(committed)
    }

    async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError> {
        let changes = self
            .pool
            .write(|connection| removal::remove(connection, &streams))
            .await?;
        self.hub.publish_changes(&changes);
        // The streams are gone. If the rest can't be dropped now, it is invisible and swept later.
        if let Err(error) = removal::sweep(&self.pool).await {
            tracing::warn!(%error, "the rest of removed streams could not be dropped yet");
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

    async fn recently_changed(&self, query: RecentlyChangedQuery) -> Result<Vec<StoredHead>, LogError> {
        self.pool
            .read(|connection| read::recently_changed(connection, &query))
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
