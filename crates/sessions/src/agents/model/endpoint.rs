//! The address of a model, validated once.

use std::net::IpAddr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use reqwest::Url;

/// Where to request completions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Endpoint {
    pub(super) url: Url,
    /// The host and the port as the owner wrote them.
    pub(super) authority: String,
}

/// An unusable address. The message doesn't repeat the address: there may be a password in it.
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
    /// Parses a base URL and appends the completions path.
    pub(super) fn below(base_url: &str) -> Result<Self, BadAddress> {
        let uri: Uri = base_url.trim().parse().map_err(|_| BadAddress::NotUrl)?;
        let scheme = uri.scheme().ok_or(BadAddress::Scheme)?;
        let authority = uri.authority().ok_or(BadAddress::Host)?;
        if authority.as_str().contains('@') {
            return Err(BadAddress::User);
        }
        if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
            return Err(BadAddress::Scheme);
        }
        if has_bad_port(authority) {
            return Err(BadAddress::NotUrl);
        }
        let url = format!("{scheme}://{authority}{}", completions(uri.path_and_query()));
        Ok(Self {
            url: url.parse().map_err(|_| BadAddress::Host)?,
            authority: authority.as_str().to_owned(),
        })
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether the server is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

/// Whether something other than a port number follows the host. A colon without a port is rejected too.
fn has_bad_port(authority: &Authority) -> bool {
    let has_more = authority.as_str().len() > authority.host().len();
    has_more && authority.port_u16().is_none()
}

/// The completions path below a base. A query stays, since some servers expect their version there.
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
    fn completions_are_below_the_address() {
        let cases = [
            (
                "https://api.openai.com/v1",
                "api.openai.com",
                "https://api.openai.com/v1/chat/completions",
                false,
            ),
            (
                "https://api.openai.com/v1/",
                "api.openai.com",
                "https://api.openai.com/v1/chat/completions",
                false,
            ),
            (
                " http://localhost:11434/v1\n",
                "localhost:11434",
                "http://localhost:11434/v1/chat/completions",
                true,
            ),
            (
                "http://127.0.0.1:8080",
                "127.0.0.1:8080",
                "http://127.0.0.1:8080/chat/completions",
                true,
            ),
            (
                "http://[::1]:8080/x",
                "[::1]:8080",
                "http://[::1]:8080/x/chat/completions",
                true,
            ),
            ("https://[::1]/", "[::1]", "https://[::1]/chat/completions", true),
            (
                "HTTPS://Example.org/a/chat/completions",
                "Example.org",
                "https://example.org/a/chat/completions",
                false,
            ),
            (
                "https://x.example/d?api-version=7",
                "x.example",
                "https://x.example/d/chat/completions?api-version=7",
                false,
            ),
        ];
        for (base, authority, url, is_loopback) in cases {
            let endpoint = Endpoint::below(base).unwrap();
            let seen = (
                endpoint.authority.as_str(),
                endpoint.url.as_str(),
                endpoint.is_loopback(),
            );
            assert_eq!(seen, (authority, url, is_loopback), "{base}");
            assert_eq!(endpoint.is_encrypted(), url.starts_with("https:"), "{base}");
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
