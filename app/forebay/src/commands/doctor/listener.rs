//! Who listens at an address of this machine, as the system says.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the system calls a socket that listens.
const LISTENS: &str = "0A";

/// Somebody who listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listener {
    /// The number of the account.
    pub(super) user: u32,
    /// The number of the process and its program's name, where this account may know them.
    pub(super) process: Option<(u32, String)>,
}

/// Whoever listens where this address would be listened at; none where the system does not say.
pub(super) fn at(address: SocketAddr) -> Option<Listener> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let (user, inode) = tables.iter().flat_map(|table| table.lines()).find_map(|line| socket(line, address))?;
    Some(Listener { user, process: process_of(inode) })
}

/// The account and the inode of the socket in a line of the table, where it listens there.
fn socket(line: &str, address: SocketAddr) -> Option<(u32, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, user, inode) = (fields.get(1)?, fields.get(3)?, fields.get(7)?, fields.get(9)?);
    let (ip, port) = local.split_once(':')?;
    let (ip, port) = (ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
    let is_there = ip == address.ip() || ip.is_unspecified() || address.ip().is_unspecified();
    if *state != LISTENS || port != address.port() || !is_there {
        return None;
    }
    Some((user.parse().ok()?, inode.parse().ok()?))
}

/// An address of the table: each four bytes of it as one number of this machine.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let four = |at: usize| Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(four(0)?))),
        32 => {
            let mut bytes = [0u8; 16];
            for (part, at) in bytes.chunks_exact_mut(4).zip((0..32).step_by(8)) {
                part.copy_from_slice(&four(at)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

fn process_of(inode: u64) -> Option<(u32, String)> {
    let wanted = format!("socket:[{inode}]");
    let is_it = |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == wanted.as_str());
    let has_it =
        |process: &u32| fs::read_dir(format!("/proc/{process}/fd")).is_ok_and(|files| files.filter_map(Result::ok).any(is_it));
    let mut processes = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let process = processes.find(has_it)?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some((process, name.trim_end().to_string()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_is_found() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let found = at(listener.local_addr().unwrap()).expect("the system says so");
            assert_eq!(found.user, rustix::process::geteuid().as_raw());
            assert_eq!(found.process.map(|(process, _)| process), Some(std::process::id()));
        }
        assert_eq!(at("127.0.0.1:1".parse().unwrap()), None);
    }

    #[test]
    fn lines_of_the_table_are_read() {
        let line = |local: &str, state: &str| {
            format!(
                "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000   998        0 14486919 1 0 100 0 0 10 0"
            )
        };
        let found = |line: &str, address: &str| socket(line, address.parse().unwrap());
        let (address, one, all) = ("127.0.0.1:7401", line("0100007F:1CE9", "0A"), line("00000000:1CE9", "0A"));
        assert_eq!((found(&one, address), found(&all, address)), (Some((998, 14_486_919)), Some((998, 14_486_919))));
        assert_eq!((found(&one, "127.0.0.2:7401"), found(&one, "127.0.0.1:7402")), (None, None));
        assert_eq!(found(&line("0100007F:1CE9", "01"), address), None, "a connection");
        assert_eq!(found(&line("00000000000000000000000001000000:1CE9", "0A"), "[::1]:7401"), Some((998, 14_486_919)));
        assert_eq!(found("  sl  local_address rem_address   st", address), None);
    }
}
