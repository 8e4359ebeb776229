//! Rows of decoded columns, selected by a worker of another host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest, ROW_BYTES_MAX, ROW_COLUMNS_MAX, ROWS_SINCE, WantedRows};
use forebay_types::{Cell, CellSource, Error, OperationId, RouteKey, RowTest, SegmentId};

use super::Reads;
use super::cells::DEADLINE;
use crate::connect::{Failure, ask_bytes, deadline_for, misfit};

/// Which rows are wanted of a row group of a Parquet file, or of a chunk of a text file.
#[derive(Clone, Debug)]
pub struct RowsQuestion {
    /// The row group's or chunk's number in the file.
    pub row_group: u32,
    /// The columns, as in [`Cell`].
    pub columns: Vec<u32>,
    /// What the rows must meet; all are wanted where there is none.
    pub tests: Vec<RowTest>,
    /// Only so many, the first ones.
    pub limit: Option<u64>,
    /// Bytes that the answer may have.
    pub bytes_max: u64,
    /// Bytes that it is expected to have.
    pub expected_bytes: u64,
    /// Bytes of the file that are read without an answer.
    pub raw_bytes: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum FarRows {
    /// No worker of another host has all of the columns decoded, or one of this host is there, whose are read in place.
    NotThere,
    /// They have more bytes than the answer may have, or the worker takes longer for them than the file's own bytes do.
    TooMany,
    /// The file's own bytes are there sooner, as far as it was measured, so that nobody was asked.
    Later,
    /// A table of the columns (docs/specs/table.md), as it came: who reads it verifies it.
    Rows {
        /// The table, or what it was compressed to.
        table: Bytes,
        /// Rows that it has, as the worker says.
        rows: u64,
        /// Bytes of the table where it came as one block of LZ4, which are no more than a worker may send so.
        packed: Option<u32>,
    },
}

impl Reads {
    /// Has a worker of another host select rows of decoded columns. Asking for what is not there makes it popular.
    pub(crate) async fn select_rows(&self, operation: OperationId, source: &CellSource, question: RowsQuestion) -> FarRows {
        // Of more columns no worker would hear.
        if question.columns.len() > ROW_COLUMNS_MAX {
            return FarRows::NotThere;
        }
        let Some((mark, route)) = place(source, &question) else { return FarRows::NotThere };
        if self.known_rows.is_quiet(mark) || self.routes.is_any_beside() {
            return FarRows::NotThere;
        }
        let expected = question.expected_bytes;
        let bytes_max = u32::try_from(question.bytes_max).unwrap_or(u32::MAX);
        let wanted = WantedRows {
            operation,
            version: source.version().clone(),
            form: source.form().cloned(),
            row_group: question.row_group,
            columns: question.columns,
            tests: question.tests,
            limit: question.limit,
            bytes_max,
            raw_bytes: question.raw_bytes,
            link_bytes_per_sec: None,
            within_us: None,
        };
        let pace = self.paces.of(source, &wanted.columns);
        let (wanted, deadline) = (&wanted, deadline_for(DEADLINE, bytes_max.into()));
        let later = &AtomicBool::new(false);
        let asked = self.routes.at_holders(route, 0, None, |link| async move {
            if link.connection.version() < ROWS_SINCE {
                return Ok(FarRows::NotThere);
            }
            let link_bytes_per_sec = link.connection.bytes_per_sec();
            let within = pace.within(wanted.raw_bytes, expected, link_bytes_per_sec);
            if within == Some(Duration::ZERO) {
                later.store(true, Ordering::Relaxed);
                // No answer of the worker, which was asked nothing: it may be as silent as before.
                return Err(Failure::Answered(Error::invalid("the file's own bytes are there sooner")));
            }
            let within_us = within.map(|within| u32::try_from(within.as_micros()).unwrap_or(u32::MAX));
            let request = DataRequest::SelectRows(WantedRows { link_bytes_per_sec, within_us, ..wanted.clone() });
            let (reply, payload) = ask_bytes(&link, &request, deadline).await?;
            match reply {
                DataReply::Selected(selected) => {
                    self.routes.heard(link.worker, selected.hint);
                    let may_be = payload.len() as u64 <= u64::from(bytes_max)
                        && selected.packed.is_none_or(|bytes| bytes <= ROW_BYTES_MAX && link_bytes_per_sec.is_some());
                    match selected.fits {
                        true if may_be => Ok(FarRows::Rows { table: payload, rows: selected.rows, packed: selected.packed }),
                        true => Err(misfit(&link, "selection of rows")),
                        false => Ok(FarRows::TooMany),
                    }
                }
                DataReply::NoCell { hint } => {
                    self.routes.heard(link.worker, hint);
                    Ok(FarRows::NotThere)
                }
                _ => Err(misfit(&link, "selection of rows")),
            }
        });
        match asked.await {
            Ok(answer) => {
                match &answer {
                    FarRows::Rows { table, .. } => self.counters.socket(table.len() as u64),
                    FarRows::NotThere => self.known_rows.absent(mark),
                    FarRows::TooMany | FarRows::Later => {}
                }
                answer
            }
            Err(_) if later.load(Ordering::Relaxed) => {
                self.paces.passed(source, &wanted.columns);
                FarRows::Later
            }
            Err(error) => {
                tracing::debug!(key = %source.version().key, error = %error.into_error(), "no rows: the raw bytes are read");
                self.known_rows.absent(mark);
                FarRows::NotThere
            }
        }
    }
}

/// What columns are remembered by that are asked for together, and where they are asked for.
fn place(source: &CellSource, question: &RowsQuestion) -> Option<(SegmentId, RouteKey)> {
    debug_assert!(!question.columns.is_empty(), "rows of no column");
    let mut mark = 0;
    for column in &question.columns {
        let (SegmentId(id), _) = source.place(Cell { row_group: question.row_group, column: *column })?;
        mark ^= id;
    }
    Some((SegmentId(mark), source.rows(question.row_group)?.1))
}
