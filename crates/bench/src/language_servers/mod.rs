//! Language servers and their processes: what sharing them costs, and what it saves.
//!
//! The daemon is the shipped binary. Its questions also go to a server that was started by hand, over its pipes, and
//! to peers that share servers too, if they are installed: one program asks all of them in turns. Servers are found
//! as in the tests, peers in the directories in `TIDELOCK_BENCH_PEERS` and in `PATH`.

mod aether;
pub(crate) mod codec;
pub(crate) mod echo;
pub(crate) mod hover;
mod lspmux;
pub(crate) mod many_clients;
pub(crate) mod ownership;
mod python_project;
pub(crate) mod recovery;
mod server_by_hand;
mod shared_daemon;
pub(crate) mod sharing;
mod speaker;
pub(crate) mod turns;
