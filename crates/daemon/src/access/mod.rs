//! Controls who may talk to the daemon: host names, the bearer token, and the page's logins.

mod hosts;
mod logins;
mod secret;
mod token;

pub(crate) use hosts::{Hosts, Transport};
pub(crate) use logins::{CODE_LIFETIME, Logins, SignedIn};
pub(crate) use secret::Secret;
pub use token::TokenError;
pub(crate) use token::load_or_create;
