//! Rows of decoded columns that a worker selects for who can't read them in place.

use std::sync::Arc;

use forebay_types::{ObjectVersion, OperationId, ROW_TESTS_MAX, RowTest, TextForm};
use serde::{Deserialize, Serialize};

use crate::limits::{ROW_COLUMNS_MAX, at_most};
use crate::tiers::Hint;

/// Rows of some columns of one row group of a Parquet file, or of one chunk of a text file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedRows {
    /// Who reads.
    pub operation: OperationId,
    /// The version that the reader has opened.
    pub version: ObjectVersion,
    /// What the lines of a text file are taken for; none for a Parquet file.
    pub form: Option<Arc<TextForm>>,
    /// The row group's or chunk's number in the file.
    pub row_group: u32,
    /// The columns' numbers among the leaves of the file's schema; among the form's columns for text. At least one.
    #[serde(deserialize_with = "at_most::<ROW_COLUMNS_MAX, _, _>")]
    pub columns: Vec<u32>,
    /// What the rows must meet; all are wanted where there is none.
    #[serde(deserialize_with = "at_most::<ROW_TESTS_MAX, _, _>")]
    pub tests: Vec<RowTest>,
    /// Only so many, the first ones; none for all.
    pub limit: Option<u64>,
    /// Bytes that the answer may have: with more of them the file's own are read.
    pub bytes_max: u32,
    /// Bytes of the file that are read without an answer, for the count of what was spared.
    pub raw_bytes: u64,
    /// Bytes a second that the connection carries, as the reader has measured it: an answer may come compressed. None where that is not
    /// known, or the answer is to come as it is.
    pub link_bytes_per_sec: Option<u64>,
    /// Microseconds that selecting them may take: else the file's own bytes are there sooner, as the reader has measured it. None where it
    /// does not know.
    pub within_us: Option<u32>,
}

/// How a selection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedRows {
    /// Rows that the payload has.
    pub rows: u64,
    /// It is all that was asked for. Else there would have been more bytes than it may have, or it would have taken longer than it may, and
    /// there are none.
    pub fits: bool,
    /// How the worker stands.
    pub hint: Hint,
    /// Bytes of the table where the payload is one block of LZ4 that becomes it; none where the payload is the table.
    pub packed: Option<u32>,
}
