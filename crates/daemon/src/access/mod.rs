//! Who may talk to the daemon: names, the bearer token, and logins of the page.

mod hosts;
mod logins;
mod secret;
mod token;

pub(crate) use hosts::{Hosts, Transport};
pub(crate) use logins::{CODE_LIFETIME, Logins, SignedIn};
pub(crate) use secret::Secret;
pub use token::TokenError;
pub(crate) use token::load_or_create;
