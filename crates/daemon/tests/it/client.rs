//! A small HTTP client for both sockets. Every request has a connection of its own.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use protocol::RequestId;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Where requests go, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) target: Target,
    pub(crate) token: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Target {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A request that is being put together.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    client: &'a Client,
    request: Request<Full<Bytes>>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The same, for what is not text.
    pub(crate) bytes: Bytes,
}

impl Client {
    /// A request with the token and the right host.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call<'_> {
        let host = match &self.target {
            Target::Tcp(address) => address.to_string(),
            Target::Unix(_) => "localhost".to_owned(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Full::default())
            .unwrap();
        Call {
            client: self,
            request,
        }
    }

    pub(crate) fn get(&self, path: &str) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str) -> Call<'_> {
        self.call(Method::POST, path)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        match &self.target {
            Target::Tcp(address) => exchange(TcpStream::connect(address).await.unwrap(), request).await,
            Target::Unix(path) => exchange(UnixStream::connect(path).await.unwrap(), request).await,
        }
    }
}

impl Call<'_> {
    /// Sets a header, in the place of one that is there.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().insert(name, value.parse().unwrap());
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.request.headers_mut().remove(name);
        self
    }

    pub(crate) fn body(mut self, media_type: &str, body: impl Into<Bytes>) -> Self {
        self.request
            .headers_mut()
            .insert(CONTENT_TYPE, media_type.parse().unwrap());
        *self.request.body_mut() = Full::new(body.into());
        self
    }

    pub(crate) fn json(self, body: &str) -> Self {
        self.body("application/json", body.to_owned())
    }

    pub(crate) fn form(self, fields: &[(&str, &str)]) -> Self {
        let encoded: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("{key}={}", percent_encode(value)))
            .collect();
        self.body("application/x-www-form-urlencoded", encoded.join("&"))
    }

    pub(crate) async fn send(self) -> Answer {
        self.client.send(self.request).await
    }
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The problem in an error answer, after checking that answer and problem agree.
    pub(crate) fn problem(&self) -> protocol::Problem {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem: protocol::Problem = self.json();
        assert_eq!(problem.status, self.status);
        assert_eq!(Some(problem.request_id.as_str()), self.header("x-request-id"));
        problem.request_id.parse::<RequestId>().unwrap();
        problem
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Answer {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    drop(sender);
    // How the connection ends is of no interest once the answer is complete.
    drop(driver.await);
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        bytes: body,
    }
}

pub(crate) fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
