//! Language servers and the processes that they are: what sharing them costs, and what it saves.
//!
//! The daemon is the shipped binary. What is asked through it is also asked of a server that was started by hand, over
//! its pipes, and of peers that share servers too, where they are installed: one program asks all of them in turns.
//! Servers are found as the tests find them, peers in the directories that `TIDELOCK_BENCH_PEERS` names and in `PATH`.

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
