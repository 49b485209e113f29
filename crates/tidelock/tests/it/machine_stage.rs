//! Several machines on one database: a server of the test's own, a daemon for each machine, and a line from each to the
//! server that can be cut.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Outcome, World, finish, wait_for};
use crate::postgres_server::{PASSWORD, Setup, TestServer, USER};

/// The server and the machines.
pub(crate) struct Machines {
    pub(crate) machines: Vec<Machine>,
    pub(crate) server: TestServer,
}

/// One machine.
pub(crate) struct Machine {
    pub(crate) world: World,
    pub(crate) line: Line,
}

impl Machines {
    /// So many machines with a daemon each. `None` if Postgres is not installed.
    pub(crate) fn start(count: usize) -> Option<Machines> {
        let setup = Setup {
            rules: "host all all 127.0.0.1/32 scram-sha-256\n",
            ..Setup::default()
        };
        let server = TestServer::start(&setup)?;
        let machine = |_| Machine {
            world: World::new(),
            line: Line::to(server.port),
        };
        let machines = Machines {
            machines: (0..count).map(machine).collect(),
            server,
        };
        for machine in &machines.machines {
            machine.run(&["up"]).expect(0);
        }
        Some(machines)
    }
}

impl Machine {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(arguments);
        let password = PASSWORD.replace(':', "%3A");
        let address = format!("127.0.0.1:{}", self.line.port);
        let url = format!("postgres://{USER}:{password}@{address}/postgres?sslmode=disable");
        command.env("TIDELOCK_DATABASE_URL", url);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        finish(self.command(arguments))
    }

    /// Submits a job, and says which.
    pub(crate) fn submit(&self, options: &[&str], line: &str) -> String {
        let arguments = [&["job", "run", "--json"], options, &["--shell", line]].concat();
        let job = self.run(&arguments).expect(0).json();
        job["id"].as_str().unwrap().to_owned()
    }

    /// A job, as soon as the database answers.
    pub(crate) fn job(&self, id: &str) -> Value {
        let mut shown = Value::Null;
        wait_for("the job to be shown", || {
            let outcome = self.run(&["job", "show", id, "--json"]);
            shown = outcome.json();
            outcome.code == Some(0) || shown["error"]["code"] != "log_refusing"
        });
        assert_eq!(shown["error"], Value::Null);
        shown
    }
}

/// A line to the server. What is on its way when it is held waits; nothing says that it is not there any more.
pub(crate) struct Line {
    pub(crate) port: u16,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    // Guards whether the line is held; held for a look.
    is_held: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut is_held = self.is_held.lock().unwrap();
        while *is_held {
            is_held = self.opened.wait(is_held).unwrap();
        }
    }
}

impl Line {
    fn to(server: u16) -> Line {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Arc::new(Gate::default());
        let own = Arc::clone(&gate);
        // It ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, gate) = (client.unwrap(), Arc::clone(&own));
                thread::spawn(move || {
                    gate.pass();
                    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
                        return;
                    };
                    let ways = [
                        (client.try_clone().unwrap(), server.try_clone().unwrap()),
                        (server, client),
                    ];
                    for (from, to) in ways {
                        let gate = Arc::clone(&gate);
                        thread::spawn(move || carry(from, to, &gate));
                    }
                });
            }
        });
        Line { port, gate }
    }

    /// Nothing goes through any more.
    pub(crate) fn cut(&self) {
        *self.gate.is_held.lock().unwrap() = true;
    }

    /// Everything goes through again, also what was held.
    pub(crate) fn mend(&self) {
        *self.gate.is_held.lock().unwrap() = false;
        self.gate.opened.notify_all();
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        gate.pass();
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    // Both ends may be gone already.
    drop(to.shutdown(Shutdown::Write));
}

/// What can go wrong with a server.
impl TestServer {
    /// Stops the server as it should be stopped, and starts it again after a while.
    pub(crate) fn restart_after(&mut self, pause: Duration) {
        if let Some(mut server) = self.server.take() {
            kill("-INT", &[server.id()]);
            server.wait().unwrap();
        }
        thread::sleep(pause); // tidy: for how long it is away is the point
        self.serve();
    }

    /// Everything that belongs to the server stands still or goes on: `-STOP`, `-CONT`.
    pub(crate) fn signal(&self, how: &str) {
        kill(how, &self.processes());
    }

    /// The server and its children, the server first.
    fn processes(&self) -> Vec<u32> {
        let Some(server) = &self.server else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.id()));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(server.id()).chain(children).collect()
    }
}

/// Sends a signal. A process that has ended meanwhile needs none.
fn kill(how: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    drop(Command::new("kill").arg(how).args(processes).output());
}
