//! The agents that there are.

pub mod acp;
pub mod model;
pub mod rehearsal;
