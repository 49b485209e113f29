//! Why a daemon couldn't start.

use std::io;

use jobs::OpenJobsError;
use kernel::BreakerSettingsError;
use plans::PlanError;
use process::OpenProcessesError;
use sessions::SessionError;
use thiserror::Error;

use crate::access::TokenError;
use crate::configuration::ConfigurationError;
use crate::durable::LogStartError;
use crate::home::HomeError;
use crate::ownership::OwnershipError;
use crate::server::BindError;

/// Why a daemon couldn't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its directories can't be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Another daemon is running, or the lock can't be used.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// It can't listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// There is no usable log.
    #[error(transparent)]
    Log(#[from] LogStartError),
    /// The processes that an earlier daemon left running can't be taken over.
    #[error(transparent)]
    Processes(#[from] OpenProcessesError),
    /// The jobs of an earlier daemon can't be taken over.
    #[error(transparent)]
    Jobs(#[from] OpenJobsError),
    /// The plans of an earlier daemon can't be taken over.
    #[error("the plans of an earlier daemon cannot be taken over")]
    Plans(#[from] PlanError),
    /// The sessions of an earlier daemon can't be taken over.
    #[error("the sessions of an earlier daemon cannot be taken over")]
    Sessions(#[from] SessionError),
    /// The user's configuration can't be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// There is no usable token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The settings of the circuit breakers are invalid.
    #[error("the settings of the circuit breakers make no sense")]
    Breakers(#[from] BreakerSettingsError),
    /// The scratch directory can't be recreated.
    #[error("the scratch directory cannot be used")]
    Scratch(#[source] io::Error),
    /// Signals can't be received.
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
            Self::Processes(_) | Self::Jobs(_) | Self::Plans(_) | Self::Sessions(_) => {
                "see `tidelock doctor --deep`; the log of the daemon says more".to_owned()
            }
            Self::Configuration(_) => "correct the file, or move it away".to_owned(),
            Self::Token(error) => error.advice(),
            Self::Breakers(_) => "correct the settings".to_owned(),
            Self::Scratch(_) => "make sure that the runtime directory can be written and has room".to_owned(),
            Self::Signals(_) => "make sure that the process may have more open files".to_owned(),
        }
    }

    /// Whether another running daemon owns the home.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Ownership(OwnershipError::Taken { .. }))
    }
}
