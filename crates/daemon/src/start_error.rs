//! Why a daemon did not start.

use std::io;

use kernel::BreakerSettingsError;
use thiserror::Error;

use crate::access::TokenError;
use crate::durable::LogStartError;
use crate::home::HomeError;
use crate::ownership::OwnershipError;
use crate::server::BindError;

/// Why a daemon did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its directories cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Another daemon is running, or the lock cannot be used.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// It cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// There is no usable log.
    #[error(transparent)]
    Log(#[from] LogStartError),
    /// There is no usable token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The settings of the circuit breakers make no sense.
    #[error("the settings of the circuit breakers make no sense")]
    Breakers(#[from] BreakerSettingsError),
    /// Signals cannot be received.
    #[error("signals of the process cannot be received")]
    Signals(#[source] io::Error),
}

impl StartError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Home(error) => error.advice(),
            Self::Ownership(error) => error.advice(),
            Self::Bind(error) => error.advice(),
            Self::Log(error) => error.advice(),
            Self::Token(error) => error.advice(),
            Self::Breakers(_) => "correct the settings".to_owned(),
            Self::Signals(_) => "make sure that the process may have more open files".to_owned(),
        }
    }

    /// The home is that of another daemon, which is running.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Ownership(OwnershipError::Taken { .. }))
    }
}
