//! Bytes of objects, and what is known of them.
//!
//! Owns: the way of a read from a kept pin over the workers to shared storage, which answers where no worker can; how long a
//! worker may take for it; what was last heard of decoded columns, and what reading them takes; and the plans whose windows reads move.
//!
//! Never does: mix bytes of two versions, give part of a range, or fetch what nobody asked for, which `prefetch` does.
//!
//! Start with [`Reads::read`].

mod at_hand;
mod cells;
mod courses;
mod current;
mod fallback;
mod first;
mod lookup;
mod paces;
mod patience;
mod rows;
mod version;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::RangeSpec;
use forebay_shared_storage::{Storage, StorageSettings};
use forebay_types::{Key, Mount, Result, SEGMENT_BYTES};

pub use courses::Planned;
pub(crate) use courses::{Course, Courses};
pub use current::ObjectRead;
pub use first::FirstRead;
pub use rows::{FarRows, RowsQuestion};

use crate::connect::{Control, Given, Link};
use crate::counters::Counters;
use crate::route::{NoAnswer, Routes};
use cells::KnownCells;
use fallback::Fallback;
use paces::Paces;
use patience::Patience;

/// Reads of objects.
pub(crate) struct Reads {
    pub(crate) fallback: Fallback,
    pub(crate) courses: Arc<Courses>,
    routes: Arc<Routes>,
    counters: Arc<Counters>,
    patience: Patience,
    known_cells: KnownCells,
    /// The same of columns of which rows are asked for together.
    known_rows: KnownCells,
    pub(crate) paces: Paces,
}

impl Reads {
    pub(crate) fn new(routes: Arc<Routes>, control: Arc<Control>, storage: StorageSettings, counters: Arc<Counters>) -> Self {
        Self {
            fallback: Fallback::new(storage, control),
            courses: Arc::default(),
            patience: Patience::new(routes.connections.read_deadline()),
            known_cells: KnownCells::default(),
            known_rows: KnownCells::default(),
            paces: Paces::default(),
            routes,
            counters,
        }
    }

    /// What workers have answered; where none could, what shared storage answers to `ask`.
    async fn or_storage<T, Fut>(
        &self,
        answered: Result<T, NoAnswer>,
        mount: impl FnOnce() -> Result<Arc<Mount>>,
        key: &Key,
        ask: impl FnOnce(Storage) -> Fut,
    ) -> Result<T>
    where
        Fut: Future<Output = Result<T>>,
    {
        match answered {
            Ok(answer) => Ok(answer),
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => self.fallback.instead(&*mount()?, key, error, ask).await,
        }
    }

    /// Counts what a worker gave for `range` of a segment, and keeps its pin.
    fn taken(&self, given: Given, link: &Link, range: Range<u32>) -> Bytes {
        let len = range.len();
        let bytes = match given {
            Given::Pinned(pin) => {
                self.counters.in_place(pin.len());
                self.routes.connections.pins.keep(&pin);
                pin.bytes(range)
            }
            Given::Copied(bytes) => {
                if link.in_place().is_some_and(|session| session.keeps_much()) {
                    // The worker's room for pins may be used up by pins that are kept here for nobody.
                    self.routes.connections.pins.shed();
                }
                self.counters.socket(bytes.len() as u64);
                bytes
            }
        };
        debug_assert_eq!(bytes.len(), len, "an answer was checked when it came");
        bytes
    }
}

/// The first byte that is wanted; of a suffix the object's first, since its own depends on the object's size.
fn start_of(range: RangeSpec) -> u64 {
    match range {
        RangeSpec::Bounded { start, .. } | RangeSpec::From { start } => start,
        RangeSpec::Suffix { .. } => 0,
    }
}

/// A range of an object that lies within one segment, as one of that segment.
fn in_segment(range: &Range<u64>) -> Range<u32> {
    let start = (range.start % SEGMENT_BYTES) as u32;
    let len = range.end - range.start;
    assert!(u64::from(start) + len <= SEGMENT_BYTES, "{range:?} does not lie within one segment");
    start..start + len as u32
}
