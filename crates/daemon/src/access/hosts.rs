//! The names under which this daemon may be addressed.
//!
//! Another site can point its own name at 127.0.0.1 and then talk to us as if it were our page. The `Host` header still
//! carries its name, so we reject names that aren't ours. The same list decides which pages (`Origin`) are our own.
//!
//! Browsers send a cookie to every port of its host, so a cookie for `127.0.0.1` reaches any process that listens on
//! any port of this machine, including other users' processes. The page therefore has its own host,
//! `tidelock-<secret>.localhost`, which browsers resolve to loopback on their own. **This name must never leak to
//! anyone without the token or a sign-in code**: with it, they could open a server on another port under the same host
//! and receive the cookie.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::secret::Secret;

/// The port of an address that doesn't name one.
const HTTP_PORT: u16 = 80;

/// The context string for deriving the page's host name. The name stays the same as long as the token does.
const PAGE_HOST_KEY: &str = "tidelock 2026-11-17 host name of the page";

/// How many characters of the derived key are in the name: 128 bits.
const PAGE_HOST_CHARACTERS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    /// Over the Unix socket, from anyone who may open it.
    Unix,
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }
}

#[derive(Clone)]
pub(crate) struct Hosts {
    port: u16,
    own: Vec<String>,
    /// The page's host, the only one of ours that may set cookies.
    page: String,
    allowed: Vec<AllowedHost>,
}

#[derive(Clone, Debug)]
struct AllowedHost {
    name: String,
    /// `None` allows every port, because a proxy in front of us may use a different one.
    port: Option<u16>,
}

