//! Lines go from the agent to the daemon, and back.
//!
//! Two threads that block: this one reads what the agent says, another one what the daemon says. Nothing is quicker, and
//! each line costs one read and one write on the way.
//!
//! 1. A connection has a number. Whoever finds that it is broken says which one it saw; the first to say so answers what it
//!    left unanswered, and a later one finds that it is over.
//! 2. Only this thread connects, and only when the agent asks for something: a daemon that was stopped on purpose is not
//!    started again by an agent that is idle.
//! 3. A request is noted as unanswered before it is sent. So it is either answered by the daemon, or by whoever finds that
//!    the daemon is gone, and never by both: an answer to what is not noted goes nowhere.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::conversation::{Conversation, Pass, reopened, too_long};
use crate::commands::lines::{Read, read};
use crate::error::Failure;

/// The longest line of an agent, which is as much as the daemon takes.
const LINE_LIMIT_BYTES: usize = 4 << 20;
/// The longest line of the daemon: a resource of four MiB grows when it is written as JSON.
const ANSWER_LIMIT_BYTES: usize = 64 << 20;
/// How long the next daemon may take to open the conversation again.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// How long answers are waited for when the agent has said its last word. The daemon gives up a little earlier.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
const BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug, Default)]
struct Bridge {
    /// Guards the conversation and its connection; held to look at a line, never while one is read or written.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    conversation: Conversation,
    last: u64,
    connection: Option<(u64, Arc<UnixStream>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    Listens,
    HasGone,
}

/// Serves an agent until it has nothing more to say, or does not listen any more.
pub(super) fn run<O>(
    first: UnixStream,
    connect: impl Fn() -> Result<UnixStream, Failure>,
    mut from_agent: impl BufRead,
    to_agent: O,
) -> io::Result<()>
where
    O: Write + Clone + Send + 'static,
{
    let mut pump = Pump {
        shared: Arc::default(),
        to_agent,
        ended: None,
    };
    pump.take_up(BufReader::with_capacity(BUFFER_BYTES, first))?;
    let mut line = Vec::new();
    loop {
        match read(&mut from_agent, &mut line, LINE_LIMIT_BYTES)? {
            Read::End => break,
            Read::TooLong => {
                if write_to(&mut pump.to_agent, &too_long(LINE_LIMIT_BYTES)) == Agent::HasGone {
                    break;
                }
            }
            Read::Line if line.trim_ascii().is_empty() => {}
            Read::Line => {
                if pump.carry(&line, &connect)? == Agent::HasGone {
                    break;
                }
            }
        }
    }
    pump.leave();
    Ok(())
}

struct Pump<O> {
    shared: Arc<Bridge>,
    to_agent: O,
    ended: Option<mpsc::Receiver<()>>,
}

impl<O: Write + Clone + Send + 'static> Pump<O> {
    fn carry(
        &mut self,
        line: &[u8],
        connect: &impl Fn() -> Result<UnixStream, Failure>,
    ) -> io::Result<Agent> {
        let (passed, connection) = {
            let mut state = self.shared.state();
            let passed = state.conversation.agent_says(line);
            (passed, state.connection.clone())
        };
        let id = match passed {
            Pass::On(id) => id,
            Pass::Nowhere => return Ok(Agent::Listens),
            Pass::Answered(answer) => return Ok(write_to(&mut self.to_agent, &answer)),
        };
        let (number, stream) = match (connection, id) {
            (Some(connection), _) => connection,
            // Nobody waits for an answer to it, and the next daemon has nothing that it could be about.
            (None, None) => return Ok(Agent::Listens),
            (None, Some(id)) => match self.reconnect(connect) {
                Ok(connection) => connection,
                Err(why) => {
                    let answer = self.shared.state().conversation.unreachable(&id, &why);
                    return Ok(write_to(&mut self.to_agent, &answer));
                }
            },
        };
        match (&*stream).write_all(line) {
            Ok(()) => Ok(Agent::Listens),
            Err(_) => Ok(self.shared.lost(number, &mut self.to_agent)),
        }
    }

