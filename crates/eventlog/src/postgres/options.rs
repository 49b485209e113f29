//! Where the log is stored, and how it is reached.

use std::{collections::BTreeMap, ffi::OsString, fmt, num::NonZeroUsize, time::Duration};

use tokio_postgres::{
    Config,
    config::{ChannelBinding, TargetSessionAttrs},
};

use super::{
    address::{self, Endpoint, Settings},
    tls::Tls,
};
use crate::error::OpenError;

/// The schema that has the tables, unless the options name another one.
const DEFAULT_SCHEMA: &str = "tidelock_log";
/// How many connections a log has at most, besides the one that listens. Commits are short, and a server has few
/// connections to give.
const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
/// How long one attempt to connect may take, unless the address says otherwise.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// After this much silence, the peer is asked whether it is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// After this long without an acknowledgement, a connection is given up.
const SILENT_FOR: Duration = Duration::from_secs(20);
/// The longest name that Postgres doesn't truncate.
const IDENTIFIER_LIMIT_BYTES: usize = 63;

/// Where the log is stored: a Postgres server (13 or later) that several daemons may share.
///
/// Missing parts of the address are filled in as `psql` does it: from a service, the `PG…` variables and the
/// password file. A connection to another machine is encrypted unless `sslmode=disable` is set. A pooler in
/// between must give each connection its own session, because sessions listen and prepare statements.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The address, as `postgres://user:password@host:port/database`.
    pub url: String,
    /// The variables that fill in missing parts of the address: `HOME` and those that libpq knows.
    pub variables: BTreeMap<String, OsString>,
    /// The schema that has the tables: lower-case letters, digits and `_`. It is created if necessary. Several
    /// logs can share a database, each with its own schema.
    pub schema: String,
    /// How many connections the log may have, besides the one that listens.
    pub connections: NonZeroUsize,
}

impl PostgresOptions {
    /// The log at this address, with the variables of this process, the default schema and the default number of
    /// connections.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            variables: address::variables_of_process(),
            schema: DEFAULT_SCHEMA.to_owned(),
            connections: DEFAULT_CONNECTIONS,
        }
    }
}

impl fmt::Debug for PostgresOptions {
    /// Omits the address and the variables, which may contain a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// One of the servers that may have the log.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Host and port, for messages.
    pub(super) place: String,
    /// How long an attempt to connect may take.
    pub(super) within: Duration,
    /// What to add to a message about a missing password.
    pub(super) password_note: String,
}

/// The parsed and validated options.
#[derive(Clone)]
pub(super) struct Server {
    /// Tried in this order. There is at least one.
    pub(super) targets: Vec<Target>,
    pub(super) schema: String,
    pub(super) database: String,
}

impl Server {
    /// Reads files, so it may block.
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, OpenError> {
        if !is_identifier(&options.schema) {
            return Err(OpenError::Address {
                reason: "its schema must have 1 to 63 lower-case letters, digits and `_`, and not begin with a digit"
                    .to_owned(),
            });
        }
        let settings = Settings::gather(&options.url, &options.variables);
        let server = settings.and_then(|settings| Self::from_settings(&settings, &options.schema));
        server.map_err(|reason| OpenError::Address { reason })
    }

