//! What a daemon refuses to start with, and what it makes do with.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use daemon::{BindError, Daemon, Database, DatabaseUrl, Listen, Options, StartError, TokenError, WhenTaken};
use eventlog::{Log, SqliteOptions};
use kernel::{Cause, SystemClock};

use crate::running::options;

/// Why a daemon with these options does not start.
async fn refusal(options: Options) -> StartError {
    match Daemon::start(options, SystemClock::shared()).await {
        Ok(daemon) => panic!("it started: {daemon:?}"),
        Err(error) => {
            assert!(!error.advice().is_empty());
            error
        }
    }
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_token_chosen_on_purpose() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(&directory);
        options.listen.address = address.parse().unwrap();
        let error = refusal(options).await;
        assert!(
            matches!(error, StartError::Bind(BindError::NotLoopback { .. })),
            "{error}"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    options.listen.address = "0.0.0.0:0".parse().unwrap();
    options.token_file = Some(directory.path().join("chosen"));
    let daemon = Daemon::start(options, SystemClock::shared()).await.unwrap();
    assert!(daemon.address().ip().is_unspecified());
    assert!(directory.path().join("chosen").exists());
}

#[tokio::test]
async fn a_taken_address_is_an_error_or_leads_to_another_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = taken.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let with = |when_taken| Options {
        listen: Listen { address, when_taken },
        ..options(&directory)
    };
    let error = refusal(with(WhenTaken::Fail)).await;
    assert!(
        matches!(error, StartError::Bind(BindError::Tcp { .. })),
        "{error}"
    );
    let daemon = Daemon::start(with(WhenTaken::AnyFreePort), SystemClock::shared())
        .await
        .unwrap();
    assert_eq!(daemon.address().ip(), address.ip());
    assert_ne!(daemon.address().port(), address.port());
}

#[tokio::test]
async fn a_token_that_others_may_know_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(&directory);
    options.home.prepare().unwrap();
    let path = options.home.token_file();
    fs::write(&path, "x".repeat(64)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = refusal(options).await;
    assert!(
        matches!(error, StartError::Token(TokenError::TooOpen { mode: 0o644, .. })),
        "{error}"
    );
    assert!(error.advice().contains("remove"), "{}", error.advice());
}

#[tokio::test]
async fn a_leftover_socket_is_replaced_and_anything_else_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(&directory);
    options.home.prepare().unwrap();
    drop(UnixListener::bind(options.home.socket()).unwrap());
    drop(UnixListener::bind(options.home.runtime.join("tidelock.new")).unwrap());
    let daemon = Daemon::start(options.clone(), SystemClock::shared())
        .await
        .unwrap();
    daemon
        .shutdown_handle()
        .stop(Cause::new("the test", "it is over"));
    daemon.wait().await;

    fs::write(options.home.socket(), "precious").unwrap();
    let error = refusal(options.clone()).await;
    assert!(
        matches!(error, StartError::Bind(BindError::InTheWay { .. })),
        "{error}"
    );
    assert_eq!(fs::read_to_string(options.home.socket()).unwrap(), "precious");
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    options.breaker.failure_threshold = 0;
    assert!(matches!(refusal(options).await, StartError::Breakers(_)));
}

#[tokio::test]
async fn a_log_that_cannot_be_used_is_refused_with_a_code_and_advice() {
    /// Where the file header has the number of the schema.
    const SCHEMA_AT: u64 = 60;
    type Spoil = fn(&Path) -> Option<Log>;
    let make = |path: &Path| {
        let options = SqliteOptions {
            path: path.to_owned(),
        };
        Log::open_sqlite(&options, SystemClock::shared()).unwrap()
    };
    let cases: [(&str, &str, Spoil); 4] = [
        ("log_newer", "use the newer Tidelock", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(&9999_u32.to_be_bytes(), SCHEMA_AT).unwrap();
            None
        }),
        ("log_damaged", "put a backup in its place", |path| {
            fs::write(path, "not a database at all, by far".repeat(100)).unwrap();
            None
        }),
        ("log_unwritable", "make sure that you can write", |path| {
            fs::remove_file(path).unwrap();
            symlink("/nowhere/at/all", path).unwrap();
            None
        }),
        ("log_taken", "end the process that has it", |path| {
            let options = SqliteOptions {
                path: path.to_owned(),
            };
            Some(Log::open_sqlite(&options, SystemClock::shared()).unwrap())
        }),
    ];
    for (code, advice, spoil) in cases {
        let directory = tempfile::tempdir().unwrap();
        let options = options(&directory);
        options.home.prepare().unwrap();
        let path = options.home.log_database();
        drop(make(&path));
        let held = spoil(&path);
        let before = fs::read(&path).unwrap_or_default();
        let error = refusal(options).await;
        let StartError::Log(found) = &error else {
            panic!("{code}: {error:?}");
        };
        assert_eq!(found.code(), code, "{error:?}");
        assert!(error.advice().contains(advice), "{}", error.advice());
        assert!(
            fs::read(&path).unwrap_or_default() == before,
            "{code}: it was touched"
        );
        if code == "log_taken" {
            let ours = format!("process {}", std::process::id());
            assert!(error.to_string().contains(&ours), "{error}");
        }
        drop(held);
    }
}

#[tokio::test]
async fn the_address_of_a_database_is_never_shown() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    // Port 9 is that of `discard`, which nobody offers any more.
    let url = "postgres://somebody:secret-word@127.0.0.1:9/nothing?connect_timeout=2";
    options.database = Database::Postgres(DatabaseUrl::new(url.to_owned()));
    let shown = format!("{options:?}");
    let error = refusal(options).await;
    let StartError::Log(found) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(found.code(), "database_unreachable");
    let told = format!("{shown} {error} {error:?} {}", error.advice());
    assert!(!told.contains("secret-word"), "{told}");
    assert!(told.contains("TIDELOCK_DATABASE_URL"), "{told}");
}
