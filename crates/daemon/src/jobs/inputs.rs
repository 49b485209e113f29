//! Passes the input of commands on from their clients.
//!
//! A client and its command find each other by the id of the job, whichever comes first. Between them is a short queue,
//! so a client can't send faster than the command reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::JobId;
use tokio::sync::{mpsc, watch};

/// How many pieces may wait for a command. A client that sends more waits.
const QUEUED_PIECES: usize = 2;

/// Connects clients with commands. Clones share the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// Guards the waiting sides; held only for a lookup.
    waiting: Arc<Mutex<HashMap<JobId, Waiting>>>,
}

/// The side that came first, with the end that it holds for the other side.
#[derive(Debug)]
enum Waiting {
    Client(CommandEnd),
    Command(ClientEnd),
}

#[derive(Debug)]
pub(crate) enum Input {
    /// The client has connected.
    Hello,
    Data(Bytes),
    /// The end of the input.
    End,
}

/// How much of the input a command has read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Taken {
    pub(crate) bytes: u64,
    /// Whether the command has stopped reading.
    pub(crate) is_over: bool,
}

/// The client's end.
#[derive(Debug)]
struct ClientEnd {
    pieces: mpsc::Sender<Input>,
    taken: watch::Receiver<Taken>,
}

/// The command's end.
#[derive(Debug)]
struct CommandEnd {
    pieces: mpsc::Receiver<Input>,
    taken: watch::Sender<Taken>,
}

/// The input, from the client's side.
#[derive(Debug)]
pub(crate) struct ClientInput {
    pub(crate) pieces: mpsc::Sender<Input>,
    pub(crate) taken: watch::Receiver<Taken>,
    _seat: Seat,
}

/// The input, from the command's side.
#[derive(Debug)]
pub(crate) struct CommandInput {
    pub(crate) pieces: mpsc::Receiver<Input>,
    pub(crate) taken: watch::Sender<Taken>,
    _seat: Seat,
}

/// Removes the entry of a side that goes away while it waits.
#[derive(Debug)]
struct Seat {
    inputs: Inputs,
    job: JobId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.inputs.waiting().remove(&self.job);
    }
}

impl Inputs {
    /// Registers the client of a job; `None` if the job already has one.
    pub(crate) fn client(&self, job: JobId) -> Option<ClientInput> {
        let mut waiting = self.waiting();
        let end = match waiting.remove(&job) {
            Some(Waiting::Command(end)) => end,
            Some(other @ Waiting::Client(_)) => {
                waiting.insert(job, other);
                return None;
            }
            None => {
                let (client, command) = link();
                waiting.insert(job, Waiting::Client(command));
                client
            }
        };
        Some(ClientInput {
            pieces: end.pieces,
            taken: end.taken,
            _seat: self.seat(job),
        })
    }

    /// Registers the command of a job, just before it runs. It has one attempt.
    pub(crate) fn command(&self, job: JobId) -> CommandInput {
        let mut waiting = self.waiting();
        let end = match waiting.remove(&job) {
            Some(Waiting::Client(end)) => end,
            _ => {
                let (client, command) = link();
                waiting.insert(job, Waiting::Command(client));
                command
            }
        };
        CommandInput {
            pieces: end.pieces,
            taken: end.taken,
            _seat: self.seat(job),
        }
    }

    fn seat(&self, job: JobId) -> Seat {
        Seat {
            inputs: self.clone(),
            job,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<JobId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn link() -> (ClientEnd, CommandEnd) {
    let (sender, pieces) = mpsc::channel(QUEUED_PIECES);
    let (told, taken) = watch::channel(Taken::default());
    let client = ClientEnd {
        pieces: sender,
        taken,
    };
    let command = CommandEnd { pieces, taken: told };
    (client, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_meet_whoever_comes_first_and_leave_nothing_behind() {
        let (inputs, job) = (Inputs::default(), JobId::generate());
        for client_first in [true, false] {
            let (client, mut command) = if client_first {
                let client = inputs.client(job).unwrap();
                (client, inputs.command(job))
            } else {
                let command = inputs.command(job);
                (inputs.client(job).unwrap(), command)
            };
            client.pieces.send(Input::End).await.unwrap();
            assert!(matches!(command.pieces.recv().await, Some(Input::End)));
            drop((client, command));
            assert!(inputs.waiting().is_empty());
        }
        // A second client is refused, and a client that leaves is forgotten.
        let first = inputs.client(job).unwrap();
        assert!(inputs.client(job).is_none());
        drop(first);
        assert!(inputs.waiting().is_empty());
        let mut command = inputs.command(job);
        drop(inputs.client(job).unwrap());
        assert!(command.pieces.recv().await.is_none());
    }
}
