use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_block_store::{BlockStore, Pinned};
use parking_lot::Mutex;

/// Pins of one session at most; beyond that answers are copies.
const PINS_MAX: usize = 65_536;

/// Reading in place: whether the DRAM tier is handed over, and how much of it clients have pinned.
pub(crate) struct InPlace {
    store: BlockStore,
    on: bool,
    bytes: Arc<AtomicU64>,
}

/// The pins of one session. They end by a notice or with the session, never by time.
pub(crate) struct SessionPins {
    store: BlockStore,
    all_bytes: Arc<AtomicU64>,
    pins: Mutex<Pins>,
}

#[derive(Default)]
struct Pins {
    next_id: u64,
    held: HashMap<u64, Pinned>,
    closed: bool,
}

impl InPlace {
    pub(crate) fn new(store: BlockStore, on: bool) -> Self {
        Self { store, on, bytes: Arc::default() }
    }

    /// Whether this worker hands its DRAM tier over at all.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Bytes of the pages that clients have pinned now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// A session without pins.
    pub(crate) fn session(&self) -> SessionPins {
        SessionPins { store: self.store.clone(), all_bytes: Arc::clone(&self.bytes), pins: Mutex::default() }
    }
}

impl SessionPins {
    /// Keeps `pinned` for the client and gives the pin's id; gives it back when too much is pinned.
    pub(crate) fn add(&self, pinned: Pinned) -> Result<u64, Pinned> {
        // A pin of one page holds its whole block, which is what the store counts.
        let full = self.store.pinned_bytes() > self.store.pinned_bytes_max();
        let mut pins = self.pins.lock();
        if full || pins.closed || pins.held.len() >= PINS_MAX {
            return Err(pinned);
        }
        self.all_bytes.fetch_add(pinned.len() as u64, Relaxed);
        let id = pins.next_id;
        pins.next_id += 1;
        pins.held.insert(id, pinned);
        Ok(id)
    }

    /// The client is done with these; ids that are not known are nothing.
    pub(crate) fn release(&self, ids: &[u64]) {
        let released: Vec<Pinned> = {
            let mut pins = self.pins.lock();
            ids.iter().filter_map(|id| pins.held.remove(id)).collect()
        };
        self.give_back(released);
    }

    /// The session has ended; a pin that is added from now on is refused.
    pub(crate) fn close(&self) {
        let released: Vec<Pinned> = {
            let mut pins = self.pins.lock();
            pins.closed = true;
            std::mem::take(&mut pins.held).into_values().collect()
        };
        self.give_back(released);
    }

    fn give_back(&self, released: Vec<Pinned>) {
        let bytes: usize = released.iter().map(|pinned| pinned.len()).sum();
        drop(released);
        self.all_bytes.fetch_sub(bytes as u64, Relaxed);
    }
}

impl Drop for SessionPins {
    fn drop(&mut self) {
        self.close();
    }
}
