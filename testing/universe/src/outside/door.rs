//! The network as the runtime's door has it: who connects, who listens; and how late a disk is.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_runtime::simulated::{self, Accepts, Connecting};
use parking_lot::Mutex;

use super::disks;
use super::network::{Network, State};
use super::wire::wire;

/// What the runtime asks of a network.
pub(crate) fn door(network: &Network) -> Arc<dyn simulated::Network> {
    Arc::new(Door(Arc::clone(network.state())))
}

struct Door(Arc<Mutex<State>>);

impl simulated::Network for Door {
    fn connect(&self, to: &str) -> Connecting {
        let (reads, writes, hears) = match self.0.lock().connect(to) {
            Ok(connecting) => connecting,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        // Given up with what waits for it.
        let wire = wire(&self.0, reads, writes);
        Box::pin(async move {
            hears.await.unwrap_or_else(|_| Err(io::ErrorKind::ConnectionReset.into()))?;
            Ok(wire)
        })
    }

    fn bind(&self, at: &str) -> io::Result<Box<dyn Accepts>> {
        let address = self.0.lock().bind(at)?;
        Ok(Box::new(Accepting { state: Arc::clone(&self.0), address }))
    }

    fn host(&self) -> String {
        self.0.lock().host()
    }

    fn disk_late(&self) -> Duration {
        disks::late()
    }

    fn happens(&self, place: &'static str) -> bool {
        self.0.lock().points.happens(place)
    }

    fn has_ended(&self) -> bool {
        self.0.lock().turn_has_ended()
    }
}

struct Accepting {
    state: Arc<Mutex<State>>,
    address: String,
}

impl Accepts for Accepting {
    fn local_address(&self) -> String {
        self.address.clone()
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(simulated::Wire, String)>> {
        let accepted = self.state.lock().accept(&self.address, context.waker());
        accepted.map_ok(|(reads, writes, from)| (wire(&self.state, reads, writes), from))
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.state.lock().unbind(&self.address);
    }
}
