//! Parses an address and fills in the rest from a service, the `PG…` variables, and the password file.
//!
//! The names and the precedence are libpq's, so that what works with `psql` works here: the address counts most,
//! then the service, then the variables. No value is ever shown, because any value may be a misplaced password.

mod passfile;
mod service;
mod text;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use passfile::{Login, PasswordFile};

/// The port if nothing else is set.
const DEFAULT_PORT: u16 = 5432;

/// How a parameter is handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Use {
    Taken,
    /// It makes no difference here.
    Ignored,
    /// It asks for something that isn't supported, and its user must know that.
    Refused,
}

/// Every parameter that libpq knows, and its variable.
const PARAMETERS: &[(&str, Option<&str>, Use)] = &[
    ("application_name", Some("PGAPPNAME"), Use::Taken),
    ("channel_binding", Some("PGCHANNELBINDING"), Use::Taken),
    ("client_encoding", None, Use::Ignored),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT"), Use::Taken),
    ("dbname", Some("PGDATABASE"), Use::Taken),
    ("fallback_application_name", None, Use::Ignored),
    ("gssdelegation", Some("PGGSSDELEGATION"), Use::Refused),
    ("gssencmode", Some("PGGSSENCMODE"), Use::Taken),
    ("gsslib", Some("PGGSSLIB"), Use::Ignored),
    ("host", Some("PGHOST"), Use::Taken),
    ("hostaddr", Some("PGHOSTADDR"), Use::Taken),
    ("keepalives", None, Use::Ignored),
    ("keepalives_count", None, Use::Ignored),
    ("keepalives_idle", None, Use::Ignored),
    ("keepalives_interval", None, Use::Ignored),
    ("keepalives_retries", None, Use::Ignored),
    ("krbsrvname", Some("PGKRBSRVNAME"), Use::Ignored),
    ("load_balance_hosts", Some("PGLOADBALANCEHOSTS"), Use::Refused),
    ("options", Some("PGOPTIONS"), Use::Taken),
    ("passfile", Some("PGPASSFILE"), Use::Taken),
    ("password", Some("PGPASSWORD"), Use::Taken),
    ("port", Some("PGPORT"), Use::Taken),
    ("require_auth", Some("PGREQUIREAUTH"), Use::Refused),
    ("requirepeer", Some("PGREQUIREPEER"), Use::Refused),
    ("service", Some("PGSERVICE"), Use::Taken),
    (
        "ssl_max_protocol_version",
        Some("PGSSLMAXPROTOCOLVERSION"),
        Use::Refused,
    ),
    (
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        Use::Refused,
    ),
    ("sslcert", Some("PGSSLCERT"), Use::Taken),
    ("sslcertmode", Some("PGSSLCERTMODE"), Use::Refused),
    ("sslcompression", Some("PGSSLCOMPRESSION"), Use::Ignored),
    ("sslcrl", Some("PGSSLCRL"), Use::Refused),
    ("sslcrldir", Some("PGSSLCRLDIR"), Use::Refused),
    ("sslkey", Some("PGSSLKEY"), Use::Taken),
    ("sslmode", Some("PGSSLMODE"), Use::Taken),
    ("sslnegotiation", Some("PGSSLNEGOTIATION"), Use::Taken),
    ("sslpassword", None, Use::Refused),
    ("sslrootcert", Some("PGSSLROOTCERT"), Use::Taken),
    ("sslsni", Some("PGSSLSNI"), Use::Refused),
    ("target_session_attrs", Some("PGTARGETSESSIONATTRS"), Use::Taken),
    ("tcp_user_timeout", None, Use::Ignored),
    ("user", Some("PGUSER"), Use::Taken),
];

/// The variables of this process that concern a connection.
pub(super) fn variables_of_process() -> BTreeMap<String, OsString> {
    let known = |name: &str| {
        matches!(name, "HOME" | "PGSERVICEFILE" | "PGSYSCONFDIR")
            || PARAMETERS.iter().any(|(_, variable, _)| *variable == Some(name))
    };
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| known(name))
        .collect()
}

/// One of the servers that an address names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Endpoint {
    /// A name, an IP address, or the directory of a socket.
    pub(super) host: String,
    /// The IP address, if it is given and needn't be looked up.
    pub(super) address: Option<std::net::IpAddr>,
    pub(super) port: u16,
}

impl Endpoint {
    pub(super) fn is_socket(&self) -> bool {
        self.host.starts_with('/') && self.address.is_none()
    }

