//! Where the log lives, and how it is reached.

use std::{fmt, num::NonZeroUsize, str::FromStr, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::error::OpenError;

/// The schema that holds the tables, unless the options say otherwise.
const DEFAULT_SCHEMA: &str = "tidelock_log";
/// How many connections a log has at most, beside the one that listens. Commits are short, and a server has few
/// connections to give.
const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
/// How long one attempt to connect may take.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A peer that is silent for so long is asked whether it is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// How long a peer may leave what was sent unacknowledged before the connection is given up.
const SILENT_FOR: Duration = Duration::from_secs(20);
/// The longest name that Postgres does not shorten.
const IDENTIFIER_LIMIT_BYTES: usize = 63;

/// Where the log lives: a Postgres server (13 or later) that several daemons may share.
///
/// Connections are not encrypted: use a server on this machine or on a network that you trust. An address that
/// asks for encryption with `sslmode=require` is refused, never served without. A pooler in between must leave each
/// connection its session, because sessions listen and prepare statements.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The address, as `postgres://user:password@host:port/database`.
    pub url: String,
    /// The schema that holds the tables: lower-case letters, digits and `_`. It is made if need be. Several logs
    /// can share a database, each with a schema of its own.
    pub schema: String,
    /// How many connections the log may have, beside the one that listens.
    pub connections: NonZeroUsize,
}

impl PostgresOptions {
    /// The log at that address, with the usual schema and number of connections.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: DEFAULT_SCHEMA.to_owned(),
            connections: DEFAULT_CONNECTIONS,
        }
    }
}

impl fmt::Debug for PostgresOptions {
    /// The address is left out, since it may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// The options, understood and checked.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) config: Config,
    pub(super) schema: String,
}

impl Server {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, OpenError> {
        let bad = |reason: &str| OpenError::Address {
            reason: reason.to_owned(),
        };
        // The parser does not know the stricter modes, and its complaint about them would help nobody.
        let wants_tls = ["sslmode=require", "sslmode=verify"]
            .iter()
            .any(|mode| options.url.contains(mode));
        let parsed = Config::from_str(&options.url);
        if wants_tls || matches!(&parsed, Ok(config) if config.get_ssl_mode() == SslMode::Require) {
            return Err(bad(
                "it asks for an encrypted connection, which is not supported yet; use a server on this machine \
                 or on a trusted network, with sslmode=disable",
            ));
        }
        let mut config = parsed.map_err(|_| bad("it is not of the form postgres://user@host/database"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(bad("it names no host"));
        }
        if !is_identifier(&options.schema) {
            return Err(bad(
                "its schema must have 1 to 63 lower-case letters, digits and `_`, and not begin with a digit",
            ));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WITHIN);
        }
        if config.get_application_name().is_none() {
            config.application_name("tidelock");
        }
        config
            .ssl_mode(SslMode::Disable)
            .keepalives_idle(KEEPALIVE_AFTER)
            .keepalives_interval(KEEPALIVE_AFTER / 2)
            .keepalives_retries(2)
            .tcp_user_timeout(SILENT_FOR);
        Ok(Self {
            config,
            schema: options.schema.clone(),
        })
    }

    /// The server and database in words, without user and password.
    pub(super) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => self
                .config
                .get_hostaddrs()
                .first()
                .map_or_else(String::new, ToString::to_string),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let database = self.config.get_dbname().unwrap_or("postgres");
        format!("{database} at {host}:{port}, schema {}", self.schema)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Server").field(&self.place()).finish()
    }
}

/// Whether a text can stand in a statement as the name of a schema.
fn is_identifier(name: &str) -> bool {
    let starts_well = name
        .bytes()
        .next()
        .is_some_and(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    let goes_on_well = name
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    starts_well && goes_on_well && name.len() <= IDENTIFIER_LIMIT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_or_refused_with_a_reason_that_hides_the_password() {
        let cases = [
            (
                "postgres://me:secret@db.test:5433/work",
                "tidelock_log",
                Ok("work at db.test:5433, schema tidelock_log"),
            ),
            (
                "host=/run/postgresql user=me",
                "two",
                Ok("postgres at /run/postgresql:5432, schema two"),
            ),
            (
                "postgres://me:secret@db.test/work?sslmode=require",
                "s",
                Err("encrypted"),
            ),
            (
                "postgres://me:secret@db.test/work?sslmode=verify-full",
                "s",
                Err("encrypted"),
            ),
            (
                "mysql://me:secret@db.test/work",
                "s",
                Err("not of the form postgres://"),
            ),
            ("user=me password=secret", "s", Err("names no host")),
            ("postgres://me:secret@db.test/work", "Bad-Name", Err("its schema")),
            ("postgres://me:secret@db.test/work", "", Err("its schema")),
        ];
        for (url, schema, expected) in cases {
            let options = PostgresOptions {
                schema: schema.to_owned(),
                ..PostgresOptions::new(url)
            };
            let found = Server::new(&options);
            let shown = format!("{options:?} {found:?}");
            assert!(!shown.contains("secret"), "{shown}");
            match (found, expected) {
                (Ok(server), Ok(place)) => assert_eq!(server.place(), place),
                (Err(error), Err(reason)) => assert!(error.to_string().contains(reason), "{error}"),
                (found, _) => panic!("{url}: {found:?}"),
            }
        }
    }
}
