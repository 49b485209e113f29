//! The protocol as its authors publish it, for the tests of `tidelock acp`.
//!
//! - `acp-peer converse DIRECTORY PROGRAM ARGUMENTS..` is an editor: the published client speaks with the program, and what
//!   it saw is printed as one JSON object.
//! - `acp-peer check` reads a conversation, a line each: `> ` and what the editor sent, `< ` and what it was sent. What does
//!   not fit the published schema is printed, and the exit code is 1.

mod check;
mod converse;

use anyhow::{Result, bail};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("check") => check::run(),
        Some("converse") => converse::run(arguments.collect()).await,
        other => bail!("there is no command {other:?}"),
    }
}
