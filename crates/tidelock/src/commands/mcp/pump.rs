//! Forwards lines from the agent to the daemon, and back.
//!
//! Two blocking threads: this one reads from the agent, the other one from the daemon. This is the fastest way: each
//! line costs one read and one write.
//!
//! 1. A connection has a number. A thread that finds it broken reports the number it saw; the first report answers
//!    what the connection left unanswered, and a later one finds that it is already over.
//! 2. Only this thread connects, and only when the agent asks for something: an idle agent never restarts a daemon
//!    that was stopped on purpose.
//! 3. A request is recorded as unanswered before it is sent. So it is answered either by the daemon or by the thread
//!    that finds the daemon gone, never by both: an answer to a request that is not recorded is dropped.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::conversation::{Conversation, Pass, reopened, too_long};
use crate::commands::lines::{Read, read};
use crate::error::Failure;

/// The longest line of an agent, which is the daemon's limit.
const LINE_LIMIT_BYTES: usize = 4 << 20;
/// The longest line of the daemon: a resource of 4 MiB grows when it is written as JSON.
const ANSWER_LIMIT_BYTES: usize = 64 << 20;
/// How long the next daemon may take to reopen the conversation.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait for answers after the agent closes its end. The daemon gives up a little earlier.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
const BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug, Default)]
struct Bridge {
    /// Guards the conversation and its connection; held to inspect a line, never while one is read or written.
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

/// Serves an agent until it closes its end or stops reading.
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
            // It expects no answer, and is of no use to the next daemon.
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

    /// Finds a daemon and reopens the conversation, as if nothing had happened.
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

    /// Continues with a connection: another thread forwards what the daemon sends.
    fn take_up(&mut self, mut reader: BufReader<UnixStream>) -> io::Result<(u64, Arc<UnixStream>)> {
        let stream = Arc::new(reader.get_ref().try_clone()?);
        let number = {
            let mut state = self.shared.state();
            state.last += 1;
            let number = state.last;
            state.connection = Some((number, Arc::clone(&stream)));
            number
        };
        // It carries a single message.
        let (over, ended) = mpsc::sync_channel(1);
        self.ended = Some(ended);
        let (shared, mut to_agent) = (Arc::clone(&self.shared), self.to_agent.clone());
        thread::Builder::new()
            .name("from the daemon".to_owned())
            .spawn(move || {
                shared.hand_on(number, &mut reader, &mut to_agent);
                // If the receiver is gone, it has ended.
                let _told = over.send(());
            })?;
        Ok((number, stream))
    }

    /// Tells the daemon that no more requests follow, and waits for pending answers.
    fn leave(&mut self) {
        let connection = self.shared.state().connection.clone();
        let (Some((_, stream)), Some(ended)) = (connection, &self.ended) else {
            return;
        };
        if stream.shutdown(Shutdown::Write).is_ok() {
            // Done or timed out: either way there is nothing left to do.
            let _ended = ended.recv_timeout(LEAVE_TIMEOUT);
        }
    }
}

impl Bridge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards what the daemon sends until it ends.
    fn hand_on(&self, number: u64, reader: &mut BufReader<UnixStream>, to_agent: &mut impl Write) {
        let mut line = Vec::new();
        while let Ok(Read::Line) = read(reader, &mut line, ANSWER_LIMIT_BYTES) {
            let passed = self.state().conversation.daemon_says(&line);
            if passed == Pass::On(None) && write_to(to_agent, &line) == Agent::HasGone {
                // The agent stopped reading: the daemon need not continue, and the agent's next line will
                // show that.
                drop(reader.get_ref().shutdown(Shutdown::Both));
                break;
            }
        }
        self.lost(number, to_agent);
    }

    /// A connection is over. The first thread to report it answers what was left unanswered.
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

/// Reopens a conversation, and hides the response from the agent, which already had one.
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
