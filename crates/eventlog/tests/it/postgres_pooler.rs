//! A pooler in front of the server: one that leaves a connection its session is fine, any other is refused.

use std::{
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Child,
    thread::sleep,
    time::{Duration, Instant},
};

use eventlog::{Commit, Log, OpenError, PostgresOptions, Sequence, Version};
use kernel::CancellationToken;
use tokio_postgres::NoTls;

use crate::{
    postgres::next,
    postgres_database::skip,
    postgres_server::{self, Setup, TestServer, USER, command, free_port},
    support::{stream, write},
};

const WITHIN: Duration = Duration::from_secs(20);

/// A running pgbouncer, gone with its value.
struct Pooler {
    process: Child,
    port: u16,
}

impl Pooler {
    fn start(program: &Path, server: &TestServer, settings: &str) -> Self {
        let port = free_port();
        let directory = PathBuf::from(server.file("unused", ""));
        let directory = directory.parent().unwrap();
        let file = directory.join("pgbouncer.ini");
        let content = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user={USER}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\nunix_socket_dir =\n{settings}\n",
            server.port
        );
        postgres_server::write(&file, &content);
        let process = command(program, directory).arg("-q").arg(&file).spawn().unwrap();
        let pooler = Self { process, port };
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(started.elapsed() < WITHIN, "pgbouncer does not listen");
            sleep(Duration::from_millis(20));
        }
        pooler
    }

    fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    async fn open(&self) -> Result<Log, OpenError> {
        Log::open_postgres(&PostgresOptions::new(self.url())).await
    }

    /// Leaves it with several sessions that nobody uses.
    async fn warm(&self) {
        let mut clients = Vec::new();
        for _ in 0..4 {
            let (client, driver) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
            clients.push((client, tokio::spawn(driver)));
        }
        for sql in ["BEGIN", "COMMIT"] {
            for (client, _) in &clients {
                client.batch_execute(sql).await.unwrap();
            }
        }
        for (client, driver) in clients {
            drop(client);
            driver.await.unwrap().unwrap();
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn pgbouncer() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Where Debian has it, which is not on the PATH of every user.
        .chain([PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
}

#[tokio::test]
async fn a_pooler_works_if_it_leaves_a_connection_its_session_and_is_refused_if_not() {
    let Some(program) = pgbouncer() else {
        return skip("pgbouncer is not installed");
    };
    let setup = Setup {
        rules: "host all all all trust\n",
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip("Postgres is not installed");
    };
    for (more, warm) in [
        ("default_pool_size = 1", false),
        ("default_pool_size = 2", false),
        ("default_pool_size = 9", true),
        ("server_round_robin = 1", false),
        // Here the two connections never meet in one session.
        ("server_round_robin = 1", true),
        ("server_reset_query_always = 1", false),
    ] {
        let pooler = Pooler::start(&program, &server, &format!("pool_mode = transaction\n{more}"));
        if warm {
            pooler.warm().await;
        }
        // Again, when there are sessions that somebody has used.
        for _ in 0..3 {
            let error = pooler.open().await.unwrap_err();
            let said = error.to_string();
            assert!(matches!(error, OpenError::Refused { .. }), "{more}: {error:?}");
            assert!(said.contains("pool_mode = session"), "{more}: {said}");
        }
    }
    let pooler = Pooler::start(&program, &server, "pool_mode = session");
    let log = pooler.open().await.unwrap();
    let elsewhere = pooler.open().await.unwrap();
    let token = CancellationToken::new();
    let mut tail = elsewhere.tail(&stream("s"), Sequence::START, &token.scope());
    let commit = Commit::one(write("s", Version::NONE, "new", &["hello"]));
    log.commit(commit).await.unwrap();
    assert_eq!(next(&mut tail).await, 1);
}
