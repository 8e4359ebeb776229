//! What clients read and write in the memory of the DRAM tier.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_block_store::{BlockStore, Pinned};
use forebay_runtime::{Defect, planted};
use forebay_transport::Place;
use parking_lot::Mutex;

use crate::origin::Claims;

/// Pins of one session at most; beyond that answers are copies.
const PINS_MAX: usize = 65_536;
/// Blocks that one session may be writing in place; beyond that they are sent.
const PLACES_MAX: usize = 64;

/// Reading in place: whether the DRAM tier is handed over, and how much of it clients have pinned.
pub(crate) struct InPlace {
    store: BlockStore,
    claims: Arc<Claims>,
    pub(crate) on: bool,
    bytes: Arc<AtomicU64>,
}

/// The pins of one session. They end by a notice or with the session, never by time.
pub(crate) struct SessionPins {
    store: BlockStore,
    claims: Arc<Claims>,
    all_bytes: Arc<AtomicU64>,
    pins: Mutex<Pins>,
}

#[derive(Default)]
struct Pins {
    next_id: u64,
    held: HashMap<u64, Pinned>,
    /// Under ids of their own among those of pins.
    places: HashMap<u64, Box<dyn Place>>,
    closed: bool,
}

impl InPlace {
    pub(crate) fn new(store: BlockStore, claims: Arc<Claims>, on: bool) -> Self {
        Self { store, claims, on, bytes: Arc::default() }
    }

    /// Bytes of the pages that clients have pinned now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Whether no more may be pinned for reading in place.
    pub(crate) fn is_full(&self) -> bool {
        is_full(&self.store, &self.claims)
    }

    /// A session without pins.
    pub(crate) fn session(&self) -> SessionPins {
        let (store, claims) = (self.store.clone(), Arc::clone(&self.claims));
        SessionPins { store, claims, all_bytes: Arc::clone(&self.bytes), pins: Mutex::default() }
    }
}

impl SessionPins {
    /// Keeps `pinned` for the client and gives the pin's id; gives it back when too much is pinned.
    pub(crate) fn add(&self, pinned: Pinned) -> Result<u64, Pinned> {
        let full = is_full(&self.store, &self.claims);
        let mut pins = self.pins.lock();
        if full || pins.closed || pins.held.len() >= PINS_MAX {
            return Err(pinned);
        }
        if planted(Defect::PinsFreed) {
            pins.next_id += 1;
            return Ok(pins.next_id - 1);
        }
        self.all_bytes.fetch_add(pinned.len() as u64, Relaxed);
        let id = pins.next_id;
        pins.next_id += 1;
        let known = pins.held.insert(id, pinned);
        assert!(known.is_none() && !pins.places.contains_key(&id), "a pin's id is given once");
        Ok(id)
    }

    /// Keeps a place that the client is to write to and gives its pin; gives it back when there are too many.
    pub(crate) fn add_place(&self, place: Box<dyn Place>) -> Result<u64, Box<dyn Place>> {
        let mut pins = self.pins.lock();
        if pins.closed || pins.places.len() >= PLACES_MAX {
            return Err(place);
        }
        let id = pins.next_id;
        pins.next_id += 1;
        let known = pins.places.insert(id, place);
        assert!(known.is_none() && !pins.held.contains_key(&id), "a place's id is given once");
        Ok(id)
    }

    /// The client has written to a place.
    pub(crate) fn take_place(&self, id: u64) -> Option<Box<dyn Place>> {
        self.pins.lock().places.remove(&id)
    }

    /// The client is done with these, or gives places up; ids that are not known are nothing.
    pub(crate) fn release(&self, ids: &[u64]) {
        let (released, places): (Vec<Pinned>, Vec<Box<dyn Place>>) = {
            let mut pins = self.pins.lock();
            let released = ids.iter().filter_map(|id| pins.held.remove(id)).collect();
            (released, ids.iter().filter_map(|id| pins.places.remove(id)).collect())
        };
        drop(places);
        self.give_back(released);
    }

    /// The session has ended; a pin that is added from now on is refused. What there is stays pinned as long as what this gives back
    /// lives: the client may be reading there, or writing, as long as it has its end of the connection open.
    pub(crate) fn close(&self) -> Option<LeftPinned> {
        let mut pins = self.pins.lock();
        pins.closed = true;
        if pins.held.is_empty() && pins.places.is_empty() {
            return None;
        }
        let held = std::mem::take(&mut pins.held).into_values().collect();
        Some(LeftPinned { held, _places: std::mem::take(&mut pins.places), all_bytes: Arc::clone(&self.all_bytes) })
    }

    fn give_back(&self, released: Vec<Pinned>) {
        drop(LeftPinned { held: released, _places: HashMap::new(), all_bytes: Arc::clone(&self.all_bytes) });
    }
}

impl Drop for SessionPins {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// A pin of one page holds its whole block, which is what the store counts. What is held for readers to come is not theirs yet.
fn is_full(store: &BlockStore, claims: &Claims) -> bool {
    store.pinned_bytes().saturating_sub(claims.bytes()) > store.pinned_bytes_max()
}

/// What nobody gives back any more but with all of the rest.
pub(crate) struct LeftPinned {
    held: Vec<Pinned>,
    _places: HashMap<u64, Box<dyn Place>>,
    all_bytes: Arc<AtomicU64>,
}

impl Drop for LeftPinned {
    fn drop(&mut self) {
        let bytes: usize = self.held.drain(..).map(|pinned| pinned.len()).sum();
        let before = self.all_bytes.fetch_sub(bytes as u64, Relaxed);
        debug_assert!(before >= bytes as u64, "pins are given back once");
    }
}
