//! Reasons not to use a server that responds. Each message says what to do.

use std::{error::Error as _, io};

use tokio_postgres::{Error, config::SslMode};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};

use super::{
    options::Target,
    tls::{Attempt, Mode},
};

#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "the server at {place} does not support TLS, and sslmode requires it; turn on `ssl` in the server, or set \
         sslmode=disable if you trust the network"
    )]
    NoTls { place: String },
    #[error(
        "the server at {place} is not on this machine and does not support TLS, so others could read the password and \
         the log; turn on `ssl` in the server and set sslmode=require, or set sslmode=disable if you trust the network"
    )]
    NotLocal { place: String },
    #[error(
        "the certificate of the server at {place} is not trusted: it is not signed by {trusts}; set sslrootcert to the \
         certificate of its authority"
    )]
    NotTrusted { place: String, trusts: String },
    #[error(
        "the certificate of the server at {place} is for another name: {reason}; connect by a name in the certificate, \
         or set sslmode=verify-ca if your authority only signs for servers you trust"
    )]
    WrongName { place: String, reason: TlsError },
    #[error("the server at {place} wants a client certificate; set sslcert and sslkey")]
    NoClientCertificate { place: String },
    #[error("the TLS handshake with the server at {place} failed: {reason}")]
    Handshake { place: String, reason: TlsError },
    #[error(
        "the server at {place} is a pooler that gives a connection another session for each transaction, and the log \
         keeps state in its sessions; connect to the database directly, or set the pooler to session mode (pgbouncer: \
         pool_mode = session)"
    )]
    TransactionPooling { place: String },
    #[error("the server at {place} wants a password and none was found{note}")]
    NoPassword { place: String, note: String },
}

impl Refusal {
    /// What a connection error means, if it is about encryption or the password.
    pub(super) fn of(error: &Error, target: &Target, attempt: &Attempt) -> Option<Self> {
        let place = target.place.clone();
        let source = error.source();
        if let Some(said) = source.and_then(|source| source.downcast_ref::<io::Error>()) {
            let reason = said.get_ref()?.downcast_ref::<TlsError>()?.clone();
            return Some(Self::of_handshake(reason, place, target));
        }
        if error.as_db_error().is_some() {
            return None;
        }
        if target.config.get_ssl_mode() == SslMode::Require && !attempt.has_begun() {
            return Some(match target.tls.mode {
                Mode::Prefer => Self::NotLocal { place },
                _ => Self::NoTls { place },
            });
        }
        // The only other thing that can be missing on our side.
        target.config.get_password().is_none().then(|| Self::NoPassword {
            place,
            note: target.password_note.clone(),
        })
    }

    fn of_handshake(reason: TlsError, place: String, target: &Target) -> Self {
        match &reason {
            TlsError::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => {
                let trusts = target.tls.trusts.as_deref().unwrap_or("nobody").to_owned();
                Self::NotTrusted { place, trusts }
            }
            TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Self::WrongName { place, reason },
            TlsError::AlertReceived(AlertDescription::CertificateRequired) => {
                Self::NoClientCertificate { place }
            }
            _ => Self::Handshake { place, reason },
        }
    }
}
