//! The page's cookie in a real browser: no other server on this machine ever gets it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::browser::{Scripts, browse, wait_for_heading};
use crate::harness::World;

/// A browser on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server of somebody else on another port. It answers with a page that carries its path, and passes on what each
/// request said.
struct Neighbour {
    port: u16,
    heads: Receiver<String>,
}

impl Neighbour {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, heads) = channel();
        // It goes on until the test has ended.
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let sender = sender.clone();
                thread::spawn(move || {
                    if let Some(head) = answer(stream) {
                        drop(sender.send(head));
                    }
                });
            }
        });
        Self { port, heads }
    }

    /// The head of the request for a path. Whatever else the browser asks for in between counts as well.
    fn heads_up_to(&self, path: &str) -> Vec<String> {
        let mut heads = Vec::new();
        loop {
            let head = self.heads.recv_timeout(PATIENCE).unwrap();
            let found = head.starts_with(&format!("GET {path} "));
            heads.push(head);
            if found {
                return heads;
            }
        }
    }
}

/// Reads a head and answers it. Browsers open connections that they never use.
fn answer(mut stream: TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let body = "<!doctype html><title>somebody else</title><h1>Somebody else</h1>";
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nset-cookie: theirs=1\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(reply.as_bytes()).ok()?;
    String::from_utf8(head).ok()
}

#[test]
fn a_browser_sends_the_cookie_of_the_page_to_no_other_server() {
    let world = World::new();
    browse(&world, Scripts::On, async |page| {
        let up = world.run(&["up", "--json"]).expect(0).json();
        page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
        wait_for_heading(page, "Overview").await;
        let home = page.current_url().await.unwrap();
        assert!(home.host_str().unwrap().ends_with(".localhost"), "{home}");

        let neighbour = Neighbour::start();
        for (number, host) in ["127.0.0.1", "localhost", "other.localhost", "127.0.0.1"]
            .into_iter()
            .enumerate()
        {
            let path = format!("/{number}");
            page.goto(&format!("http://{host}:{}{path}", neighbour.port))
                .await
                .unwrap();
            wait_for_heading(page, "Somebody else").await;
            let heads = neighbour.heads_up_to(&path);
            assert!(
                heads.iter().all(|head| !head.contains("tidelock")),
                "{host}: {heads:?}"
            );
            // The last one has been there before, and its own cookies do come back.
            if number == 3 {
                assert!(heads.iter().any(|head| head.contains("theirs=1")), "{heads:?}");
            }
        }

        // The browser is still signed in, at that address and at no other.
        page.goto(home.as_str()).await.unwrap();
        wait_for_heading(page, "Overview").await;
        let plain = format!("http://{}/", up["address"].as_str().unwrap());
        page.goto(&plain).await.unwrap();
        wait_for_heading(page, "You are not signed in").await;
    });
}

#[test]
fn a_link_under_another_name_of_the_daemon_leads_to_the_page() {
    let world = World::new();
    browse(&world, Scripts::Off, async |page| {
        let up = world.run(&["up", "--json"]).expect(0).json();
        let link = up["page"]["url"].as_str().unwrap();
        let (_, code) = link.split_once("/open").unwrap();
        let plain = up["address"].as_str().unwrap();
        page.goto(&format!("http://{plain}/open{code}")).await.unwrap();
        wait_for_heading(page, "Overview").await;
        let address = page.current_url().await.unwrap();
        assert!(address.host_str().unwrap().ends_with(".localhost"), "{address}");
    });
}
