//! Durable jobs: how many in a second, how soon one starts, and what is left of one that was cancelled.
//!
//! The service itself runs in this program, on a log of its own. What concerns commands is asked of the shipped
//! daemon. Peers are programs of their own: apalis is built from `crates/bench/peers`, graphile-worker is installed
//! by `npm`, both below the target directory and only if `TIDELOCK_BENCH_PEERS` has none. The Postgres server is the
//! one that `TIDELOCK_BENCH_POSTGRES_URL` names.

pub(crate) mod backlog;
pub(crate) mod cancel;
mod commands;
mod handlers;
pub(crate) mod idle_cost;
mod load;
pub(crate) mod output;
mod peers;
mod pgbench;
pub(crate) mod postgres;
mod postgres_database;
pub(crate) mod sqlite;
pub(crate) mod start_latency;

pub(crate) use commands::CommandJobs;
pub(crate) use load::runtime;
pub(crate) use postgres_database::{Database, Server};
