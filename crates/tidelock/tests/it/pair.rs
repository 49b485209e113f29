//! Two homes that share a database, as on two machines.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Outcome, World, finish};
use crate::postgres_server::{Setup, TestServer, USER};
use crate::tools::skip;

/// The server to test with. `cargo xtask test` starts one.
pub(crate) const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";

/// Two homes, and the database that they share.
pub(crate) struct Pair {
    pub(crate) url: String,
    pub(crate) one: World,
    pub(crate) other: World,
}

impl Pair {
    pub(crate) fn new() -> Option<Pair> {
        let Ok(url) = std::env::var(URL_VARIABLE) else {
            skip(&format!("{URL_VARIABLE} names no server"));
            return None;
        };
        Some(Pair::at(url))
    }

    /// On a server that nobody else uses, so that nobody else runs what may run anywhere. Further lines of its configuration
    /// can be given.
    pub(crate) fn with_server(settings: &[&str]) -> Option<(Pair, TestServer)> {
        let setup = Setup {
            rules: "host all all 127.0.0.1/32 trust\n",
            settings,
            ..Setup::default()
        };
        let Some(server) = TestServer::start(&setup) else {
            skip("Postgres is not installed");
            return None;
        };
        let url = format!(
            "postgres://{USER}@127.0.0.1:{}/postgres?sslmode=disable",
            server.port
        );
        Some((Pair::at(url), server))
    }

    pub(crate) fn at(url: String) -> Pair {
        let pair = Pair {
            url,
            one: World::new(),
            other: World::new(),
        };
        for world in [&pair.one, &pair.other] {
            pair.run(world, &["up"]);
        }
        pair
    }

    pub(crate) fn command(&self, world: &World, arguments: &[&str]) -> Command {
        let mut command = world.command(arguments);
        command.env("TIDELOCK_DATABASE_URL", &self.url);
        command
    }

    pub(crate) fn run(&self, world: &World, arguments: &[&str]) -> String {
        finish(self.command(world, arguments)).expect(0).stdout
    }

    /// Whatever comes of it.
    pub(crate) fn run_any(&self, world: &World, arguments: &[&str]) -> Outcome {
        finish(self.command(world, arguments))
    }

    pub(crate) fn json(&self, world: &World, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        finish(self.command(world, &arguments)).expect(0).json()
    }

    pub(crate) fn submit(&self, world: &World, options: &[&str], line: &str) -> String {
        let arguments = [&["job", "run", "--json"], options, &["--shell", line]].concat();
        let job = finish(self.command(world, &arguments)).expect(0).json();
        job["id"].as_str().unwrap().to_owned()
    }
}