    fn from_settings(settings: &Settings, schema: &str) -> Result<Self, String> {
        if settings
            .choose("gssencmode", &[("disable", ()), ("prefer", ())])?
            .is_some()
        {
            tracing::debug!("GSSAPI encryption is not supported; using TLS");
        }
        let endpoints = settings.endpoints()?;
        let tls = Tls::new(settings)?;
        let user = match settings.get("user") {
            Some(user) => user.to_owned(),
            None => whoami::username().map_err(|error| format!("it names no user: {error}"))?,
        };
        let database = settings.get("dbname").unwrap_or(&user);
        let mut common = Config::new();
        common.user(&user).dbname(database);
        if let Some(options) = settings.get("options") {
            common.options(options);
        }
        let within = settings.connect_timeout()?.unwrap_or(CONNECT_WITHIN);
        common
            .application_name(settings.get("application_name").unwrap_or("tidelock"))
            .target_session_attrs(session_attributes(settings, &endpoints)?)
            .channel_binding(channel_binding(settings)?)
            .ssl_negotiation(tls.negotiation)
            .connect_timeout(within)
            .keepalives_idle(KEEPALIVE_AFTER)
            .keepalives_interval(KEEPALIVE_AFTER / 2)
            .keepalives_retries(2)
            .tcp_user_timeout(SILENT_FOR);
        let (passwords, ignored) = settings.passwords(&endpoints, &user, database)?;
        let note = ignored.map_or_else(
            || "; set PGPASSWORD or add it to ~/.pgpass".to_owned(),
            |ignored| format!("; {ignored}"),
        );
        let targets = endpoints.into_iter().zip(passwords).map(|(endpoint, password)| {
            let mut config = common.clone();
            config
                .host(endpoint.host.as_str())
                .port(endpoint.port)
                .ssl_mode(tls.demand(&endpoint));
            if let Some(address) = endpoint.address {
                config.hostaddr(address);
            }
            if let Some(password) = password {
                config.password(password);
            }
            Target {
                config,
                tls: tls.clone(),
                place: format!("{}:{}", endpoint.host, endpoint.port),
                within,
                password_note: note.clone(),
            }
        });
        Ok(Self {
            targets: targets.collect(),
            schema: schema.to_owned(),
            database: database.to_owned(),
        })
    }

    /// The servers and the database, without user and password.
    pub(super) fn place(&self) -> String {
        let places: Vec<_> = self.targets.iter().map(|target| target.place.as_str()).collect();
        format!(
            "{} at {}, schema {}",
            self.database,
            places.join(" or "),
            self.schema
        )
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Server").field(&self.place()).finish()
    }
}

/// The session attributes that a server must have. Of several servers only a writable one is useful.
fn session_attributes(settings: &Settings, endpoints: &[Endpoint]) -> Result<TargetSessionAttrs, String> {
    let words = [
        ("any", TargetSessionAttrs::Any),
        ("read-write", TargetSessionAttrs::ReadWrite),
        ("primary", TargetSessionAttrs::ReadWrite),
    ];
    let asked = settings.choose("target_session_attrs", &words)?;
    Ok(asked.unwrap_or(if endpoints.len() > 1 {
        TargetSessionAttrs::ReadWrite
    } else {
        TargetSessionAttrs::Any
    }))
}

fn channel_binding(settings: &Settings) -> Result<ChannelBinding, String> {
    let words = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    Ok(settings
        .choose("channel_binding", &words)?
        .unwrap_or(ChannelBinding::Prefer))
}

/// Whether a text can be used in a statement as the name of a schema.
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
                Ok("me at /run/postgresql:5432, schema two"),
            ),
            (
                "postgres://me:secret@db.test,two.test:7/work?sslmode=require",
                "s",
                Ok("work at db.test:5432 or two.test:7, schema s"),
            ),
            (
                "postgres://me:secret@db.test/work?sslmode=secret",
                "s",
                Err("sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full"),
            ),
            (
                "postgres://me:secret@db.test/work?sslmode=verify-ca",
                "s",
                Err("sslrootcert"),
            ),
            (
                "postgres://me:secret@db.test/work?sslmode=require&sslrootcert=system",
                "s",
                Err("sslmode=verify-full"),
            ),
            (
                "postgres://me:secret@db.test/work?sslmode=require&sslrootcert=/nowhere/root.crt",
                "s",
                Err("/nowhere/root.crt"),
            ),
            (
                "postgres://me:secret@db.test/work?target_session_attrs=standby",
                "s",
                Err("target_session_attrs must be one of any, read-write, primary"),
            ),
            (
                "postgres://me:secret@db.test/work?gssencmode=require",
                "s",
                Err("gssencmode must be"),
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
                variables: BTreeMap::new(),
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
