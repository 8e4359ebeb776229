//! Rows of cells for readers of other hosts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_placement::{FarSelecting, Packing};
use forebay_protocol::{AccessWay, ROW_BYTES_MAX, WantedRows};
use forebay_runtime::time::timeout;
use forebay_table::{Selected, Selecting, pack, select};
use forebay_types::{Cell, Error, ErrorKind, Result, RowTest, SegmentId};
use parking_lot::Mutex;

use super::Forms;
use super::thread::Threads;
use crate::signals::Made;

/// Threads that select at most.
const THREADS_MAX: usize = 4;
/// Selections that wait for one of them at most: who comes then reads raw bytes.
const WAITING_MAX: usize = 64;
/// How long a selection and its wait may take: who asks waits a second longer, and takes the worker for gone then.
const WITHIN: Duration = Duration::from_secs(2);

/// The threads that select rows, from the first selection on, and what selecting and compressing answers has cost.
#[derive(Default)]
pub(crate) struct Selectors {
    threads: OnceLock<Option<Threads>>,
    packing: Arc<Mutex<Packing>>,
    /// Of all rows, and of those that meet a condition: of many row groups only its columns are looked at.
    speeds: [Arc<Mutex<FarSelecting>>; 2],
    /// Questions that are being answered, or wait for it.
    under_way: AtomicUsize,
}

/// A question that is being answered, until this is dropped.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a question ends once");
    }
}

/// Rows that were selected, as they are sent.
pub(crate) struct Sending {
    /// Rows that there are.
    pub(crate) rows: u64,
    /// What is sent; none where it would have more bytes than it may.
    pub(crate) payload: Option<Bytes>,
    /// Bytes of the table where the payload is what it was compressed to.
    pub(crate) packed: Option<u32>,
}

/// How many bytes an answer may have that is sent, and what its way carries.
struct Way {
    most: u64,
    link_bytes_per_sec: Option<u64>,
}

impl Way {
    /// Bytes that a table may have before it is seen whether it goes compressed.
    fn before(&self, packing: &Packing) -> u64 {
        let packs = packing.pays(self.most, self.link_bytes_per_sec);
        let before = if packs { packing.before(self.most).min(ROW_BYTES_MAX.into()) } else { self.most };
        assert!((self.most..=ROW_BYTES_MAX.into()).contains(&before), "{before} bytes before {} are left", self.most);
        before
    }

    /// What is sent of a selection.
    fn sending(&self, selected: Selected, packing: &Mutex<Packing>) -> Sending {
        let rows = selected.rows;
        let Some(table) = selected.table else { return Sending { rows: 0, payload: None, packed: None } };
        let plain = |table: Bytes| match table.len() as u64 <= self.most {
            true => Sending { rows, payload: Some(table), packed: None },
            false => Sending { rows: 0, payload: None, packed: None },
        };
        let bytes = table.len() as u64;
        let now = *packing.lock();
        if !now.pays(bytes, self.link_bytes_per_sec) {
            if self.link_bytes_per_sec.is_some() {
                packing.lock().passed(bytes);
            }
            return plain(table);
        }
        let began = forebay_runtime::now();
        let less = pack(&table);
        let took = forebay_runtime::now().saturating_duration_since(began);
        packing.lock().packed(bytes, less.len() as u64, took.as_secs_f64());
        match u32::try_from(table.len()) {
            Ok(len) if less.len() < table.len() && less.len() as u64 <= self.most => {
                Sending { rows, payload: Some(less), packed: Some(len) }
            }
            _ => plain(table),
        }
    }
}

impl Selectors {
    fn threads(&self) -> Option<&Threads> {
        let start = || {
            Threads::start("forebay-select", threads(), WAITING_MAX)
                .inspect_err(|error| tracing::warn!(%error, "no threads to select rows: readers of other hosts read raw bytes"))
                .ok()
        };
        self.threads.get_or_init(start).as_ref()
    }

    /// One question more, and how many there are with it.
    fn begin(&self) -> (UnderWay<'_>, usize) {
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        (UnderWay(&self.under_way), before + 1)
    }
}

/// Threads that select.
fn threads() -> usize {
    let cores = available_parallelism().map_or(1, usize::from);
    (cores / 2).clamp(1, THREADS_MAX)
}

