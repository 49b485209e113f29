//! One request over one connection, driven by whoever reads the answer. Dropped, it is gone: there is no task behind it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError, RootCertStore, crypto::ring};

use super::endpoint::{Endpoint, Transport};
use super::wire::Fault;

/// The most bytes of the headers of an answer. More is a fault of the server.
const HEADERS_LIMIT_BYTES: usize = 64 * 1024;

/// Makes connections. Clones share what is known of earlier ones, so that the next handshake is shorter.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Connector")
    }
}

impl Connector {
    /// Trusts the authorities that browsers trust.
    pub(super) fn new() -> Result<Self, TlsError> {
        Self::trusting(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }

    fn trusting(roots: RootCertStore) -> Result<Self, TlsError> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Sends a request, and waits for the beginning of its answer. *Cancel safety*: dropped half-way, the connection is
    /// closed; the server may have seen the request.
    pub(super) async fn post(
        &self,
        endpoint: &Endpoint,
        key: Option<HeaderValue>,
        body: Bytes,
    ) -> Result<Reply, Fault> {
        let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port))
            .await
            .map_err(|error| Fault::Unreachable(told(&error)))?;
        // Requests are one piece. A socket that cannot do this is only slower.
        drop(tcp.set_nodelay(true));
        match &endpoint.transport {
            Transport::Plain => exchange(tcp, endpoint, key, body).await,
            Transport::Tls(name) => {
                let tls = self.tls.connect(name.clone(), tcp).await.map_err(tls_fault)?;
                exchange(tls, endpoint, key, body).await
            }
        }
    }
}

/// The beginning of an answer, and the way to the rest of it.
pub(super) struct Reply {
    pub(super) parts: response::Parts,
    body: Incoming,
    connection: Connection,
}

type Driven = Pin<Box<dyn Future<Output = Result<(), hyper::Error>> + Send>>;

/// The work of a connection. It goes on only while somebody waits for what comes over it.
struct Connection(Option<Driven>);

impl Connection {
    /// Waits for something that comes over it.
    async fn until<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        let mut wanted = std::pin::pin!(wanted);
        loop {
            let Some(work) = &mut self.0 else {
                return wanted.await;
            };
            tokio::select! {
                biased;
                came = &mut wanted => return came,
                // Whoever waits on the other side is told of the end, well or not.
                _ = work => self.0 = None,
            }
        }
    }
}

impl Reply {
    /// The next piece of the body; nothing at its end. *Cancel safety*: dropped half-way, nothing is lost.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let Some(frame) = self.connection.until(self.body.frame()).await else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| Fault::Cut(told(&error)))?;
            // Trailers say nothing that is of use here.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }
}

async fn exchange(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    endpoint: &Endpoint,
    key: Option<HeaderValue>,
    body: Bytes,
) -> Result<Reply, Fault> {
    let unreachable = |error: hyper::Error| Fault::Unreachable(told(&error));
    let (mut sender, work) = http1::Builder::new()
        .max_buf_size(HEADERS_LIMIT_BYTES)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(unreachable)?;
    let mut connection = Connection(Some(Box::pin(work)));
    let request = request(endpoint, key, body).map_err(|error| Fault::Unreachable(told(&error)))?;
    let response = connection
        .until(sender.send_request(request))
        .await
        .map_err(unreachable)?;
    let (parts, body) = response.into_parts();
    Ok(Reply {
        parts,
        body,
        connection,
    })
}

fn request(endpoint: &Endpoint, key: Option<HeaderValue>, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&endpoint.path)
        .header(HOST, &endpoint.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream")
        .header(USER_AGENT, concat!("tidelock/", env!("CARGO_PKG_VERSION")));
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, key);
    }
    request.body(Full::new(body))
}

/// A handshake that fails because of what the other side is, or because the other side is gone.
fn tls_fault(error: io::Error) -> Fault {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(tls) => Fault::Tls(tls.to_string()),
        None => Fault::Unreachable(told(&error)),
    }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

    use super::*;

    const CERTIFICATE: &[u8] = include_bytes!("../../../tests/fixtures/tls/certificate.der");
    const KEY: &[u8] = include_bytes!("../../../tests/fixtures/tls/key.der");

    /// Answers one request over TLS, and tells what it was.
    async fn answer(listener: &tokio::net::TcpListener) -> String {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_slice(CERTIFICATE)],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY)),
            )
            .unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let mut socket = TlsAcceptor::from(Arc::new(config)).accept(socket).await.unwrap();
        let mut request = String::new();
        while !request.ends_with("\r\n\r\nbody") {
            let mut piece = [0; 1024];
            let count = socket.read(&mut piece).await.unwrap();
            assert_ne!(count, 0, "{request}");
            request.push_str(str::from_utf8(&piece[..count]).unwrap());
        }
        let reply = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        socket.write_all(reply).await.unwrap();
        socket.shutdown().await.unwrap();
        request
    }

    #[tokio::test]
    async fn a_request_goes_over_tls_to_whom_it_should() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_slice(CERTIFICATE)).unwrap();
        let connector = Connector::trusting(roots).unwrap();
        let ask = async |host: &str| {
            let endpoint = Endpoint::below(&format!("https://{host}:{port}/v1")).unwrap();
            let key = HeaderValue::from_static("Bearer x");
            let mut reply = connector
                .post(&endpoint, Some(key), Bytes::from_static(b"body"))
                .await?;
            Ok::<_, Fault>((
                reply.parts.status.as_u16(),
                reply.piece().await?,
                reply.piece().await?,
            ))
        };
        let (request, reply) = tokio::join!(answer(&listener), ask("localhost"));
        assert_eq!(reply, Ok((200, Some(Bytes::from_static(b"hi")), None)));
        let expected = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n\
             accept: text/event-stream\r\nuser-agent: tidelock/{}\r\nauthorization: Bearer x\r\n\
             content-length: 4\r\n\r\nbody",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(request, expected);
    }
}