impl Hosts {
    pub(crate) fn new(address: SocketAddr, allowed: &[String], token: &Secret) -> Self {
        let mut own: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned).into();
        // An attacker needs a name; an IP address can't be made to point elsewhere.
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        own.push(ip.clone());
        let page = if is_localhost(address.ip()) {
            let key = blake3::derive_key(PAGE_HOST_KEY, token.reveal().as_bytes());
            let secret = blake3::Hash::from_bytes(key).to_hex();
            format!("tidelock-{}.localhost", &secret[..PAGE_HOST_CHARACTERS])
        } else {
            // None of our names lead a browser there.
            ip
        };
        own.push(page.clone());
        let allowed = allowed
            .iter()
            .map(|text| {
                let (name, port) = split_port(text);
                AllowedHost {
                    name: name.to_ascii_lowercase(),
                    port,
                }
            })
            .collect();
        Self {
            port: address.port(),
            own,
            page,
            allowed,
        }
    }

    /// The origin of the page, such as `http://tidelock-….localhost:7180`. Show it only to those who may sign in.
    pub(crate) fn page_origin(&self) -> String {
        format!("http://{}:{}", self.page, self.port)
    }

    /// Whether a browser that uses this `Host` can be signed in: its cookies go to the page's own host, or to one that
    /// the user explicitly allowed.
    pub(crate) fn keeps_cookies(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        let is_page = port.unwrap_or(HTTP_PORT) == self.port && self.page.eq_ignore_ascii_case(name);
        is_page || self.is_allowed(host, HTTP_PORT)
    }

    /// Whether a request with this `Host` is meant for us.
    pub(crate) fn allow_host(&self, transport: Transport, host: &str) -> bool {
        match transport {
            Transport::Unix if host.eq_ignore_ascii_case("localhost") => true,
            Transport::Unix | Transport::Tcp => self.is_own(host) || self.is_allowed(host, HTTP_PORT),
        }
    }

    /// Whether a page with this `Origin` is ours. A proxy in front of us may add TLS; we don't.
    pub(crate) fn allow_origin(&self, origin: &str) -> bool {
        match origin.split_once("://") {
            Some(("http", host)) => self.is_own(host) || self.is_allowed(host, HTTP_PORT),
            Some(("https", host)) => self.is_allowed(host, 443),
            _ => false,
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        port.unwrap_or(HTTP_PORT) == self.port && self.own.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_allowed(&self, host: &str, default_port: u16) -> bool {
        let (name, port) = split_port(host);
        let port = port.unwrap_or(default_port);
        self.allowed.iter().any(|allowed| {
            allowed.name.eq_ignore_ascii_case(name) && allowed.port.is_none_or(|only| only == port)
        })
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hosts")
            .field("port", &self.port)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

/// Whether a browser's `localhost` leads to an address that we listen on.
fn is_localhost(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

/// Splits `name:port`. An IPv6 address keeps its brackets. A port that isn't a number stays with the name, which then
/// matches nothing.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().map_or((host, None), |port| (name, Some(port)))
        }
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str) -> Hosts {
        let allowed = ["box.example".to_owned(), "proxy.example:8443".to_owned()];
        let token = Secret::from_text("the token of this test");
        Hosts::new(address.parse().unwrap(), &allowed, &token)
    }

    #[test]
    fn the_page_has_a_secret_host_that_lasts_as_long_as_the_token() {
        let host = |address: &str, token: &str| {
            let hosts = Hosts::new(address.parse().unwrap(), &[], &Secret::from_text(token));
            assert!(!format!("{hosts:?}").contains(&hosts.page));
            hosts.page_origin()
        };
        let page = host("127.0.0.1:7180", "a");
        let (name, port) = page.rsplit_once(':').unwrap();
        assert_eq!(
            (name.len(), port),
            ("http://tidelock-.localhost".len() + 32, "7180")
        );
        for (address, token, same) in [
            ("127.0.0.1:7180", "a", true),
            ("127.0.0.1:7180", "b", false),
            ("[::1]:7180", "a", true),
            ("0.0.0.0:7180", "a", true),
        ] {
            assert_eq!(host(address, token) == page, same, "{address} {token}");
        }
        for (address, expected) in [
            ("192.0.2.7:7180", "http://192.0.2.7:7180"),
            ("127.0.0.2:7180", "http://127.0.0.2:7180"),
            ("[2001:db8::7]:7180", "http://[2001:db8::7]:7180"),
        ] {
            assert_eq!(host(address, "a"), expected);
        }
    }

    #[test]
    fn cookies_count_on_the_pages_host_and_on_those_allowed_by_hand() {
        let hosts = hosts("127.0.0.1:7180");
        let page = hosts.page.clone();
        for (host, expected) in [
            (format!("{page}:7180"), true),
            (format!("{}:7180", page.to_uppercase()), true),
            (format!("{page}:7181"), false),
            (page.clone(), false),
            (format!("x{page}:7180"), false),
            (format!("x.{page}:7180"), false),
            ("127.0.0.1:7180".to_owned(), false),
            ("localhost:7180".to_owned(), false),
            ("[::1]:7180".to_owned(), false),
            ("box.example".to_owned(), true),
            ("proxy.example:8443".to_owned(), true),
            ("proxy.example".to_owned(), false),
        ] {
            assert_eq!(hosts.keeps_cookies(&host), expected, "{host}");
        }
        assert!(hosts.allow_host(Transport::Tcp, &format!("{page}:7180")));
        assert!(hosts.allow_origin(&hosts.page_origin()));
    }

    #[test]
    fn a_host_is_ours_or_it_is_refused() {
        for (host, over_tcp, over_unix) in [
            ("127.0.0.1:7180", true, true),
            ("localhost:7180", true, true),
            ("LOCALHOST:7180", true, true),
            ("[::1]:7180", true, true),
            ("localhost", false, true),
            ("127.0.0.1", false, false),
            ("127.0.0.1:7181", false, false),
            ("127.0.0.1:", false, false),
            ("127.0.0.1:71800", false, false),
            ("127.0.0.1:+7180", false, false),
            ("evil.example:7180", false, false),
            ("localhost.evil.example:7180", false, false),
            ("user@localhost:7180", false, false),
            ("localhost.:7180", false, false),
            ("", false, false),
            (":7180", false, false),
            ("box.example", true, true),
            ("box.example:1", true, true),
            ("Box.Example:7180", true, true),
            ("proxy.example:8443", true, true),
            ("proxy.example", false, false),
            ("proxy.example:7180", false, false),
        ] {
            let hosts = hosts("127.0.0.1:7180");
            let found = (
                hosts.allow_host(Transport::Tcp, host),
                hosts.allow_host(Transport::Unix, host),
            );
            assert_eq!(found, (over_tcp, over_unix), "{host}");
        }
    }

    #[test]
    fn the_address_itself_is_a_name_and_port_80_goes_without_saying() {
        for (address, host, expected) in [
            ("192.0.2.7:7180", "192.0.2.7:7180", true),
            ("192.0.2.7:7180", "192.0.2.8:7180", false),
            ("[2001:db8::7]:7180", "[2001:db8::7]:7180", true),
            ("127.0.0.1:80", "localhost", true),
            ("127.0.0.1:80", "localhost:80", true),
        ] {
            assert_eq!(
                hosts(address).allow_host(Transport::Tcp, host),
                expected,
                "{address} {host}"
            );
        }
    }

    #[test]
    fn an_origin_is_ours_or_it_is_refused() {
        for (origin, expected) in [
            ("http://127.0.0.1:7180", true),
            ("http://localhost:7180", true),
            ("http://[::1]:7180", true),
            ("http://box.example", true),
            ("https://box.example", true),
            ("https://proxy.example:8443", true),
            ("https://127.0.0.1:7180", false),
            ("http://127.0.0.1:3000", false),
            ("http://localhost", false),
            ("http://evil.example", false),
            ("null", false),
            ("", false),
            ("file://", false),
            ("http://127.0.0.1:7180/", false),
        ] {
            assert_eq!(hosts("127.0.0.1:7180").allow_origin(origin), expected, "{origin}");
        }
    }
}