    /// Whether nothing that is sent there leaves this machine. Names aren't looked up, because their addresses
    /// may change.
    pub(super) fn is_local(&self) -> bool {
        let ip = self.address.or_else(|| self.host.parse().ok());
        match ip {
            Some(ip) => ip.to_canonical().is_loopback(),
            None => self.is_socket() || self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }
}

/// A value, and the name under which it was set.
struct Setting {
    value: String,
    label: String,
}

/// The parameters of a connection, including those that fill in missing parts of the address.
pub(super) struct Settings {
    values: BTreeMap<&'static str, Setting>,
    home: Option<PathBuf>,
}

impl Settings {
    /// Reads files, so it may block.
    pub(super) fn gather(address: &str, variables: &BTreeMap<String, OsString>) -> Result<Self, String> {
        let variable = |name: &str| -> Result<Option<String>, String> {
            match variables.get(name).filter(|value| !value.is_empty()) {
                None => Ok(None),
                Some(value) => value
                    .to_str()
                    .map(|value| Some(value.to_owned()))
                    .ok_or_else(|| format!("the variable {name} is not text")),
            }
        };
        let mut settings = Self {
            values: BTreeMap::new(),
            home: variable("HOME")?.map(PathBuf::from),
        };
        settings.put_all(text::parse(address)?, "")?;
        let service = match settings.take("service") {
            Some(service) => Some(service),
            None => variable("PGSERVICE")?,
        };
        if let Some(service) = service {
            let files = match variable("PGSERVICEFILE")? {
                Some(file) => vec![PathBuf::from(file)],
                None => [
                    settings.in_home(".pg_service.conf"),
                    variable("PGSYSCONFDIR")?
                        .map(|directory| PathBuf::from(directory).join("pg_service.conf")),
                ]
                .into_iter()
                .flatten()
                .collect(),
            };
            let origin = format!(" (of the service `{service}`)");
            settings.put_all(service::read(&service, &files)?, &origin)?;
        }
        for (name, variable_name, usage) in PARAMETERS {
            if let Some(variable_name) = variable_name
                && let Some(value) = variable(variable_name)?
            {
                settings.put(name, *usage, (*variable_name).to_owned(), value)?;
            }
        }
        Ok(settings)
    }

    /// Adds parameters that aren't set yet. If a name occurs twice in the list, the last one counts.
    fn put_all(&mut self, parameters: Vec<(String, String)>, origin: &str) -> Result<(), String> {
        for (given, value) in parameters.into_iter().rev() {
            let known = PARAMETERS.iter().find(|(name, _, _)| *name == given);
            let Some((name, _, usage)) = known else {
                return Err(unknown(&given, origin));
            };
            self.put(name, *usage, format!("{given}{origin}"), value)?;
        }
        Ok(())
    }

    fn put(&mut self, name: &'static str, usage: Use, label: String, value: String) -> Result<(), String> {
        match usage {
            Use::Refused => Err(format!("{label} is not supported; leave it out")),
            Use::Ignored => Ok(()),
            Use::Taken => {
                self.values.entry(name).or_insert(Setting { value, label });
                Ok(())
            }
        }
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(name).map(|setting| setting.value)
    }

    /// A parameter that isn't empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let setting = self.values.get(name)?;
        Some(setting.value.as_str()).filter(|value| !value.is_empty())
    }

    /// A parameter that is one of a few words.
    pub(super) fn choose<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == value) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                Err(format!(
                    "{} must be one of {}",
                    self.label(name),
                    words.join(", ")
                ))
            }
        }
    }

    /// A parameter under the name that the user will recognize.
    pub(super) fn label(&self, name: &str) -> String {
        self.values
            .get(name)
            .map_or_else(|| name.to_owned(), |setting| setting.label.clone())
    }

    /// A file in the user's home directory.
    pub(super) fn in_home(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(name))
    }

    /// The servers, in the order in which they are tried.
    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>, String> {
        let list = |name: &str| -> Vec<&str> {
            self.get(name)
                .map_or_else(Vec::new, |value| value.split(',').map(str::trim).collect())
        };
        let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
        let count = hosts.len().max(addresses.len());
        if count == 0 {
            return Err("it names no host; add one, or set PGHOST".to_owned());
        }
        if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
            return Err("host and hostaddr name different numbers of servers".to_owned());
        }
        if ports.len() > 1 && ports.len() != count {
            return Err("it names a number of ports that is not its number of hosts".to_owned());
        }
        (0..count)
            .map(|at| {
                let address = addresses.get(at).copied().unwrap_or_default();
                let host = hosts.get(at).copied().unwrap_or_default();
                let host = if host.is_empty() { address } else { host };
                if host.is_empty() {
                    return Err("one of its hosts is empty".to_owned());
                }
                let port = ports.get(at).or(ports.first()).copied().unwrap_or_default();
                Ok(Endpoint {
                    host: host.to_owned(),
                    address: match address {
                        "" => None,
                        written => Some(
                            written
                                .parse()
                                .map_err(|_| format!("{} is not an IP address", self.label("hostaddr")))?,
                        ),
                    },
                    port: match port {
                        "" => DEFAULT_PORT,
                        written => written
                            .parse()
                            .ok()
                            .filter(|port| *port != 0)
                            .ok_or_else(|| format!("{} is not a port", self.label("port")))?,
                    },
                })
            })
            .collect()
    }

    /// How long an attempt to connect may take, if it is limited.
    pub(super) fn connect_timeout(&self) -> Result<Option<Duration>, String> {
        let Some(written) = self.get("connect_timeout") else {
            return Ok(None);
        };
        let seconds: i64 = written
            .parse()
            .map_err(|_| format!("{} is not a number of seconds", self.label("connect_timeout")))?;
        // Zero and less mean no limit in libpq; here they mean the default.
        Ok(u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs))
    }

    /// The passwords for these servers, and why the password file wasn't used, if it exists but wasn't.
    pub(super) fn passwords(
        &self,
        endpoints: &[Endpoint],
        user: &str,
        database: &str,
    ) -> Result<(Vec<Option<String>>, Option<String>), String> {
        if let Some(password) = self.get("password") {
            return Ok((vec![Some(password.to_owned()); endpoints.len()], None));
        }
        let file = match self.get("passfile") {
            Some(path) => PasswordFile::read(Path::new(path))?,
            None => match self.in_home(".pgpass") {
                Some(path) => PasswordFile::read(&path)?,
                None => PasswordFile::default(),
            },
        };
        let found = endpoints.iter().map(|endpoint| {
            let login = Login {
                host: &endpoint.host,
                port: endpoint.port,
                database,
                user,
            };
            let of_socket = || {
                let host = "localhost";
                endpoint
                    .is_socket()
                    .then(|| file.password(Login { host, ..login }))?
            };
            file.password(login).or_else(of_socket)
        });
        Ok((found.collect(), file.ignored))
    }
}

