//! A daemon, and peers that write to its address byte by byte as they like.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::World;

/// How long an answer may take on a busy machine. What takes longer is as good as none.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long nothing comes from a daemon that has said all it has to say.
const QUIET: Duration = Duration::from_millis(500);

/// A world with a daemon, and what is known about it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Target {
    pub(crate) fn new() -> Target {
        Target::of(World::new())
    }

    /// The same in a world that is there already.
    pub(crate) fn of(world: World) -> Target {
        let up = world.run(&["up", "--json"]).expect(0).json();
        let token = fs::read_to_string(world.home().token_file()).unwrap();
        Target {
            world,
            address: up["address"].as_str().unwrap().parse().unwrap(),
            token: token.trim().to_owned(),
        }
    }

    pub(crate) fn connect(&self) -> Peer {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
        stream.set_write_timeout(Some(ANSWER_LIMIT)).unwrap();
        Peer { stream }
    }

    /// The first lines of a request that would be answered: with the right host and the token.
    pub(crate) fn head(&self, first_line: &str) -> String {
        format!(
            "{first_line}\r\nHost: {}\r\nAuthorization: Bearer {}\r\n",
            self.address, self.token
        )
    }

    /// Sends something on a connection of its own, and returns all answers until the daemon closes it.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> Vec<Reply> {
        let mut peer = self.connect();
        // The daemon may have seen enough, and closed, before all is sent.
        drop(peer.stream.write_all(bytes));
        peer.replies()
    }

    /// One request with the token, and its answer.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let head = self.head(&format!("{method} {path} HTTP/1.1"));
        let length = body.len();
        let request = format!(
            "{head}Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut replies = self.exchange(request.as_bytes());
        assert_eq!(replies.len(), 1, "{method} {path}: {replies:?}");
        replies.remove(0)
    }

    /// Others are answered while something goes on.
    #[track_caller]
    pub(crate) fn answers_others(&self) {
        for _ in 0..5 {
            assert_eq!(self.ask("GET", "/v1/status", "").status, 200);
        }
    }

    /// How many sockets the daemon has open. Other files come and go with what it reads.
    pub(crate) fn sockets(&self) -> usize {
        let path = format!("/proc/{}/fd", self.world.pid());
        let open = fs::read_dir(path).unwrap().flatten();
        let leads_to = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        leads_to
            .filter(|target| target.to_string_lossy().starts_with("socket:"))
            .count()
    }

    /// How much memory the daemon has, in mebibytes.
    pub(crate) fn memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.world.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kibibytes / 1024
    }

    /// How much the kernel holds of what the daemon has written and nobody has taken, in mebibytes.
    pub(crate) fn unsent_mib(&self) -> u64 {
        let ours = format!(":{:04X}", self.address.port());
        let connections = fs::read_to_string("/proc/net/tcp").unwrap();
        let unsent = connections.lines().skip(1).filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (unsent, _) = fields[4].split_once(':').unwrap();
            fields[1]
                .ends_with(&ours)
                .then(|| u64::from_str_radix(unsent, 16).unwrap())
        });
        unsent.sum::<u64>() >> 20
    }
}

/// Somebody who is connected.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

impl Peer {
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())
    }

    /// What the daemon says up to a text, and no byte more.
    #[track_caller]
    pub(crate) fn up_to(&mut self, text: &str) -> String {
        let (mut said, mut byte) = (Vec::new(), [0]);
        while !said.ends_with(text.as_bytes()) {
            self.stream.read_exact(&mut byte).unwrap();
            said.push(byte[0]);
        }
        String::from_utf8(said).unwrap()
    }

    /// All answers until the daemon closes. When it has said something and then nothing more for a while, it is told that
    /// nothing more will come from here: a connection that was kept open for another request is closed then.
    pub(crate) fn replies(&mut self) -> Vec<Reply> {
        let (mut bytes, mut piece) = (Vec::new(), [0; 16 * 1024]);
        let give_up_at = Instant::now() + ANSWER_LIMIT;
        self.stream.set_read_timeout(Some(QUIET)).unwrap();
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&piece[..length]),
                // A reset is an end as well: the daemon may close with bytes of ours unread.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    assert!(
                        Instant::now() < give_up_at,
                        "the daemon neither answers nor closes"
                    );
                    if !bytes.is_empty() {
                        drop(self.stream.shutdown(Shutdown::Write));
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        Reply::split(&bytes)
    }
}

/// An answer, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    /// What is wrong, by the code of the problem; empty for an answer that is not a problem.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Splits what came on one connection into its answers. Those without a length go to the end.
    fn split(bytes: &[u8]) -> Vec<Reply> {
        let mut rest = String::from_utf8_lossy(bytes).into_owned();
        let mut replies = Vec::new();
        while let Some((head, after)) = rest.split_once("\r\n\r\n") {
            let mut reply = Reply {
                status: head
                    .split(' ')
                    .nth(1)
                    .and_then(|status| status.parse().ok())
                    .unwrap_or_default(),
                head: head.to_owned(),
                body: String::new(),
            };
            let length = reply
                .header("content-length")
                .and_then(|length| length.parse().ok())
                .unwrap_or(after.len());
            let (body, after) = after.split_at(length.min(after.len()));
            reply.body = body.to_owned();
            rest = after.to_owned();
            replies.push(reply);
        }
        replies
    }
}
