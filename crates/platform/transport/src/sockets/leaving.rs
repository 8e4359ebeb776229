//! What the system still has of that which was sent.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use parking_lot::Mutex;

/// `SIOCOUTQ`, where it is this number.
const UNACKNOWLEDGED: rustix::ioctl::Opcode = 0x5411;
const IS_KNOWN: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

/// Bytes of one connection that the system has, and the host does not.
type Held = Box<dyn Fn() -> u64 + Send + Sync>;

/// Connections by which answers leave, for who measures how fast they do.
#[derive(Clone, Default)]
pub struct Leaving(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    /// The number of the one that came last.
    last: u64,
    all: HashMap<u64, Held>,
}

/// A connection among them, until it is dropped.
pub(crate) struct Line {
    of: Leaving,
    number: u64,
}

impl Leaving {
    /// Bytes of answers that are told to be sent, and have not reached the hosts of those who asked: the system keeps them until then. By TCP
    /// and on Linux only; of others none are known. A call of the system for each connection: not for every answer.
    pub fn held(&self) -> u64 {
        self.0.lock().all.values().fold(0_u64, |sum, held| sum.saturating_add(held()))
    }

    /// A connection that begins, which says about how many bytes it is: by TLS a little more, and less while a long answer is on its way.
    pub(crate) fn begin(&self, held: impl Fn() -> u64 + Send + Sync + 'static) -> Line {
        let mut lines = self.0.lock();
        lines.last += 1;
        let number = lines.last;
        let before = lines.all.insert(number, Box::new(held));
        assert!(before.is_none(), "each connection has a number of its own");
        Line { of: self.clone(), number }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let held = self.of.0.lock().all.remove(&self.number);
        debug_assert!(held.is_some(), "a connection ends once");
    }
}

/// Bytes that were sent by a TCP connection, and of which the other host has not said that it has them. 0 where the system does not say.
#[expect(unsafe_code, reason = "a call of the system that there is no other way to")]
pub(crate) fn unacknowledged(fd: impl AsFd) -> u64 {
    if !IS_KNOWN {
        return 0;
    }
    // SAFETY: the call writes one `int`, for which the getter has room, and nothing else.
    let held = unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Getter::<UNACKNOWLEDGED, std::ffi::c_int>::new()) };
    held.ok().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}
