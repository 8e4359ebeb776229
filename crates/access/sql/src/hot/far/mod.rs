//! Rows of decoded columns that workers of other hosts select, where they are fewer bytes than the file's own.

mod branches;
mod condition;
mod costs;
mod values;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_plan::metrics::Count;
use forebay_client::{FarPart, FarRows, FarScan, RowsQuestion};
use forebay_table::unpack;
use forebay_types::{CellSource, RowTest};
use parking_lot::Mutex;

pub(super) use self::condition::steps;
pub(super) use self::costs::Costs;
use crate::hot::cells::Cells;
use crate::hot::row_group::RowGroup;

/// What a scan's partition has learnt of workers' selections, and what it counts of them for `EXPLAIN ANALYZE`.
#[derive(Clone)]
pub(super) struct Far {
    scan: Arc<Mutex<FarScan>>,
    /// Row groups or chunks of which rows were sent.
    selected: Count,
    /// Bytes of these rows.
    sent: Count,
    /// Bytes of files that were not sent therefore.
    spared: Count,
}

/// What is wanted of a row group or chunk.
pub(super) struct Wanted {
    pub(super) part: usize,
    pub(super) columns: Vec<usize>,
    pub(super) tests: Vec<RowTest>,
    pub(super) limit: Option<u64>,
    /// What to send of it costs.
    pub(super) costs: FarPart,
}

impl Far {
    pub(super) fn new(counter: impl Fn(&'static str) -> Count) -> Self {
        Self {
            scan: Arc::default(),
            selected: counter("selected_afar"),
            sent: counter("selected_bytes_sent"),
            spared: counter("raw_bytes_spared"),
        }
    }

    /// Rows of a row group or chunk, with the bytes that were sent; none where the file's own bytes are to be read.
    pub(super) async fn open(
        &self,
        cells: &Cells,
        source: &CellSource,
        wanted: Wanted,
        schema: &SchemaRef,
    ) -> Option<(RowGroup, usize)> {
        let bytes_max = self.scan.lock().ask(&wanted.costs)?;
        let (part, costs) = (wanted.part, wanted.costs);
        let columns = numbers(&wanted.columns)?;
        let question = RowsQuestion {
            row_group: u32::try_from(part).ok()?,
            columns: columns.clone(),
            tests: wanted.tests,
            limit: wanted.limit,
            bytes_max,
            expected_bytes: self.scan.lock().expects(&costs, bytes_max),
            raw_bytes: costs.raw_bytes,
        };
        let (table, rows, packed) = match cells.select(source, question).await {
            FarRows::NotThere | FarRows::Later => return None,
            FarRows::TooMany => {
                self.scan.lock().did_not_fit();
                return None;
            }
            FarRows::Rows { table, rows, packed } => (table, rows, packed),
        };
        let bytes = table.len();
        assert!(bytes as u64 <= bytes_max, "{bytes} bytes came where {bytes_max} were the most");
        let began = forebay_runtime::now();
        let whole = if let Some(len) = packed { unpack(&table, len as usize) } else { Ok(table) };
        let opened = whole.and_then(|table| RowGroup::of_rows(&table, schema, rows, costs.rows)).unwrap_or_else(|error| {
            let key = &source.version().key;
            tracing::warn!(%key, part, %error, "rows that a worker has sent can't be read: the raw form is");
            None
        });
        let Some(opened) = opened else {
            // What is of other types once is so again.
            self.scan.lock().did_not_fit();
            return None;
        };
        cells.opened(source, &columns, bytes as u64, began.elapsed());
        self.scan.lock().fitted(&costs, bytes as u64);
        self.selected.add(1);
        self.sent.add(bytes);
        self.spared.add(usize::try_from(costs.raw_bytes).unwrap_or(usize::MAX).saturating_sub(bytes));
        Some((opened, bytes))
    }
}

/// Columns as workers know them; none of more than there can be.
pub(super) fn numbers(columns: &[usize]) -> Option<Vec<u32>> {
    columns.iter().map(|column| u32::try_from(*column).ok()).collect()
}
