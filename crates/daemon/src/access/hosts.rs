//! Under which names this daemon may be addressed.
//!
//! A page of another site can make its own name point to 127.0.0.1 and then talk to us as if it were ours; the
//! `Host` header still carries its name, so a name that is not ours is refused. The same list says which
//! pages (`Origin`) are our own.

use std::net::{IpAddr, SocketAddr};

/// The port of an address that does not name one.
const HTTP_PORT: u16 = 80;

/// How a request reached the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Over TCP, from whoever can reach the address.
    Tcp,
    /// Over the Unix socket, from whoever may open it.
    Unix,
}

impl Transport {
    /// The name of the way, as the log has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }
}

/// The names of one daemon.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    port: u16,
    own: Vec<String>,
    allowed: Vec<AllowedHost>,
}

/// A name that was allowed by hand.
#[derive(Clone, Debug)]
struct AllowedHost {
    name: String,
    /// `None` allows every port, because what forwards to us may have another one.
    port: Option<u16>,
}

impl Hosts {
    pub(crate) fn new(address: SocketAddr, allowed: &[String]) -> Self {
        let mut own: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned).into();
        // An attacker needs a name; an address cannot be made to point elsewhere.
        own.push(match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
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
            allowed,
        }
    }

    /// Whether a request with this `Host` is meant for us.
    pub(crate) fn allow_host(&self, transport: Transport, host: &str) -> bool {
        match transport {
            Transport::Unix if host.eq_ignore_ascii_case("localhost") => true,
            Transport::Unix | Transport::Tcp => self.is_own(host) || self.is_allowed(host, HTTP_PORT),
        }
    }

    /// Whether a page with this `Origin` is ours. What forwards to us may add TLS; we do not.
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

/// Splits `name:port`. The brackets of an IPv6 address stay with it; a port that is no number stays with the
/// name, which then matches nothing.
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
        Hosts::new(address.parse().unwrap(), &allowed)
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
