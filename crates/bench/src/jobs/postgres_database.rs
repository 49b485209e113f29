//! A separate database for each turn, on the given server.

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

const URL_VARIABLE: &str = "TIDELOCK_BENCH_POSTGRES_URL";

#[derive(Debug)]
pub(crate) struct Server {
    url: String,
}

#[derive(Debug)]
pub(crate) struct Database<'a> {
    server: &'a Server,
    runtime: &'a Runtime,
    name: &'static str,
}

/// There is only one at a time.
const NAME: &str = "tidelock_bench";

impl Server {
    pub(crate) fn named() -> Result<Self> {
        let url = std::env::var(URL_VARIABLE);
        let url =
            url.with_context(|| format!("{URL_VARIABLE} names no server; `cargo xtask bench` starts one"))?;
        Ok(Self { url })
    }

    fn url_of(&self, database: &str) -> String {
        let (address, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let joint = if parameters.is_empty() { "" } else { "?" };
        let server = match address.rsplit_once('/') {
            Some((server, _)) if !server.ends_with('/') => server,
            _ => address,
        };
        format!("{server}/{database}{joint}{parameters}")
    }

    async fn run(&self, statements: &[String]) -> Result<()> {
        let (client, driver) = tokio_postgres::connect(&self.url, NoTls).await?;
        let statements = async move {
            // One by one: a database can't be created in a transaction.
            for statement in statements {
                client.batch_execute(statement).await?;
            }
            drop(client);
            anyhow::Ok(())
        };
        let (done, driven) = tokio::join!(statements, driver);
        done?;
        Ok(driven?)
    }
}

impl<'a> Database<'a> {
    pub(crate) fn make(server: &'a Server, runtime: &'a Runtime) -> Result<Self> {
        let statements = [
            drop_database(),
            format!("CREATE DATABASE {NAME}"),
            "CHECKPOINT".to_owned(),
        ];
        runtime.block_on(server.run(&statements))?;
        Ok(Self {
            server,
            runtime,
            name: NAME,
        })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url_of(self.name)
    }

    pub(crate) fn run(&self, statements: &[String]) -> Result<()> {
        let inside = Server { url: self.url() };
        self.runtime.block_on(inside.run(statements))
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.runtime.block_on(self.server.run(&[drop_database()])) {
            eprintln!("warning: the database {NAME} is left: {error:#}");
        }
    }
}

fn drop_database() -> String {
    format!("DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_an_address_on_its_server() {
        let cases = [
            ("postgres://me@%2Ftmp/postgres", "postgres://me@%2Ftmp/x"),
            ("postgres://me@host:1/postgres?a=b", "postgres://me@host:1/x?a=b"),
            ("postgres://host", "postgres://host/x"),
        ];
        for (url, expected) in cases {
            let server = Server { url: url.to_owned() };
            assert_eq!(server.url_of("x"), expected);
        }
    }
}
