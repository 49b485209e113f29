//! Several servers: the one that can be written has the log, also after another one has taken over.

use std::time::Duration;

use eventlog::{Commit, Log, PostgresOptions, Version};
use tokio_postgres::NoTls;

use crate::{
    postgres_database::skip,
    postgres_server::{self, Setup, TestServer, USER, command, free_port, own},
    support::{contents, write},
};

const WITHIN: Duration = Duration::from_secs(30);

/// How the first server stops being the one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Loss {
    Killed,
    /// It stays, and takes no writes any more.
    Demoted,
}

impl TestServer {
    /// Another server that follows this one.
    fn standby(&self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        own(directory.path());
        let copied = command(&self.programs.join("pg_basebackup"), directory.path())
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", USER])
            .args([
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
                "-D",
                "data",
            ])
            .output()
            .unwrap();
        assert!(
            copied.status.success(),
            "{}",
            String::from_utf8_lossy(&copied.stderr)
        );
        let mut standby = Self {
            server: None,
            programs: self.programs.clone(),
            port: free_port(),
            directory,
        };
        let path = standby.directory.path().display().to_string();
        standby.append_settings(&[
            &format!("port = {}", standby.port),
            &format!("unix_socket_directories = '{path}'"),
        ]);
        standby.serve();
        standby
    }

    /// Adds lines to the settings. A server that runs reads them when it is told to.
    fn append_settings(&self, lines: &[&str]) {
        let file = self.directory.path().join("data/postgresql.auto.conf");
        let text = std::fs::read_to_string(&file).unwrap();
        postgres_server::write(&file, &format!("{text}\n{}\n", lines.join("\n")));
    }
}

/// Asks a server something, and answers the first column of the first row.
async fn ask(server: &TestServer, sql: &str) -> String {
    let address = format!("postgres://{USER}@127.0.0.1:{}/postgres", server.port);
    let (client, driver) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    let (answer, _) = tokio::join!(
        async {
            let answer = client.simple_query(sql).await.unwrap();
            drop(client);
            answer
        },
        driver
    );
    answer
        .into_iter()
        .find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .unwrap_or_default()
}

async fn until(server: &TestServer, sql: &str, expected: &str) {
    let looking = async {
        while ask(server, sql).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(WITHIN, looking).await;
    assert!(found.is_ok(), "{sql} is not {expected}");
}

async fn append(log: &Log, expected: Version, text: &str) -> Version {
    let commit = Commit::one(write("s", expected, "new", &[text]));
    log.commit(commit).await.unwrap()[0].version
}

async fn check(loss: Loss) {
    let setup = Setup {
        rules: "host all all all trust\nhost replication all all trust\n",
        ..Setup::default()
    };
    let Some(mut primary) = TestServer::start(&setup) else {
        return skip("Postgres is not installed");
    };
    let standby = primary.standby();
    // A commit is acknowledged when the standby has it too.
    primary.append_settings(&["synchronous_standby_names = '*'"]);
    ask(&primary, "SELECT pg_reload_conf()").await;
    until(&primary, "SELECT sync_state FROM pg_stat_replication", "sync").await;
    let url = format!(
        "postgres://{USER}@127.0.0.1:{},127.0.0.1:{}/postgres",
        standby.port, primary.port
    );
    let log = Log::open_postgres(&PostgresOptions::new(url)).await.unwrap();
    let place = &log.server().unwrap().place;
    assert!(place.ends_with(&primary.port.to_string()), "{place}");
    let mut version = Version::NONE;
    let mut expected = Vec::new();
    for number in 1..=20 {
        let text = format!("before {number}");
        version = append(&log, version, &text).await;
        expected.push((number, text));
    }
    match loss {
        Loss::Killed => primary.stop(),
        Loss::Demoted => {
            primary.append_settings(&["default_transaction_read_only = on"]);
            ask(&primary, "SELECT pg_reload_conf()").await;
            until(&primary, "SHOW transaction_read_only", "on").await;
        }
    }
    ask(&standby, "SELECT pg_promote()").await;
    until(&standby, "SHOW transaction_read_only", "off").await;
    append(&log, version, "after").await;
    expected.push((21, "after".to_owned()));
    assert_eq!(contents(&log, "s").await, expected);
    assert_eq!(
        ask(&standby, "SELECT count(*) FROM tidelock_log.events").await,
        "21"
    );
}

#[tokio::test]
async fn a_standby_that_takes_over_from_a_server_that_died_has_every_acknowledged_commit() {
    check(Loss::Killed).await;
}

#[tokio::test]
async fn a_server_that_takes_no_writes_any_more_is_left_for_the_one_that_does() {
    check(Loss::Demoted).await;
}
