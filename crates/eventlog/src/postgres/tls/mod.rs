//! Encrypted connections: when to encrypt, and whom to trust.
//!
//! The modes are libpq's, with one difference: a connection that leaves this machine is never unencrypted by
//! default. It takes `sslmode=disable`.

mod binding;
mod trust;

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    config::{SslMode, SslNegotiation},
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{
    TlsConnector, client,
    rustls::{ClientConfig, ProtocolVersion, pki_types::ServerName},
};

use super::address::{Endpoint, Settings};

/// The value of `sslmode`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Disable,
    /// Encrypted if the server supports it. A connection to another machine requires that. `allow` means the
    /// same.
    Prefer,
    /// Encrypted. The server's identity is verified only if `sslrootcert` is set.
    Require,
    VerifyCa,
    VerifyFull,
}

const MODES: &[(&str, Mode)] = &[
    ("disable", Mode::Disable),
    ("allow", Mode::Prefer),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];

/// How a connection is protected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Encryption {
    version: ProtocolVersion,
}

impl fmt::Display for Encryption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.version {
            ProtocolVersion::TLSv1_3 => "TLS 1.3",
            ProtocolVersion::TLSv1_2 => "TLS 1.2",
            _ => "TLS",
        })
    }
}

/// How connections are encrypted, for all servers of a log.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) mode: Mode,
    pub(super) negotiation: SslNegotiation,
    /// What the certificates of servers are verified against, for messages; `None` if they aren't verified.
    pub(super) trusts: Option<Arc<str>>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads files, so it may block.
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        let root = settings.get("sslrootcert");
        let mode = match (settings.choose("sslmode", MODES)?, root) {
            // As in libpq: with the system roots, any weaker mode would trust the whole world.
            (None | Some(Mode::VerifyFull), Some("system")) => Mode::VerifyFull,
            (Some(_), Some("system")) => {
                return Err("sslrootcert=system goes with sslmode=verify-full only".to_owned());
            }
            (mode, _) => mode.unwrap_or(Mode::Prefer),
        };
        let negotiations = [
            ("postgres", SslNegotiation::Postgres),
            ("direct", SslNegotiation::Direct),
        ];
        let negotiation = settings
            .choose("sslnegotiation", &negotiations)?
            .unwrap_or(SslNegotiation::Postgres);
        if negotiation == SslNegotiation::Direct && matches!(mode, Mode::Disable | Mode::Prefer) {
            return Err("sslnegotiation=direct wants sslmode=require or more".to_owned());
        }
        let (mut config, trusts) = trust::client_config(settings, mode)?;
        if negotiation == SslNegotiation::Direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Self {
            mode,
            negotiation,
            trusts: trusts.map(Arc::from),
            config: Arc::new(config),
        })
    }

    /// What is required of a server. Connections over a local socket aren't encrypted.
    pub(super) fn demand(&self, endpoint: &Endpoint) -> SslMode {
        match self.mode {
            _ if endpoint.is_socket() => SslMode::Disable,
            Mode::Disable => SslMode::Disable,
            Mode::Prefer if endpoint.is_local() => SslMode::Prefer,
            _ => SslMode::Require,
        }
    }

    /// A TLS setup for one connection.
    pub(super) fn attempt(&self) -> Attempt {
        Attempt {
            config: Arc::clone(&self.config),
            progress: Arc::default(),
        }
    }
}

/// One connection that may become encrypted.
#[derive(Clone)]
pub(super) struct Attempt {
    config: Arc<ClientConfig>,
    progress: Arc<StreamProgress>,
}

#[derive(Debug, Default)]
struct StreamProgress {
    /// The server has agreed to a handshake.
    begun: OnceLock<()>,
    done: OnceLock<Encryption>,
}

impl Attempt {
    /// Whether the server has agreed to encrypt.
    pub(super) fn has_begun(&self) -> bool {
        self.progress.begun.get().is_some()
    }

    /// How the connection is protected, if it is.
    pub(super) fn encryption(&self) -> Option<Encryption> {
        self.progress.done.get().copied()
    }
}

/// The handshake with a server of this name.
pub(super) struct Handshake {
    attempt: Attempt,
    name: String,
}

impl MakeTlsConnect<Socket> for Attempt {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
        Ok(Handshake {
            attempt: self.clone(),
            name: host.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Attempt { config, progress } = self.attempt;
            progress.begun.get_or_init(|| ());
            let name = ServerName::try_from(self.name).map_err(io::Error::other)?;
            let stream = TlsConnector::from(config).connect(name, socket).await?;
            let version = stream.get_ref().1.protocol_version();
            let version = version.unwrap_or(ProtocolVersion::TLSv1_2);
            progress.done.get_or_init(|| Encryption { version });
            Ok(Encrypted(stream))
        })
    }
}

/// A connection after the handshake.
pub(super) struct Encrypted(client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        certificates
            .and_then(<[_]>::first)
            .and_then(|certificate| binding::end_point(certificate))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
