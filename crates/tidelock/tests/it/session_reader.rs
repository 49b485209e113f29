//! A reader of turns that comes and goes, over the socket and without our own client in between.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use daemon::Home;
use protocol::{TurnEnd, TurnEvent, TurnResync, TurnState};
use serde_json::Value;

use crate::crash_rounds::Numbers;
use crate::requests::send;
use crate::session_fold::Has;

/// How long anything may take of which it is not known how long it takes. The daemon is killed several times meanwhile.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// After how long a reader comes back to a daemon that is not there, or has no room.
pub(crate) const COME_BACK_AFTER: Duration = Duration::from_millis(10);
/// A heartbeat comes every 15 seconds. Whoever hears none of four is not cut off, but forgotten.
const SILENCE: Duration = Duration::from_secs(60);
/// Further from the beginning than any turn is long: a place that no daemon can know.
const NOWHERE: u64 = 1_000_000;

/// The body of an answer that comes in pieces, without what is between them.
#[derive(Debug)]
pub(crate) struct Pieces {
    connection: BufReader<UnixStream>,
    left: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            // A piece is followed by an empty line.
            while line.trim().is_empty() {
                line.clear();
                if self.connection.read_line(&mut line)? == 0 {
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let wanted = self.left.min(buffer.len());
        let count = self.connection.read(&mut buffer[..wanted])?;
        self.left -= count;
        Ok(count)
    }
}

/// Something that the stream of a turn says.
#[derive(Debug)]
pub(crate) enum Said {
    Event(TurnEvent),
    Resync(TurnResync),
    End(TurnEnd),
}

/// A stream of events: that of a turn, or of what a job says.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What was asked for.
    about: String,
    lines: BufReader<Pieces>,
    kind: String,
    data: String,
    /// The id of the last event that has one.
    pub(crate) id: Option<String>,
}

/// Asks for something that comes in pieces. An error means that there is no daemon, or that it has no room.
pub(crate) fn ask(home: &Home, path: &str, headers: &str) -> io::Result<Pieces> {
    let token = fs::read_to_string(home.token_file())?;
    let mut connection = UnixStream::connect(home.socket())?;
    connection.set_read_timeout(Some(SILENCE))?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{headers}\r\n",
        token.trim(),
    );
    connection.write_all(request.as_bytes())?;
    let mut connection = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if connection.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if head.starts_with("HTTP/1.1 429 ") || head.starts_with("HTTP/1.1 503 ") {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
    Ok(Pieces { connection, left: 0 })
}

/// All turns of a session, as its export has them.
pub(crate) fn exported_turns(home: &Home, session: &str) -> Vec<Value> {
    let mut text = String::new();
    let mut pieces = ask(home, &format!("/v1/sessions/{session}/export"), "").unwrap();
    pieces.read_to_string(&mut text).unwrap();
    let exported: Value = serde_json::from_str(&text).unwrap();
    exported["turns"].as_array().unwrap().clone()
}

impl Stream {
    /// Asks for a stream from a place on.
    pub(crate) fn open(home: &Home, path: &str, place: Option<&str>) -> io::Result<Stream> {
        let place = place.map_or_else(String::new, |place| format!("Last-Event-ID: {place}\r\n"));
        let pieces = ask(home, path, &format!("Accept: text/event-stream\r\n{place}"))?;
        Ok(Stream {
            about: format!("{path} {}", place.trim()),
            lines: BufReader::new(pieces),
            kind: String::new(),
            data: String::new(),
            id: None,
        })
    }

    /// What the stream of a turn says next; nothing if it was cut off.
    fn next(&mut self, give_up_at: Instant) -> Option<Said> {
        let (kind, data) = self.next_event(give_up_at)?;
        let garbled = |error| -> Said { panic!("{error}: {data}") };
        Some(match kind.as_str() {
            "resync" => serde_json::from_str(&data).map_or_else(garbled, Said::Resync),
            "end" => serde_json::from_str(&data).map_or_else(garbled, Said::End),
            _ => serde_json::from_str(&data).map_or_else(garbled, Said::Event),
        })
    }

    /// The kind and the data of the next event; nothing if the stream was cut off. What was cut in the middle was not said.
    /// Heartbeats alone make nothing go on, so at some point nobody listens any more.
    pub(crate) fn next_event(&mut self, give_up_at: Instant) -> Option<(String, String)> {
        loop {
            assert!(
                Instant::now() < give_up_at,
                "nothing but heartbeats: {}",
                self.about
            );
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("not even a heartbeat for {SILENCE:?}")
                }
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            let line = line.strip_suffix('\n')?;
            if let Some(kind) = line.strip_prefix("event: ") {
                kind.clone_into(&mut self.kind);
            } else if let Some(id) = line.strip_prefix("id: ") {
                self.id = Some(id.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                data.clone_into(&mut self.data);
            } else if line.is_empty() && !self.data.is_empty() {
                return Some((mem::take(&mut self.kind), mem::take(&mut self.data)));
            }
        }
    }
}

