//! The HTTP client: pooled connections, the environment's proxy, and the system's certificate authorities.
//!
//! Dropping a request or its response closes the connection. Only a response read to its end leaves its connection in the pool.

use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Response, redirect, retry};
use tokio_rustls::rustls::{ClientConfig, Error as TlsError, RootCertStore, crypto::ring};

use super::endpoint::Endpoint;
use super::wire::Fault;

/// How many idle connections to keep. A connection that becomes idle while the pool is full is closed.
const MAX_IDLE_CONNECTIONS: usize = 8;

/// The client for an endpoint. Redirects and retries are off: a redirect could send the key elsewhere, and the caller retries.
pub(super) fn client(endpoint: &Endpoint) -> Result<Client, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots()?)
        .with_no_client_auth();
    let mut builder = Client::builder()
        .tls_backend_preconfigured(config)
        .http1_only()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .user_agent(concat!("tidelock/", env!("CARGO_PKG_VERSION")));
    if endpoint.is_loopback() {
        // A proxy can't reach a server on this machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| causes(&error, 0))
}

/// The system's authorities, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` if set.
fn roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A system's list is long, and may hold some that rustls doesn't understand.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        if let Some(error) = found.errors.first() {
            return Err(error.to_string());
        }
        // A bare container has no list. Mozilla's is just as good.
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok(roots)
}

/// Sends a request, and waits for the head of its response. *Cancel safety*: if dropped, the connection is closed; the server
/// may have seen the request.
pub(super) async fn post(
    client: &Client,
    endpoint: &Endpoint,
    key: Option<HeaderValue>,
    body: Bytes,
) -> Result<Response, Fault> {
    let mut request = client
        .post(endpoint.url.clone())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream")
        .body(body);
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, key);
    }
    request.send().await.map_err(|error| match tls_error(&error) {
        Some(tls) if error.is_connect() => Fault::Tls(tls.to_string()),
        _ => Fault::Unreachable(causes(&error, 2)),
    })
}

/// The next piece of a body, or `None` at its end. *Cancel safety*: if dropped, nothing is lost.
pub(super) async fn piece(response: &mut Response) -> Result<Option<Bytes>, Fault> {
    let piece = response.chunk().await;
    piece.map_err(|error| Fault::Cut(causes(&error, 1)))
}

/// The TLS error that caused an error, if any: the other side answers, but can't prove its identity.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TlsError> {
    if let Some(tls) = error.downcast_ref() {
        return Some(tls);
    }
    // The source of an I/O error is the source of what it wraps, which would skip the wrapped error itself.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => tls_error(wrapped),
        None => tls_error(error.source()?),
    }
}

