//! Small questions to the machine: how much memory do we use, where are we reached.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The resident memory of this process, where the system tells it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Where somebody on this machine reaches an address that we listen on.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_know_how_much_memory_we_use() {
        let bytes = resident_bytes().unwrap();
        assert!((100_000..100_000_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        for (address, expected) in [
            ("127.0.0.1:7180", "127.0.0.1:7180"),
            ("0.0.0.0:7180", "127.0.0.1:7180"),
            ("[::]:7180", "[::1]:7180"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        }
    }
}