/// How a reader comes to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It goes on after the last event that it has heard.
    Back,
    /// It has lost what it had, and begins with the first event.
    Afresh,
    /// It names a place that is nowhere, and must be given a snapshot in the place of what it has.
    Astray,
}

/// What a reader has been through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adventures {
    pub(crate) visits: u64,
    pub(crate) cut_off: u64,
    pub(crate) resyncs: u64,
}

/// Whether a server may lose what was shown already, so that readers are told to start over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    KeepsAll,
    MayRewind,
}

/// A reader.
pub(crate) struct Reader {
    pub(crate) log: Log,
    pub(crate) home: Home,
    pub(crate) session: String,
    pub(crate) numbers: Numbers,
    pub(crate) adventures: Adventures,
}

impl Reader {
    /// Reads a turn to its end, in as many visits as it likes, and says what it has in the end.
    pub(crate) fn read(&mut self, turn: &str) -> Has {
        let begun = Instant::now();
        let path = format!("/v1/sessions/{}/turns/{turn}/events", self.session);
        let (mut has, mut id) = (Has::default(), None);
        loop {
            assert!(begun.elapsed() < PATIENCE, "{turn} does not end: {has:?}");
            if let Some(end) = self.visit(&path, (&mut has, &mut id), begun + PATIENCE) {
                assert_eq!(
                    (end.sequence, Some(end.state)),
                    (has.place, has.turn.state),
                    "{has:?}"
                );
                assert!(
                    !matches!(end.state, TurnState::Queued | TurnState::Running),
                    "that is no end: {end:?}"
                );
                return has;
            }
        }
    }

    /// Reads for a while, until it has had enough, is cut off, or comes to the end.
    fn visit(
        &mut self,
        path: &str,
        (has, id): (&mut Has, &mut Option<String>),
        give_up_at: Instant,
    ) -> Option<TurnEnd> {
        let manner = match self.numbers.below(10) {
            0 => Manner::Afresh,
            1 => Manner::Astray,
            _ => Manner::Back,
        };
        // Every fourth stays until the end.
        let enough = match self.numbers.below(4) {
            0 => u64::MAX,
            _ => 1 + self.numbers.below(15),
        };
        let place = match manner {
            Manner::Back => id.clone(),
            Manner::Afresh => None,
            Manner::Astray => Some((NOWHERE + has.place).to_string()),
        };
        let Ok(mut stream) = Stream::open(&self.home, path, place.as_deref()) else {
            thread::sleep(COME_BACK_AFTER); // tidy: the daemon is being started again
            return None;
        };
        self.adventures.visits += 1;
        // What it comes for comes first, and whatever it has counts until then.
        let mut is_first = true;
        for _ in 0..enough {
            let Some(said) = stream.next(give_up_at) else {
                self.adventures.cut_off += 1;
                return None;
            };
            match (said, manner, mem::take(&mut is_first)) {
                (Said::Resync(resync), Manner::Astray, true) => {
                    self.adventures.resyncs += 1;
                    has.resync(resync);
                }
                (Said::Resync(resync), ..) if self.log == Log::MayRewind => {
                    self.adventures.resyncs += 1;
                    has.resync(resync);
                }
                (Said::Event(event), Manner::Afresh, true) => {
                    *has = Has::default();
                    has.hear(&event);
                }
                (Said::Event(event), Manner::Back, true) | (Said::Event(event), _, false) => has.hear(&event),
                (Said::End(end), Manner::Back, true) | (Said::End(end), _, false) => return Some(end),
                (said, ..) => panic!("asked {manner:?} from {place:?}, and was told {said:?}"),
            }
            *id = stream.id.clone().or(id.take());
            self.answer(has);
        }
        None
    }

    /// Answers what is asked. If the daemon is gone before it has answered, so is the question.
    fn answer(&self, has: &Has) {
        if let Some(question) = has.question() {
            let path = format!("/v1/sessions/{}/permissions/{question}", self.session);
            let answered = send(&self.home, "POST", &path, r#"{"answer":"allow"}"#);
            // Another reader may have been faster, and the turn over since.
            let status = answered.map_or(200, |answer| answer.status);
            assert!([200, 404, 503].contains(&status), "{question}: {status}");
        }
    }
}
