//! A Postgres server of a test's own, with its own certificates and rules for who may connect.
//!
//! It lives in a temporary directory and is gone with its value. Postgres does not run as root; for root it runs as
//! another user.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// The user and the password of every such server. The database is `postgres`.
pub(crate) const USER: &str = "tidelock";
pub(crate) const PASSWORD: &str = "very:secret";

/// Where Debian keeps Postgres, outside the PATH.
const DEBIAN_DIRECTORY: &str = "/usr/lib/postgresql";
/// Users that may run the server for root, the better one first.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];
const WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Somebody who signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(parameters, key),
            certificate,
        }
    }

    /// A certificate for these names, and its key.
    pub(crate) fn sign(&self, common_name: &str, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// What a server is to be like.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    /// The lines of `pg_hba.conf`.
    pub(crate) rules: &'a str,
    /// Certificate and key; without them it does not encrypt.
    pub(crate) certificate: Option<(String, String)>,
    /// Whose client certificates it takes.
    pub(crate) trusts: Option<&'a Authority>,
    /// Further lines of `postgresql.conf`.
    pub(crate) settings: &'a [&'a str],
}

pub(crate) struct TestServer {
    pub(crate) server: Option<Child>,
    pub(crate) directory: TempDir,
    pub(crate) programs: PathBuf,
    pub(crate) port: u16,
}

impl TestServer {
    /// `None` if Postgres is not installed.
    pub(crate) fn start(setup: &Setup<'_>) -> Option<Self> {
        let programs = programs()?;
        let directory = tempfile::tempdir().unwrap();
        own(directory.path());
        let path = |name: &str| directory.path().join(name);
        write(&path("password"), PASSWORD);
        let made = command(&programs.join("initdb"), directory.path())
            .args([
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
                "--auth=scram-sha-256",
            ])
            .args(["-U", USER, "--pwfile"])
            .arg(path("password"))
            .arg("-D")
            .arg(path("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        write(&path("data/pg_hba.conf"), setup.rules);
        let port = free_port();
        let mut server = Self {
            server: None,
            programs,
            port,
            directory,
        };
        server.configure(setup);
        server.serve();
        Some(server)
    }

    fn configure(&self, setup: &Setup<'_>) {
        let path = |name: &str| self.directory.path().join(name);
        let mut lines = vec![
            format!("port = {}", self.port),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{}'", self.directory.path().display()),
            "fsync = off".to_owned(),
        ];
        lines.extend(setup.settings.iter().map(|line| (*line).to_owned()));
        if let Some((certificate, key)) = &setup.certificate {
            write(&path("data/server.crt"), certificate);
            write(&path("data/server.key"), key);
            lines.push("ssl = on".to_owned());
        }
        if let Some(authority) = setup.trusts {
            write(&path("data/clients.crt"), &authority.certificate);
            lines.push("ssl_ca_file = 'clients.crt'".to_owned());
        }
        write(&path("data/postgresql.auto.conf"), &(lines.join("\n") + "\n"));
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) fn serve(&mut self) {
        let log = File::create(self.directory.path().join("log")).unwrap();
        let mut server = command(&self.programs.join("postgres"), self.directory.path())
            .arg("-D")
            .arg(self.directory.path().join("data"))
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let started = Instant::now();
        let state = self.directory.path().join("data/postmaster.pid");
        // The last line of that file says how far it is.
        while !fs::read_to_string(&state).is_ok_and(|text| text.trim_end().ends_with("ready")) {
            let ended = server.try_wait().unwrap();
            let said = || fs::read_to_string(self.directory.path().join("log")).unwrap();
            assert!(ended.is_none(), "the server ended: {}", said());
            assert!(started.elapsed() < WITHIN, "the server is not ready: {}", said());
            sleep(LOOK_EVERY);
        }
        self.server = Some(server);
    }

    /// Stops the server at once. What was acknowledged is on its disk.
    pub(crate) fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let asked = Command::new("kill")
                .args(["-QUIT", &server.id().to_string()])
                .status();
            assert!(asked.unwrap().success());
            server.wait().unwrap();
        }
    }

    /// Writes a file that nobody else can read.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A file that the server can read and nobody else.
pub(crate) fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    own(path);
}

/// Gives a file to the user that runs the server.
pub(crate) fn own(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Where the programs are: the newest that Debian has, or those on the PATH.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir(DEBIAN_DIRECTORY).into_iter().flatten().flatten();
    let mut versions: Vec<_> = debian
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let mut directories = versions
        .into_iter()
        .rev()
        .map(|(_, directory)| directory)
        .chain(std::env::split_paths(&path));
    directories.find(|directory| directory.join("initdb").is_file() && directory.join("postgres").is_file())
}

/// A command that ends with us, as a user that may run a server.
pub(crate) fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "INT"])
        .arg(program)
        .current_dir(directory)
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

/// Who is to run the server: ourselves, unless we are root.
fn account() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    ACCOUNTS.iter().find_map(|name| {
        let mut fields = users
            .lines()
            .map(|line| line.split(':'))
            .find_map(|mut fields| (fields.next() == Some(*name)).then_some(fields))?;
        let _password = fields.next();
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}