/// The message about an unknown parameter. Its name is repeated only if it looks like one.
fn unknown(name: &str, origin: &str) -> String {
    let is_plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain {
        format!("it has a parameter that is not known: {name}{origin}")
    } else {
        format!("it has a parameter{origin} whose name is not a word")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(address: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
            .collect();
        Settings::gather(address, &variables)
    }

    #[test]
    fn the_address_counts_more_than_the_service_and_that_more_than_variables() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("services");
        std::fs::write(&file, "[work]\nhost=of-service\nuser=of-service\n").unwrap();
        let variables = [
            ("PGSERVICEFILE", file.to_str().unwrap()),
            ("PGSERVICE", "work"),
            ("PGHOST", "of-variable"),
            ("PGUSER", "of-variable"),
            ("PGDATABASE", "of-variable"),
            ("PGPORT", ""),
        ];
        let settings = gather(
            "postgres://of-address?sslmode=disable&sslmode=require",
            &variables,
        )
        .unwrap();
        let found = ["host", "user", "dbname", "port", "sslmode"].map(|name| settings.get(name));
        let expected = [
            Some("of-address"),
            Some("of-service"),
            Some("of-variable"),
            None,
            Some("require"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_understood_is_named_and_no_value_is_shown() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
        let cases: [Case<'_>; 9] = [
            ("postgres://db?foo=secret", &[], "not known: foo"),
            ("host=db foo=secret", &[], "not known: foo"),
            ("host=db sec\u{e9}ret=1", &[], "not a word"),
            ("postgres://db?sslcrl=secret", &[], "sslcrl is not supported"),
            (
                "postgres://db",
                &[("PGREQUIREAUTH", "secret")],
                "PGREQUIREAUTH is not supported",
            ),
            (
                "postgres://db?hostaddr=secret",
                &[],
                "hostaddr is not an IP address",
            ),
            ("postgres://db", &[("PGPORT", "secret")], "PGPORT is not a port"),
            ("postgres://a,b,c?port=1,2", &[], "number of ports"),
            (
                "postgres://db?service=absent",
                &[],
                "the service `absent` is not defined",
            ),
        ];
        for (address, variables, expected) in cases {
            let error = match gather(address, variables) {
                Ok(settings) => settings.endpoints().unwrap_err(),
                Err(error) => error,
            };
            assert!(error.contains(expected), "{address}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_what_stays_on_this_machine_is_local() {
        let cases = [
            ("postgres://localhost", true),
            ("postgres://a.localhost", true),
            ("postgres://127.3.2.1", true),
            ("postgres://[::1]", true),
            ("postgres://[::ffff:127.0.0.1]", true),
            ("host=/run/postgresql", true),
            ("host=db hostaddr=127.0.0.1", true),
            ("host=localhost hostaddr=10.0.0.1", false),
            ("postgres://localhost.example.com", false),
            ("postgres://0.0.0.0", false),
            ("postgres://db", false),
            ("postgres://10.0.0.1", false),
        ];
        for (address, expected) in cases {
            let endpoints = gather(address, &[]).unwrap().endpoints().unwrap();
            assert_eq!(endpoints[0].is_local(), expected, "{address}");
        }
    }
}
