//! A disposable Postgres server, for the tests and for the benchmark.
//!
//! It lives in a temporary directory, listens only on a socket there, and is removed on drop. Postgres refuses to run
//! as root, so for root it runs as another user.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::tools;

/// Tells the tests where the server is.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// Tells the benchmark where the server is.
const BENCH_URL_VARIABLE: &str = "TIDELOCK_BENCH_POSTGRES_URL";
/// Where Debian keeps Postgres, outside the PATH.
const DEBIAN_DIRECTORY: &str = "/usr/lib/postgresql";
/// Users that can run the server for root, the better one first.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];
const START_WITHIN: Duration = Duration::from_secs(30);
const STOP_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Nothing stored here outlives the run, so the server need not wait for the disk. Each test has some connections,
/// and many tests run in parallel.
const TEST_SETTINGS: &[&str] = &[
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=400",
];
/// The benchmark needs the default: data is on disk when it is acknowledged.
const BENCH_SETTINGS: &[&str] = &["listen_addresses="];

#[derive(Debug)]
pub(crate) struct Postgres {
    server: Child,
    /// Only we and the server's user can access it, so only we can connect.
    directory: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
struct Account {
    user: u32,
    group: u32,
}

/// A server for the tests. If the environment already names one, that is used; if none can be started, the tests that
/// need it report a skip.
pub(super) fn for_tests() -> Option<Postgres> {
    if std::env::var_os(URL_VARIABLE).is_some() {
        println!("postgres: the server that {URL_VARIABLE} names");
        return None;
    }
    match Postgres::start(TEST_SETTINGS) {
        Ok(server) => {
            println!("postgres: a server of our own in {}", server.directory.display());
            Some(server)
        }
        Err(error) => {
            println!("postgres: no server, so its tests are skipped: {error:#}");
            None
        }
    }
}

pub(crate) fn for_bench() -> Option<Postgres> {
    if std::env::var_os(BENCH_URL_VARIABLE).is_some() {
        return None;
    }
    let started = Postgres::start(BENCH_SETTINGS);
    started
        .inspect_err(|error| println!("postgres: no server, so nothing is measured on it: {error:#}"))
        .ok()
}

impl Postgres {
    pub(crate) fn tell_bench(&self, command: &mut Command) {
        command.env(BENCH_URL_VARIABLE, self.url());
    }

    pub(super) fn tell(&self, command: &mut Command) {
        command.env(URL_VARIABLE, self.url());
    }

    /// Starts a server and waits until it accepts connections.
    fn start(settings: &[&str]) -> Result<Self> {
        let programs = programs().context("Postgres is not here (Debian: apt-get install postgresql)")?;
        let directory = std::env::temp_dir().join(format!("tidelock-postgres-{}", std::process::id()));
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let started = start_in(&directory, &programs, settings);
        if started.is_err() {
            fs::remove_dir_all(&directory).ok();
        }
        started.map(|server| Self { server, directory })
    }

    fn url(&self) -> String {
        let host = self.directory.display().to_string().replace('/', "%2F");
        format!("postgres://tidelock@{host}/postgres")
    }
}

impl Drop for Postgres {
    /// Stops the server process, which ends all connections, and removes its data.
    fn drop(&mut self) {
        let process = self.server.id().to_string();
        let asked = Command::new("kill").args(["-INT", &process]).status();
        let started = Instant::now();
        let has_ended = |server: &mut Child| matches!(server.try_wait(), Ok(Some(_)) | Err(_));
        while asked.is_ok() && !has_ended(&mut self.server) && started.elapsed() < STOP_WITHIN {
            sleep(LOOK_EVERY);
        }
        // If it has already ended, this does nothing.
        self.server.kill().ok();
        self.server.wait().ok();
        fs::remove_dir_all(&self.directory).ok();
    }
}

pub(super) fn directories() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN_DIRECTORY)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|(_, directory)| directory)
        .collect()
}

fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(directories())
        .find(|directory| {
            ["initdb", "postgres"]
                .iter()
                .all(|name| tools::is_on_path(name, [directory].into_iter()))
        })
}

