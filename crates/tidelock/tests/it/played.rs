//! A daemon that is played by the test: it answers what the test wants, on the socket of a world.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::harness::World;

/// An answer with a JSON body.
pub(crate) fn answer(status: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Answers every request in the same way, until the process of the tests ends.
pub(crate) fn always(world: &World, answer: String) {
    let listener = listen(world);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever goes away early has got what they wanted.
            drop(reply(stream, &answer));
        }
    });
}

/// Answers each request by its head, until the process of the tests ends.
pub(crate) fn by_path(world: &World, answer: impl Fn(&str) -> String + Send + 'static) {
    let listener = listen(world);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever goes away early has got what they wanted.
            drop(reply_with(stream, &answer));
        }
    });
}

/// Answers every request in the same way, and tells what was asked: the head, and the body.
pub(crate) fn recording(world: &World, answer: String) -> Receiver<(String, Value)> {
    let listener = listen(world);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Ok((head, body)) = reply(stream, &answer) {
                // A test that does not ask does not want to know.
                drop(sender.send((head, serde_json::from_slice(&body).unwrap_or_default())));
            }
        }
    });
    receiver
}

/// Answers one request, and is gone before the answer is.
pub(crate) fn once(world: &World, answer: String) -> JoinHandle<()> {
    let listener = listen(world);
    let socket = world.home().socket();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        fs::remove_file(socket).unwrap();
        drop(reply(stream, &answer).unwrap());
    })
}

fn listen(world: &World) -> UnixListener {
    let home = world.home();
    home.prepare().unwrap();
    if !home.token_file().exists() {
        fs::write(home.token_file(), "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(home.token_file(), PermissionsExt::from_mode(0o600)).unwrap();
    }
    UnixListener::bind(home.socket()).unwrap()
}

fn reply(stream: UnixStream, answer: &str) -> io::Result<(String, Vec<u8>)> {
    reply_with(stream, &|_: &str| answer.to_owned())
}

fn reply_with(mut stream: UnixStream, answer: &impl Fn(&str) -> String) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
        line.clear();
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    stream.write_all(answer(&head).as_bytes())?;
    Ok((head, body))
}
