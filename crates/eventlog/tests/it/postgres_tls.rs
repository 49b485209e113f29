//! Connections that are encrypted, or refused with a reason.

use std::collections::BTreeMap;

use eventlog::{Log, PostgresOptions};

use crate::{
    postgres_database::skip,
    postgres_server::{Authority, PASSWORD, Setup, TestServer, USER},
};

/// How a connection is to be encrypted, or what is to be said when there is none.
type Expected = Result<Option<&'static str>, &'static [&'static str]>;

const NOT_INSTALLED: &str = "Postgres is not installed";

/// Opens a log with these parameters and variables, and says how the connection is encrypted or what went wrong.
async fn open(address: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
    let options = PostgresOptions {
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect::<BTreeMap<_, _>>(),
        ..PostgresOptions::new(address)
    };
    let opened = Log::open_postgres(&options).await;
    let said = format!("{options:?} {opened:?}");
    assert!(!said.contains(PASSWORD), "{said}");
    match opened {
        Ok(log) => Ok(log.server().unwrap().encryption.clone()),
        Err(error) => {
            let mut said = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                said = format!("{said}: {cause}");
                source = cause.source();
            }
            assert!(!said.contains(PASSWORD), "{said}");
            Err(said)
        }
    }
}

fn directory(file: &str) -> String {
    let directory = std::path::Path::new(file).parent().unwrap();
    directory.display().to_string()
}

fn check(case: &str, found: Result<Option<String>, String>, expected: Expected) {
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected, "{case}"),
        (Err(said), Err(parts)) => {
            for part in parts {
                assert!(said.contains(part), "{case}: {said}");
            }
        }
        (found, _) => panic!("{case}: {found:?}"),
    }
}

#[tokio::test]
async fn a_server_that_only_takes_encrypted_connections_is_used_as_asked_or_not_at_all() {
    let (authority, other) = (Authority::new("ours"), Authority::new("another"));
    let setup = Setup {
        rules: "hostssl template1 all all cert\nhostssl all all all scram-sha-256\n",
        certificate: Some(authority.sign("db", &["localhost", "db.test"])),
        trusts: Some(&authority),
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip(NOT_INSTALLED);
    };
    let port = server.port;
    let root = server.file("root.crt", &authority.certificate);
    let wrong = server.file("wrong.crt", &other.certificate);
    let (certificate, key) = authority.sign(USER, &[]);
    let (certificate, key) = (server.file("me.crt", &certificate), server.file("me.key", &key));
    let localhost = "host=localhost hostaddr=127.0.0.1";
    let cases: Vec<(String, Expected)> = vec![
        (format!("{localhost} sslmode=disable"), Err(&["no encryption"])),
        (localhost.to_owned(), Ok(Some("TLS 1.3"))),
        (format!("{localhost} sslmode=allow"), Ok(Some("TLS 1.3"))),
        (format!("{localhost} sslmode=require"), Ok(Some("TLS 1.3"))),
        (
            format!("{localhost} channel_binding=require"),
            Ok(Some("TLS 1.3")),
        ),
        (
            format!("{localhost} channel_binding=disable"),
            Ok(Some("TLS 1.3")),
        ),
        // Another machine, as far as anybody can tell.
        ("host=0.0.0.0".to_owned(), Ok(Some("TLS 1.3"))),
        (
            format!("{localhost} sslmode=verify-full sslrootcert={root}"),
            Ok(Some("TLS 1.3")),
        ),
        (
            format!("{localhost} sslmode=require sslrootcert={wrong}"),
            Err(&["is not trusted", "wrong.crt", "sslrootcert"]),
        ),
        (
            format!("{localhost} sslmode=verify-ca sslrootcert={wrong}"),
            Err(&["is not trusted", "wrong.crt", "sslrootcert"]),
        ),
        (
            format!("{localhost} sslrootcert=system"),
            Err(&[
                "is not trusted",
                "any authority this system trusts",
                "sslrootcert",
            ]),
        ),
        (
            format!("host=other.test hostaddr=127.0.0.1 sslmode=verify-ca sslrootcert={root}"),
            Ok(Some("TLS 1.3")),
        ),
        (
            format!("host=other.test hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={root}"),
            Err(&["is for another name", "other.test", "db.test"]),
        ),
        (
            format!("host=127.0.0.1 sslmode=verify-full sslrootcert={root}"),
            Err(&["is for another name", "127.0.0.1"]),
        ),
        (
            format!("{localhost} dbname=template1 sslcert={certificate} sslkey={key}"),
            Ok(Some("TLS 1.3")),
        ),
        (
            format!("{localhost} dbname=template1"),
            Err(&["requires a valid client certificate"]),
        ),
        (
            format!("{localhost} sslcert={certificate}"),
            Err(&["sslcert is there without sslkey"]),
        ),
    ];
    for (parameters, expected) in cases {
        let address = format!("dbname=postgres port={port} user={USER} password={PASSWORD} {parameters}");
        check(&parameters, open(&address, &[]).await, expected);
    }
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let address = format!("port={port} {localhost} sslcert={certificate} sslkey={key}");
    check(
        "a key for all",
        open(&address, &[]).await,
        Err(&["me.key", "chmod 600"]),
    );
}