impl Forms {
    /// Rows of cells that are all in the DRAM tier. Else the wishes are noted, and what is wished for often enough is made.
    /// `Invalid` for a condition that is none on these columns.
    pub(crate) async fn select_rows(&self, wanted: WantedRows) -> Result<Option<Sending>> {
        let began = forebay_runtime::now();
        RowTest::check(&wanted.tests, wanted.columns.len())?;
        if wanted.columns.is_empty() {
            return Err(Error::invalid("rows of no column at all are asked for"));
        }
        let most = u64::from(wanted.bytes_max.min(ROW_BYTES_MAX));
        let raw_bytes = wanted.raw_bytes.min(wanted.version.size);
        let Some(source) = self.source(wanted.version, wanted.form).await? else { return Ok(None) };
        let named = source.named();
        let mut cells: Vec<(SegmentId, Bytes)> = Vec::with_capacity(wanted.columns.len());
        for column in &wanted.columns {
            let cell = Cell { row_group: wanted.row_group, column: *column };
            let (Some((id, _)), Some(index)) = (source.place(cell), cell.index()) else { return Ok(None) };
            self.wishes.asked(wanted.operation, named, cell);
            match self.origin.store.pin_whole(id) {
                Some((pinned, bytes)) => {
                    self.signals.popularity.learn(id, named, index);
                    cells.push((id, pinned.into_bytes().slice(..bytes as usize)));
                }
                None => self.wishes.wish(wanted.operation, named, cell, id),
            }
        }
        if cells.len() < wanted.columns.len() {
            return Ok(None);
        }
        let way = Way { most, link_bytes_per_sec: wanted.link_bytes_per_sec };
        let within = wanted.within_us.map(|micros| Duration::from_micros(micros.into()));
        let what = Selecting { tests: wanted.tests, limit: wanted.limit, bytes_max: 0 };
        let columns = cells.iter().map(|(_, bytes)| bytes.clone()).collect();
        let sending = match self.selected(columns, what, way, within).await {
            Ok(Some(sending)) => sending,
            Ok(None) => return Ok(None),
            Err(error) => match error.kind() {
                ErrorKind::Invalid => return Err(error),
                ErrorKind::Corrupt => {
                    // They are made once more.
                    let key = &source.version().key;
                    tracing::warn!(%key, row_group = wanted.row_group, %error, "decoded columns can't be read: they are dropped");
                    let ids: Vec<_> = cells.into_iter().map(|(id, _)| id).collect();
                    ids.into_iter().flat_map(|id| [id, id.packed()]).for_each(|id| {
                        self.origin.store.free(id);
                    });
                    return Ok(None);
                }
                _ => return Ok(None),
            },
        };
        let took = began.elapsed();
        let sent = sending.payload.as_ref().map_or(0, |payload| payload.len() as u64);
        debug_assert!(sent <= most, "an answer of more than it may have");
        let bytes: u64 = cells.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        self.asked_for_rows(wanted.operation, &source, (wanted.row_group, wanted.columns.as_slice()), (bytes, took));
        // Their work is that of the rows, and no replica of one column alone would take any of it.
        for (id, _) in &cells {
            self.signals.popularity.read(wanted.operation, *id, 1, 0, Duration::ZERO);
        }
        if sending.payload.is_some() {
            for (_, bytes) in &cells {
                self.signals.accessed.made(&Made {
                    operation: Some(wanted.operation),
                    object: (named.mount, &named.key),
                    start: 0,
                    bytes: bytes.len() as u64,
                    times: 1,
                    way: AccessWay::Decoded,
                });
            }
            self.count(named.mount, sent, took);
            // Few rows are sent of columns that were read whole.
            self.room.read(bytes, took);
            table::WORKER_SELECTED_BYTES.only().add(sent);
            table::WORKER_SPARED_BYTES.only().add(raw_bytes.saturating_sub(sent));
        }
        Ok(Some(sending))
    }

    /// What is sent of the rows of some columns: nothing where selecting them takes longer than it may. None where too much is being selected.
    async fn selected(
        &self,
        columns: Vec<Bytes>,
        what: Selecting,
        way: Way,
        within: Option<Duration>,
    ) -> Result<Option<Sending>> {
        let Some(started) = self.selectors.threads() else { return Ok(None) };
        let (_under_way, under_way) = self.selectors.begin();
        let bytes: u64 = columns.iter().map(|bytes| bytes.len() as u64).sum();
        // Of a limit without a condition the first rows are looked at, and no others.
        let is_short = what.limit.is_some() && what.tests.is_empty();
        let speed = Arc::clone(&self.selectors.speeds[usize::from(!what.tests.is_empty())]);
        let now = *speed.lock();
        if !is_short && !now.keeps(bytes, under_way, threads(), within) {
            speed.lock().turned_down();
            return Ok(Some(Sending { rows: 0, payload: None, packed: None }));
        }
        let packing = Arc::clone(&self.selectors.packing);
        let bytes_max = way.before(&packing.lock()) as usize;
        let what = Selecting { bytes_max, ..what };
        let answer = move || {
            let began = forebay_runtime::now();
            let sending = way.sending(select(&columns, &what)?, &packing);
            if !is_short && sending.payload.is_some() {
                speed.lock().selected(bytes, began.elapsed().as_secs_f64());
            }
            Ok(sending)
        };
        if let Ok(answer) = timeout(WITHIN, started.have(answer)).await { answer.map(Some) } else { Ok(None) }
    }
}
