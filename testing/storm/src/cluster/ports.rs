//! Addresses that nothing listens at for now, of which each is given out once.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems give to connections of their own choice.
const FIRST: u16 = 18_000;
const LAST: u16 = 30_000;

static NEXT: AtomicU16 = AtomicU16::new(FIRST);

/// A free address of this machine.
pub(super) fn free() -> io::Result<SocketAddr> {
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if port > LAST {
            return Err(io::Error::other(format!("no port from {FIRST} to {LAST} is free")));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
}
