//! The durable log: commits, tails, reading, opening, fan-out.
//!
//! Every table creates its own logs, in directories that are removed afterwards. Peers that write rows use the SQLite
//! library, the schema and the settings of the log itself.

pub(crate) mod commits;
pub(crate) mod fan_out;
mod files;
pub(crate) mod latency;
pub(crate) mod opening;
mod plain_sqlite;
pub(crate) mod reading;
mod rows;
