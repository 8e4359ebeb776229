//! Decoded columns, read in place.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest};
use forebay_types::{Cell, CellSource, OperationId, SegmentId};
use lru::LruCache;
use parking_lot::Mutex;

use super::Reads;
use crate::connect::{ask_bytes, given, misfit};

/// How long a worker that has no cell is not asked for it again.
const QUIET: Duration = Duration::from_secs(1);
/// Cells remembered.
const KNOWN_MAX: usize = 65_536;
/// How long a worker may take: what it has is in its memory, and without it the raw bytes are read.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);

/// What was last heard of cells: that a worker has it, or when it was said that none has.
pub(crate) struct KnownCells(Mutex<LruCache<SegmentId, Option<Instant>>>);

impl Default for KnownCells {
    fn default() -> Self {
        // Its memory grows with what is in it.
        let mut known = LruCache::unbounded();
        known.resize(NonZeroUsize::new(KNOWN_MAX).expect("not 0"));
        Self(Mutex::new(known))
    }
}

impl KnownCells {
    pub(super) fn is_quiet(&self, cell: SegmentId) -> bool {
        matches!(self.0.lock().peek(&cell), Some(Some(absent)) if absent.elapsed() < QUIET)
    }

    fn there(&self, cell: SegmentId) {
        self.0.lock().put(cell, None);
    }

    pub(super) fn absent(&self, cell: SegmentId) {
        self.0.lock().put(cell, Some(forebay_runtime::now()));
    }
}

impl Reads {
    /// Whether a worker had the cell when it was last asked for.
    pub(crate) fn had_cell(&self, source: &CellSource, cell: Cell) -> bool {
        source.place(cell).is_some_and(|(id, _)| matches!(self.known_cells.0.lock().get(&id), Some(None)))
    }

    /// A decoded column in place, if a worker whose tier is mapped here holds it.
    pub(crate) async fn read_cell(&self, operation: OperationId, source: &CellSource, cell: Cell) -> Option<Bytes> {
        let (id, route) = source.place(cell)?;
        if let Some(pin) = self.routes.connections.pins.find(id, &(0..1)) {
            let range = pin.range.clone();
            pin.session.outbox.count(operation, id, pin.len());
            self.counters.cached(pin.len());
            return Some(pin.bytes(range));
        }
        if self.known_cells.is_quiet(id) {
            return None;
        }
        // Each host has its own: elsewhere a cell is of no use here.
        let beside = self.routes.beside(route);
        let asked = self.routes.at_holders(route, 0, beside, |link| async move {
            if link.in_place().is_none() {
                // Over a network the file's compressed bytes are fewer to send than all rows: `select_rows` asks for some.
                return Ok(None);
            }
            let request = DataRequest::ReadCell {
                operation,
                version: source.version().clone(),
                form: source.form().cloned(),
                row_group: cell.row_group,
                column: cell.column,
                in_place: true,
            };
            let (reply, payload) = ask_bytes(&link, &request, DEADLINE).await?;
            match reply {
                DataReply::Read { in_place, hint } => {
                    self.routes.heard(link.worker, hint);
                    let bytes = in_place.map_or(payload.len() as u64, |(_, span)| span.len);
                    let range = 0..u32::try_from(bytes).unwrap_or(u32::MAX);
                    let given = given(&link, in_place, payload, id, range.clone())?;
                    Ok(Some(self.taken(given, &link, range)))
                }
                DataReply::NoCell { hint } => {
                    self.routes.heard(link.worker, hint);
                    Ok(None)
                }
                _ => Err(misfit(&link, "read of a cell")),
            }
        });
        match asked.await {
            Ok(Some(bytes)) => {
                self.known_cells.there(id);
                Some(bytes)
            }
            Ok(None) => {
                self.known_cells.absent(id);
                None
            }
            Err(error) => {
                tracing::debug!(key = %source.version().key, error = %error.into_error(), "no cell: the raw bytes are read");
                self.known_cells.absent(id);
                None
            }
        }
    }
}
