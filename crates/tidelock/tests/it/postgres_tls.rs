//! Daemons on a Postgres that only takes encrypted connections, set up with the usual variables and a password file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Outcome, World, finish};
use crate::postgres_server::{Authority, PASSWORD, Setup, TestServer, USER};
use crate::tools::skip;

/// The rules of a server that takes nothing else.
const ENCRYPTED_ONLY: &str = "hostssl all all all scram-sha-256\n";

/// A machine with these variables, and a password file in its home directory.
struct Machine {
    world: World,
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    fn new(server: &TestServer, variables: &[(&'static str, &str)]) -> Self {
        let world = World::new();
        let file = world.path().join(".pgpass");
        let password = PASSWORD.replace(':', "\\:");
        fs::write(&file, format!("*:{}:*:{USER}:{password}\n", server.port)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let home = world.path().display().to_string();
        let common = [
            ("HOME", home),
            ("TIDELOCK_DATABASE_URL", "postgres://".to_owned()),
            ("PGHOST", "localhost".to_owned()),
            ("PGPORT", server.port.to_string()),
            ("PGUSER", USER.to_owned()),
            ("PGDATABASE", "postgres".to_owned()),
        ];
        let more = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Self {
            world,
            variables: common.into_iter().chain(more).collect(),
        }
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.world.command(arguments);
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        let outcome = finish(command);
        let log = fs::read_to_string(self.world.home().log_file()).unwrap_or_default();
        for told in [&outcome.stdout, &outcome.stderr, &log] {
            assert!(!told.contains(PASSWORD), "{told}");
        }
        outcome
    }

    fn refused(&self, parts: &[&str]) {
        let refused = self.run(&["up", "--json"]).expect(3).json();
        let error = &refused["error"];
        assert_eq!(error["code"], "database_refused", "{error}");
        let said = error["message"].as_str().unwrap();
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn two_machines_share_a_server_that_only_takes_encrypted_connections() {
    let authority = Authority::new("ours");
    let setup = Setup {
        rules: ENCRYPTED_ONLY,
        certificate: Some(authority.sign("db", &["localhost"])),
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip("Postgres is not installed");
    };
    let root = server.file("root.crt", &authority.certificate);
    let variables = [
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", root.as_str()),
        ("PGCHANNELBINDING", "require"),
    ];
    let (one, other) = (
        Machine::new(&server, &variables),
        Machine::new(&server, &variables),
    );
    one.run(&["up"]).expect(0);
    other.run(&["up"]).expect(0);
    let job = one
        .run(&["job", "run", "--json", "--shell", "echo hello"])
        .expect(0)
        .json();
    let id = job["id"].as_str().unwrap();
    let seen = other.run(&["job", "logs", "-f", id]).expect(0).stdout;
    assert!(seen.contains("hello"), "{seen}");
    let doctor = other.run(&["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap();
    let database = checks.iter().find(|check| check["id"] == "database").unwrap();
    let detail = database["detail"].as_str().unwrap();
    assert!(detail.contains("encrypted with TLS 1.3"), "{detail}");
    assert!(
        detail.contains(&format!("postgres at localhost:{}", server.port)),
        "{detail}"
    );
}

#[test]
fn a_server_that_cannot_prove_who_it_is_is_refused_with_the_reason() {
    let (authority, other) = (Authority::new("ours"), Authority::new("another"));
    let setup = Setup {
        rules: ENCRYPTED_ONLY,
        certificate: Some(authority.sign("db", &["db.test"])),
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip("Postgres is not installed");
    };
    let root = server.file("root.crt", &authority.certificate);
    let wrong = server.file("wrong.crt", &other.certificate);
    Machine::new(
        &server,
        &[("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", &wrong)],
    )
    .refused(&["is not trusted", "wrong.crt"]);
    Machine::new(&server, &[("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", &root)])
        .refused(&["is for another name", "db.test"]);
}

#[test]
fn a_server_without_encryption_is_refused_unless_it_is_local_or_that_is_asked_for() {
    let setup = Setup {
        rules: "host all all all scram-sha-256\n",
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip("Postgres is not installed");
    };
    Machine::new(&server, &[("PGSSLMODE", "require")]).refused(&["does not support TLS", "sslmode=disable"]);
    // The server answers there, and nobody can tell that this is not another machine.
    Machine::new(&server, &[("PGHOST", "0.0.0.0")]).refused(&[
        "is not on this machine",
        "sslmode=require",
        "sslmode=disable",
    ]);
    let asked = Machine::new(&server, &[("PGHOST", "0.0.0.0"), ("PGSSLMODE", "disable")]);
    asked.run(&["up"]).expect(0);
    let doctor = asked.run(&["doctor", "--json"]).stdout;
    assert!(doctor.contains("not encrypted"), "{doctor}");
}
