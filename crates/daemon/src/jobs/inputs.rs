//! The input of commands on its way from their clients.
//!
//! A client and the command that it feeds meet by the id of the job, whoever comes first. Between them is a short queue, so
//! a client can send no faster than the command reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::JobId;
use tokio::sync::{mpsc, watch};

/// How many pieces wait for a command. Whoever sends more waits.
const QUEUED_PIECES: usize = 2;

/// Where clients and commands meet. Clones are the same place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// Guards who waits; held only to look.
    waiting: Arc<Mutex<HashMap<JobId, Waiting>>>,
}

/// Who waits for the other one, with the end that is the other one's.
#[derive(Debug)]
enum Waiting {
    Client(CommandEnd),
    Command(ClientEnd),
}

/// What a client sends.
#[derive(Debug)]
pub(crate) enum Input {
    /// It is there.
    Hello,
    Data(Bytes),
    /// There is no more.
    End,
}

/// How much of the input a command has read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Taken {
    pub(crate) bytes: u64,
    /// Whether it will read no more.
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

/// The input as its client has it.
#[derive(Debug)]
pub(crate) struct ClientInput {
    pub(crate) pieces: mpsc::Sender<Input>,
    pub(crate) taken: watch::Receiver<Taken>,
    _seat: Seat,
}

/// The input as its command has it.
#[derive(Debug)]
pub(crate) struct CommandInput {
    pub(crate) pieces: mpsc::Receiver<Input>,
    pub(crate) taken: watch::Sender<Taken>,
    _seat: Seat,
}

/// Leaves nobody waiting who has gone.
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
    /// The client of a job is there; `None` if it has one already.
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

    /// The command of a job is about to run. It has one attempt.
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
        // A second client has nobody to speak to, and one that leaves is not met.
        let first = inputs.client(job).unwrap();
        assert!(inputs.client(job).is_none());
        drop(first);
        assert!(inputs.waiting().is_empty());
        let mut command = inputs.command(job);
        drop(inputs.client(job).unwrap());
        assert!(command.pieces.recv().await.is_none());
    }
}