/// An error's causes, without the outermost `skipped` errors: the client's own only say that a request failed, and name
/// its URL, which may hold a secret.
fn causes(error: &reqwest::Error, skipped: usize) -> String {
    let chain = std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source());
    let mut text = String::new();
    for cause in chain.skip(skipped).map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    if text.is_empty() {
        "the request failed".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

    use super::*;

    /// How long a child may take to send its request.
    const PATIENCE: Duration = Duration::from_secs(30);
    /// The URL that `ask_as_a_child` requests; only set in the processes that the other tests start.
    const CHILD_URL: &str = "SESSIONS_TEST_MODEL_URL";

    async fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    async fn read_until(socket: &mut (impl AsyncRead + Unpin), end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            let mut piece = [0; 1024];
            let count = socket.read(&mut piece).await.unwrap();
            assert_ne!(count, 0, "{text}");
            text.push_str(str::from_utf8(&piece[..count]).unwrap());
        }
        text
    }

    /// Answers one request and returns it.
    async fn answer(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
        let request = read_until(socket, "\r\n\r\nbody").await;
        let reply = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        socket.write_all(reply).await.unwrap();
        request
    }

    /// An authority that no system knows, in PEM, and a TLS server with these names that it has signed.
    fn authority(names: &[&str]) -> (String, TlsAcceptor) {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let authority = parameters.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(parameters, authority_key);
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        (authority.pem(), TlsAcceptor::from(Arc::new(config)))
    }

    /// Answers one request over TLS and returns it.
    async fn answer_encrypted(acceptor: &TlsAcceptor, socket: TcpStream) -> String {
        answer(&mut acceptor.accept(socket).await.unwrap()).await
    }

    /// The expected request, apart from its first line and its host.
    fn request_to(target: &str, host: &str) -> String {
        format!(
            "POST {target} HTTP/1.1\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
             authorization: Bearer x\r\nuser-agent: tidelock/{}\r\nhost: {host}\r\ncontent-length: 4\r\n\r\nbody",
            env!("CARGO_PKG_VERSION")
        )
    }

    async fn ask(client: &Client, endpoint: &Endpoint) -> (u16, Vec<u8>) {
        let key = HeaderValue::from_static("Bearer x");
        let mut response = post(client, endpoint, Some(key), Bytes::from_static(b"body"))
            .await
            .unwrap();
        let mut body = Vec::new();
        while let Some(piece) = piece(&mut response).await.unwrap() {
            body.extend_from_slice(&piece);
        }
        (response.status().as_u16(), body)
    }

    /// Not a test in itself: proxies and authorities come from the environment, so each case needs its own process.
    #[tokio::test]
    async fn ask_as_a_child() {
        let Ok(url) = env::var(CHILD_URL) else { return };
        let endpoint = Endpoint::below(&url).unwrap();
        let client = client(&endpoint).unwrap();
        assert_eq!(ask(&client, &endpoint).await, (200, b"hi".to_vec()));
    }

    /// Requests a URL in a process with these variables, which expects the answer, and serves it meanwhile.
    async fn ask_with<T>(url: &str, variables: &[(&str, &str)], served: impl Future<Output = T>) -> T {
        let mut child = Command::new(env::current_exe().unwrap());
        child
            .args(["agents::model::connect::tests::ask_as_a_child", "--exact"])
            .env(CHILD_URL, url)
            .envs(variables.iter().copied());
        let asked = tokio::task::spawn_blocking(move || child.output().unwrap());
        let (asked, served) = tokio::join!(asked, timeout(PATIENCE, served));
        let asked = asked.unwrap();
        let printed = String::from_utf8_lossy(&asked.stdout);
        assert!(asked.status.success(), "{printed}");
        assert!(printed.contains("1 passed"), "{printed}");
        served.unwrap()
    }

    #[tokio::test]
    async fn the_second_request_reuses_the_connection() {
        let (listener, port) = listen().await;
        let endpoint = Endpoint::below(&format!("http://127.0.0.1:{port}/v1")).unwrap();
        let client = client(&endpoint).unwrap();
        let asked = async {
            for _ in 0..2 {
                assert_eq!(ask(&client, &endpoint).await, (200, b"hi".to_vec()));
            }
        };
        let served = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            [answer(&mut socket).await, answer(&mut socket).await]
        };
        let ((), requests) = tokio::join!(asked, served);
        let expected = request_to("/v1/chat/completions", &format!("127.0.0.1:{port}"));
        assert_eq!(requests, [expected.clone(), expected]);
    }

    #[tokio::test]
    async fn a_plain_request_goes_through_the_proxy_unless_the_host_is_excepted() {
        let (proxy, port) = listen().await;
        let proxy_url = format!("http://127.0.0.1:{port}");
        let request = ask_with(
            "http://model.invalid/v1",
            &[("HTTP_PROXY", &proxy_url), ("NO_PROXY", "other.invalid")],
            async { answer(&mut proxy.accept().await.unwrap().0).await },
        )
        .await;
        let target = "http://model.invalid/v1/chat/completions";
        assert_eq!(request, request_to(target, "model.invalid"));

        // The proxy no longer answers, so any request through it fails.
        drop(proxy);
        let (server, port) = listen().await;
        for (host, variables) in [
            (
                "127.0.0.1",
                [("HTTP_PROXY", proxy_url.as_str()), ("NO_PROXY", "")],
            ),
            (
                "localhost",
                [("http_proxy", proxy_url.as_str()), ("NO_PROXY", "")],
            ),
        ] {
            let request = ask_with(&format!("http://{host}:{port}"), &variables, async {
                answer(&mut server.accept().await.unwrap().0).await
            })
            .await;
            let expected = request_to("/chat/completions", &format!("{host}:{port}"));
            assert_eq!(request, expected);
        }
    }

    #[tokio::test]
    async fn an_encrypted_request_goes_through_a_tunnel_to_whom_ssl_cert_file_trusts() {
        let (pem, acceptor) = authority(&["localhost", "model.invalid"]);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("authority.pem");
        std::fs::write(&file, pem).unwrap();
        let authority = ("SSL_CERT_FILE", file.to_str().unwrap());

        let (server, port) = listen().await;
        let request = ask_with(&format!("https://localhost:{port}/v1"), &[authority], async {
            answer_encrypted(&acceptor, server.accept().await.unwrap().0).await
        })
        .await;
        let expected = request_to("/v1/chat/completions", &format!("localhost:{port}"));
        assert_eq!(request, expected);

        let (proxy, port) = listen().await;
        let proxy_url = format!("http://me:word@127.0.0.1:{port}");
        let variables = [authority, ("HTTPS_PROXY", &proxy_url), ("NO_PROXY", "")];
        let (connect, request) = ask_with("https://model.invalid/v1", &variables, async {
            let (mut socket, _) = proxy.accept().await.unwrap();
            let connect = read_until(&mut socket, "\r\n\r\n").await;
            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            (connect, answer_encrypted(&acceptor, socket).await)
        })
        .await;
        assert!(
            connect.starts_with("CONNECT model.invalid:443 HTTP/1.1\r\n"),
            "{connect}"
        );
        assert!(
            connect
                .to_lowercase()
                .contains("proxy-authorization: basic bwu6d29yza=="),
            "{connect}"
        );
        assert_eq!(request, request_to("/v1/chat/completions", "model.invalid"));
    }
}
