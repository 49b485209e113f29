//! A language server that misbehaves on demand, for tests.
//!
//! ```text
//! fault-server [--script FILE-OR-JSON] [--tcp PORT] [--shim | --shim-orphan]
//! ```
//!
//! - `--script`, or else `FAULT_SCRIPT` in the environment: a JSON object, or the name of a file with one. Without it
//!   the server is well-behaved. Its members are documented in `fault_server/script.rs`.
//! - `--tcp PORT`: listens on 127.0.0.1 and serves the first connection, instead of standard input and output. It says
//!   `listening on ADDRESS` on standard output; port 0 is any.
//! - `--shim`: runs itself without this flag as a child that inherits everything, waits for it, and ends as it did.
//!   Killing the shim does not kill the server behind it.
//! - `--shim-orphan`: the same, but ends at once and leaves the server without a parent.
//!
//! While it runs it is steered by requests and notifications whose method begins with `fault/`:
//!
//! | method | what it does |
//! |---|---|
//! | `fault/echo` | answers with its parameters |
//! | `fault/state` | answers with the open documents, the cancelled ids, its process id and the number of its start |
//! | `fault/on` | `{"method", "times"?, "fault", ..}`: from now on this method meets this fault |
//! | `fault/off` | `{"method"}`: no longer |
//! | `fault/say` | `{"method", "params", "kind": "notification" or "request"}`: says that to the client |
//! | `fault/progress` | the parameters of `progress` in the script: work that is done from now on |
//! | `fault/NAME` | commits that fault at once; the names and their parameters are in `fault_server/script.rs` |

#[path = "fault_server/documents.rs"]
mod documents;
#[path = "fault_server/family.rs"]
mod family;
#[path = "fault_server/faults.rs"]
mod faults;
#[path = "fault_server/output.rs"]
mod output;
#[path = "fault_server/script.rs"]
mod script;
#[path = "fault_server/server.rs"]
mod server;
#[path = "fault_server/transport.rs"]
mod transport;

use std::{error::Error, process::ExitCode};

use family::Role;

type Anything<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    process::keep_if_asked();
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fault-server: {error}");
            ExitCode::from(70)
        }
    }
}

fn run() -> Anything<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = family::Options::parse(&arguments)?;
    match options.role {
        Role::Server => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(server::serve(options))?;
            Ok(ExitCode::SUCCESS)
        }
        Role::Shim => family::shim(&options),
        Role::ShimOrphan | Role::Orphanage => family::leave_an_orphan(&options),
        Role::Grandchild | Role::GrandchildInOwnSession => family::linger(&options),
    }
}
