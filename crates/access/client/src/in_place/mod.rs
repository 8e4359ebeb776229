//! Reading a worker's DRAM tier where it is, and writing blocks of temporary nodes to it.
//!
//! A worker of the same host and user hands over its tier (a memfd sealed against resizing) as a read-only descriptor.
//! The client maps it whole; an answer then is a pin and the place of the bytes. While the pin stands the worker
//! neither evicts nor reuses those pages, so every [`bytes::Bytes`] given out holds its pin, however long it lives, also
//! past the client that made it. The client keeps pins for a while, so that reading the same bytes again needs no call.
//!
//! The guarantee: a pin belongs to its Unix connection. It ends when its last holder drops it, or when the client's end of the
//! socket is closed, never by time, and every pin that is held keeps that end open. When the worker dies, the mapping keeps the
//! memory, and bytes that were given out stay as they are. When the connection ends while the worker lives on, because either
//! side breaks the protocol or the worker stops in a process that goes on, calls fail, and kept pins are not used from that moment
//! on; but the worker leaves what is pinned as it is until the socket is closed, which is when the last of these bytes are dropped.
//!
//! Owns: the mapped tiers, the pins and what is told of them, and the places that are written to.
//!
//! Never does: choose a worker or connect anew, which `connect` and `route` do.
//!
//! Start with [`Session::connect`] and [`Pin`].
//!
//! What is written in place is a block that the worker has made and nobody sees yet; the client writes it by a descriptor
//! that comes with the first one, and says so. Between the answer that gives the place and the write nothing waits, so a
//! place is never written to after it was given up.

mod mapping;
mod outbox;
mod pin;
mod pin_cache;
mod session;
mod writing;

use forebay_types::{Error, HostId, Result, ResultExt};

pub(crate) use outbox::{Outbox, Rescued, pin_of_node, pin_of_read};
pub(crate) use pin::Pin;
pub(crate) use pin_cache::PinCache;
pub(crate) use session::Session;
pub(crate) use writing::Writing;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// This host's identity: the kernel's boot id. Containers of one host share it; whether they share sockets shows when
/// the socket is tried.
pub fn host_id() -> Result<HostId> {
    if let Some(host) = forebay_runtime::simulated::host() {
        return Ok(HostId(host));
    }
    let text = std::fs::read_to_string(BOOT_ID).context(|| BOOT_ID)?;
    match text.trim() {
        "" => Err(Error::internal(format!("{BOOT_ID} is empty"))),
        id => Ok(HostId(id.to_string())),
    }
}
