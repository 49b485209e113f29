//! Who may talk to the daemon: names, the bearer token, and sessions of the page.

mod hosts;
mod secret;
mod sessions;
mod token;

pub(crate) use hosts::{Hosts, Transport};
pub(crate) use secret::Secret;
pub(crate) use sessions::{CODE_LIFETIME, Sessions, SignedIn};
pub use token::TokenError;
pub(crate) use token::load_or_create;