#[tokio::test]
async fn a_certificate_that_is_its_own_authority_is_trusted_if_it_was_named() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let own = parameters.self_signed(&key).unwrap().pem();
    let setup = Setup {
        rules: "hostssl all all all scram-sha-256\n",
        certificate: Some((own.clone(), key.serialize_pem())),
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip(NOT_INSTALLED);
    };
    let root = server.file("root.crt", &own);
    let address = |host: &str| {
        format!(
            "host={host} hostaddr=127.0.0.1 port={} user={USER} password={PASSWORD} dbname=postgres \
             sslmode=verify-full sslrootcert={root}",
            server.port
        )
    };
    check(
        "its name",
        open(&address("localhost"), &[]).await,
        Ok(Some("TLS 1.3")),
    );
    check(
        "another name",
        open(&address("db.test"), &[]).await,
        Err(&["is for another name"]),
    );
}

#[tokio::test]
async fn a_server_that_cannot_encrypt_is_used_on_this_machine_or_when_that_is_said() {
    let setup = Setup {
        rules: "host all all all scram-sha-256\nlocal all all scram-sha-256\n",
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip(NOT_INSTALLED);
    };
    let cases: [(&str, Expected); 7] = [
        ("host=localhost hostaddr=127.0.0.1", Ok(None)),
        ("host=127.0.0.1 sslmode=prefer", Ok(None)),
        (
            "host=127.0.0.1 sslmode=require",
            Err(&["does not support TLS", "sslmode=disable"]),
        ),
        (
            "host=0.0.0.0",
            Err(&["not on this machine", "sslmode=require", "sslmode=disable"]),
        ),
        ("host=0.0.0.0 sslmode=allow", Err(&["not on this machine"])),
        ("host=0.0.0.0 sslmode=disable", Ok(None)),
        (
            "host=127.0.0.1 channel_binding=require",
            Err(&["channel binding"]),
        ),
    ];
    let common = format!("port={} user={USER} dbname=postgres", server.port);
    for (parameters, expected) in cases {
        let address = format!("{common} password={PASSWORD} {parameters}");
        check(parameters, open(&address, &[]).await, expected);
    }
    // Nobody encrypts what stays in a socket.
    let socket = format!(
        "{common} password={PASSWORD} sslmode=require host={}",
        directory(&server.file("unused", ""))
    );
    check("a socket", open(&socket, &[]).await, Ok(None));
}

#[tokio::test]
async fn what_the_address_leaves_out_comes_from_variables_and_files() {
    let authority = Authority::new("ours");
    let setup = Setup {
        rules: "hostssl all all all scram-sha-256\n",
        certificate: Some(authority.sign("db", &["localhost"])),
        ..Setup::default()
    };
    let Some(server) = TestServer::start(&setup) else {
        return skip(NOT_INSTALLED);
    };
    let port = server.port.to_string();
    let root = server.file("root.crt", &authority.certificate);
    let home = directory(&root);
    let escaped = PASSWORD.replace(':', "\\:");
    let passwords = server.file(
        ".pgpass",
        &format!("localhost:{port}:postgres:{USER}:{escaped}\n"),
    );
    let services = server.file(
        "services",
        &format!("[work]\nhost=localhost\nport={port}\nuser={USER}\ndbname=postgres\n"),
    );
    let common = [
        ("PGHOST", "localhost"),
        ("PGPORT", &port),
        ("PGUSER", USER),
        ("PGDATABASE", "postgres"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", &root),
        ("PGCHANNELBINDING", "require"),
        ("PGCONNECT_TIMEOUT", "20"),
        ("PGOPTIONS", "-c search_path=public"),
    ];
    let check_with = async |case: &str, address: &str, more: &[(&str, &str)], expected| {
        let variables: Vec<_> = common.iter().chain(more).copied().collect();
        check(case, open(address, &variables).await, expected);
    };
    let encrypted: Expected = Ok(Some("TLS 1.3"));
    check_with(
        "PGPASSWORD",
        "postgres://",
        &[("PGPASSWORD", PASSWORD)],
        encrypted,
    )
    .await;
    check_with("HOME", "postgres://", &[("HOME", &home)], encrypted).await;
    check_with(
        "PGPASSFILE",
        "postgres://",
        &[("PGPASSFILE", &passwords)],
        encrypted,
    )
    .await;
    let service = [
        ("PGHOST", "nowhere.test"),
        ("PGSERVICE", "work"),
        ("PGSERVICEFILE", &services),
        ("PGPASSFILE", &passwords),
    ];
    check_with("PGSERVICE", "postgres://", &service, encrypted).await;
    let wins = "postgres://localhost/postgres?sslmode=disable&channel_binding=disable";
    let refused: Expected = Err(&["no encryption"]);
    check_with("the address", wins, &[("PGPASSWORD", PASSWORD)], refused).await;
    let refused: Expected = Err(&["wants a password", "PGPASSWORD", "~/.pgpass"]);
    check_with("no password", "postgres://", &[], refused).await;
    std::fs::set_permissions(&passwords, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let refused: Expected = Err(&["wants a password", ".pgpass", "chmod 600"]);
    check_with("a file for all", "postgres://", &[("HOME", &home)], refused).await;
    let refused: Expected = Err(&["password authentication failed"]);
    check_with("wrong", "postgres://", &[("PGPASSWORD", "wrong")], refused).await;
}
