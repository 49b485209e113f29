//! Where a model is asked: the address, taken apart once.

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use tokio_rustls::rustls::pki_types::ServerName;

/// Where completions are asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Endpoint {
    /// The name of the host or its address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) transport: Transport,
    /// As it stands in the request.
    pub(super) authority: String,
    pub(super) path: String,
}

/// How bytes go there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Transport {
    /// As they are.
    Plain,
    /// Over TLS, with a certificate for this name.
    Tls(ServerName<'static>),
}

/// An address that nobody can be asked at. It does not repeat the address: there may be a password in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum BadAddress {
    #[error("it is not a URL")]
    NotUrl,
    #[error("it has to begin with http:// or https://")]
    Scheme,
    #[error("it names no host")]
    Host,
    #[error("there is a user name in it; set a key instead")]
    User,
}

impl Endpoint {
    /// Takes an address apart, and goes below it.
    pub(super) fn below(base_url: &str) -> Result<Self, BadAddress> {
        let uri: Uri = base_url.trim().parse().map_err(|_| BadAddress::NotUrl)?;
        let scheme = uri.scheme().ok_or(BadAddress::Scheme)?;
        let authority = uri.authority().ok_or(BadAddress::Host)?;
        if authority.as_str().contains('@') {
            return Err(BadAddress::User);
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(BadAddress::Host);
        }
        let (transport, usual_port) = if *scheme == Scheme::HTTP {
            (Transport::Plain, 80)
        } else if *scheme == Scheme::HTTPS {
            let name = ServerName::try_from(host.clone()).map_err(|_| BadAddress::Host)?;
            (Transport::Tls(name), 443)
        } else {
            return Err(BadAddress::Scheme);
        };
        Ok(Self {
            port: port_of(authority, usual_port)?,
            host,
            transport,
            authority: authority.as_str().to_owned(),
            path: completions(uri.path_and_query()),
        })
    }

    /// Whether nobody on the way can read what is sent.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.transport, Transport::Tls(_))
    }
}

/// The port. What is no number, or stands behind an empty colon, is not taken for the usual one.
fn port_of(authority: &Authority, usual: u16) -> Result<u16, BadAddress> {
    let after_host = authority.as_str().len() > authority.host().len();
    match authority.port_u16() {
        Some(port) => Ok(port),
        None if after_host => Err(BadAddress::NotUrl),
        None => Ok(usual),
    }
}

/// The path of completions below a base. A query stays, since some servers want their version there.
fn completions(base: Option<&PathAndQuery>) -> String {
    let path = base.map_or("", PathAndQuery::path).trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    match base.and_then(PathAndQuery::query) {
        Some(query) => format!("{path}/chat/completions?{query}"),
        None => format!("{path}/chat/completions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let tls = |name: &'static str| Transport::Tls(ServerName::try_from(name).unwrap());
        let cases = [
            (
                "https://api.openai.com/v1",
                "api.openai.com",
                443,
                tls("api.openai.com"),
                "api.openai.com",
                "/v1/chat/completions",
            ),
            (
                "https://api.openai.com/v1/",
                "api.openai.com",
                443,
                tls("api.openai.com"),
                "api.openai.com",
                "/v1/chat/completions",
            ),
            (
                " http://localhost:11434/v1\n",
                "localhost",
                11434,
                Transport::Plain,
                "localhost:11434",
                "/v1/chat/completions",
            ),
            (
                "http://127.0.0.1:8080",
                "127.0.0.1",
                8080,
                Transport::Plain,
                "127.0.0.1:8080",
                "/chat/completions",
            ),
            (
                "http://[::1]:8080/x",
                "::1",
                8080,
                Transport::Plain,
                "[::1]:8080",
                "/x/chat/completions",
            ),
            (
                "https://[::1]/",
                "::1",
                443,
                tls("::1"),
                "[::1]",
                "/chat/completions",
            ),
            (
                "HTTPS://Example.org/a/chat/completions",
                "Example.org",
                443,
                tls("Example.org"),
                "Example.org",
                "/a/chat/completions",
            ),
            (
                "https://x.example/d?api-version=7",
                "x.example",
                443,
                tls("x.example"),
                "x.example",
                "/d/chat/completions?api-version=7",
            ),
        ];
        for (url, host, port, transport, authority, path) in cases {
            let expected = Endpoint {
                host: host.to_owned(),
                port,
                transport,
                authority: authority.to_owned(),
                path: path.to_owned(),
            };
            assert_eq!(Endpoint::below(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        let cases = [
            ("", BadAddress::NotUrl),
            ("api.openai.com/v1", BadAddress::NotUrl),
            ("/v1", BadAddress::Scheme),
            ("ftp://x.example/", BadAddress::Scheme),
            ("https://", BadAddress::NotUrl),
            ("https://me:word@x.example/v1", BadAddress::User),
            ("http://x.example:/v1", BadAddress::NotUrl),
            ("http://x.example:99999/v1", BadAddress::NotUrl),
            ("https://a b/", BadAddress::NotUrl),
        ];
        for (url, expected) in cases {
            assert_eq!(Endpoint::below(url), Err(expected), "{url}");
        }
    }
}