    /// Finds a daemon and opens the conversation again, as if nothing had happened.
    fn reconnect(
        &mut self,
        connect: &impl Fn() -> Result<UnixStream, Failure>,
    ) -> Result<(u64, Arc<UnixStream>), String> {
        let stream = connect().map_err(|failure| failure.message)?;
        let reopening = self.shared.state().conversation.reopening();
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        if let Some((request, after)) = reopening {
            let opened = reopen(&mut reader, &request, after.as_deref());
            opened.map_err(|error| format!("the conversation cannot be opened again: {error}"))?;
        }
        self.take_up(reader).map_err(|error| error.to_string())
    }

    /// Goes on with a connection: another thread hands on what the daemon says.
    fn take_up(&mut self, mut reader: BufReader<UnixStream>) -> io::Result<(u64, Arc<UnixStream>)> {
        let stream = Arc::new(reader.get_ref().try_clone()?);
        let number = {
            let mut state = self.shared.state();
            state.last += 1;
            let number = state.last;
            state.connection = Some((number, Arc::clone(&stream)));
            number
        };
        // There is one message in its life.
        let (over, ended) = mpsc::sync_channel(1);
        self.ended = Some(ended);
        let (shared, mut to_agent) = (Arc::clone(&self.shared), self.to_agent.clone());
        thread::Builder::new()
            .name("from the daemon".to_owned())
            .spawn(move || {
                shared.hand_on(number, &mut reader, &mut to_agent);
                // Whoever does not wait for it has ended.
                let _told = over.send(());
            })?;
        Ok((number, stream))
    }

    /// Tells the daemon that nothing more comes, and waits for the answers that are on their way.
    fn leave(&mut self) {
        let connection = self.shared.state().connection.clone();
        let (Some((_, stream)), Some(ended)) = (connection, &self.ended) else {
            return;
        };
        if stream.shutdown(Shutdown::Write).is_ok() {
            // Over, or not in time: either way there is nothing left to do.
            let _ended = ended.recv_timeout(LEAVE_TIMEOUT);
        }
    }
}

impl Bridge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what the daemon says until it says nothing more.
    fn hand_on(&self, number: u64, reader: &mut BufReader<UnixStream>, to_agent: &mut impl Write) {
        let mut line = Vec::new();
        while let Ok(Read::Line) = read(reader, &mut line, ANSWER_LIMIT_BYTES) {
            let passed = self.state().conversation.daemon_says(&line);
            if passed == Pass::On(None) && write_to(to_agent, &line) == Agent::HasGone {
                // Nobody listens: the daemon need not go on, and the next line of the agent finds that out.
                drop(reader.get_ref().shutdown(Shutdown::Both));
                break;
            }
        }
        self.lost(number, to_agent);
    }

    /// A connection is over. What it left unanswered is answered, by whoever says so first.
    fn lost(&self, number: u64, to_agent: &mut impl Write) -> Agent {
        let answers = {
            let mut state = self.state();
            match state.connection.take_if(|(current, _)| *current == number) {
                Some(_) => state.conversation.lost(),
                None => Vec::new(),
            }
        };
        let mut agent = Agent::Listens;
        for answer in &answers {
            agent = write_to(to_agent, answer);
        }
        agent
    }
}

/// Opens a conversation, and keeps the answer to that from the agent, who has had one.
fn reopen(reader: &mut BufReader<UnixStream>, request: &[u8], after: Option<&[u8]>) -> io::Result<()> {
    reader.get_ref().set_read_timeout(Some(REOPEN_TIMEOUT))?;
    reader.get_ref().write_all(request)?;
    let mut line = Vec::new();
    loop {
        match read(reader, &mut line, ANSWER_LIMIT_BYTES)? {
            Read::Line => {}
            Read::TooLong | Read::End => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        match reopened(&line) {
            Some(Ok(())) => break,
            Some(Err(error)) => return Err(io::Error::other(error)),
            None => {}
        }
    }
    if let Some(after) = after {
        reader.get_ref().write_all(after)?;
    }
    reader.get_ref().set_read_timeout(None)
}

fn write_to(to_agent: &mut impl Write, line: &[u8]) -> Agent {
    match to_agent.write_all(line).and_then(|()| to_agent.flush()) {
        Ok(()) => Agent::Listens,
        Err(_) => Agent::HasGone,
    }
}