fn start_in(directory: &Path, programs: &Path, settings: &[&str]) -> Result<Child> {
    let account = account_for(directory)?;
    if let Some(account) = &account {
        chown(directory, Some(account.user), Some(account.group))?;
    }
    let data = directory.join("data");
    let mut initialise = command(&programs.join("initdb"), directory, account.as_ref());
    initialise.arg("--pgdata").arg(&data).args([
        "--username=tidelock",
        "--auth=trust",
        "--encoding=UTF8",
        "--no-locale",
        "--no-sync",
    ]);
    let made = initialise.output().context("cannot run initdb")?;
    if !made.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr).trim());
    }
    let log_path = directory.join("log");
    let log = File::create(&log_path)?;
    let mut serve = command(&programs.join("postgres"), directory, account.as_ref());
    serve.arg("-D").arg(&data).arg("-k").arg(directory);
    for setting in settings {
        serve.args(["-c", setting]);
    }
    let mut server = serve
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot run postgres")?;
    let ready = wait_until_ready(&mut server, directory);
    if let Err(error) = ready {
        server.kill().ok();
        server.wait().ok();
        let said = fs::read_to_string(&log_path).unwrap_or_default();
        return Err(error.context(format!("the server said: {}", said.trim())));
    }
    Ok(server)
}

/// A command that runs as that user, ends with us if that is possible, and reads nothing from our terminal.
fn command(program: &Path, directory: &Path, account: Option<&Account>) -> Command {
    let mut command = if tools::is_present("setpriv") {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    if let Some(account) = account {
        command.uid(account.user).gid(account.group);
    }
    command
        .current_dir(directory)
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

/// The file appears when the server is ready, with that word in its last line.
fn wait_until_ready(server: &mut Child, directory: &Path) -> Result<()> {
    let started = Instant::now();
    let state = directory.join("data/postmaster.pid");
    loop {
        if let Some(status) = server.try_wait()? {
            bail!("the server ended with {status} before it was ready");
        }
        let said = fs::read_to_string(&state).unwrap_or_default();
        if said.lines().last().is_some_and(|line| line.trim() == "ready") {
            return Ok(());
        }
        if started.elapsed() > START_WITHIN {
            bail!("the server was not ready within {} s", START_WITHIN.as_secs());
        }
        sleep(LOOK_EVERY);
    }
}

/// The user that runs the server: ourselves, unless we are root. The owner of a directory that we created tells who
/// we are.
fn account_for(directory: &Path) -> Result<Option<Account>> {
    if fs::metadata(directory)?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").context("cannot list the users")?;
    let account = ACCOUNTS.iter().find_map(|name| account(&users, name));
    account.map(Some).with_context(|| {
        format!(
            "Postgres does not run as root, and there is no user {}",
            ACCOUNTS.join(" or ")
        )
    })
}

fn account(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let (_password, user, group) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Account {
            user: user.parse().ok()?,
            group: group.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_name() {
        let users = "postgres2:x:9:9::/:/bin/sh\npostgres:x:101:104:,,,:/var:/bin/bash\nlast:x:7:7::/:\n";
        let expected = Account {
            user: 101,
            group: 104,
        };
        assert_eq!(account(users, "postgres"), Some(expected));
        assert_eq!(account(users, "nobody"), None);
    }

    #[test]
    fn a_server_takes_connections_and_leaves_nothing_behind() {
        if programs().is_none() {
            println!("SKIPPED: Postgres is not here");
            if let Some(report) = std::env::var_os(super::super::skips::REPORT_VARIABLE) {
                let report = fs::OpenOptions::new().append(true).create(true).open(report);
                std::io::Write::write_all(&mut report.unwrap(), b"SKIPPED: Postgres is not here\n").unwrap();
            }
            return;
        }
        let server = Postgres::start(TEST_SETTINGS).unwrap();
        let (process, directory) = (server.server.id(), server.directory.clone());
        let socket = directory.join(".s.PGSQL.5432");
        std::os::unix::net::UnixStream::connect(socket).unwrap();
        assert!(
            server.url().starts_with("postgres://tidelock@%2F"),
            "{}",
            server.url()
        );
        drop(server);
        assert!(!directory.exists());
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}
