//! Drafts as rows, in which the tasks of a statement tell who asked it what they have written.

use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::cast::{as_string_array, as_uint64_array};
use datafusion::common::internal_err;
use datafusion::error::Result;
use forebay_client::Draft;
use forebay_types::Error;

use crate::error::external;

/// A draft, as JSON, and rows of the task: those of all of its drafts are told with the first.
pub(super) fn schema() -> SchemaRef {
    let field = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![field("draft", DataType::Utf8), field("rows", DataType::UInt64)]))
}

/// What a task has written, which had so many rows.
pub(super) fn told(drafts: &[Draft], rows: u64) -> Result<RecordBatch> {
    if drafts.is_empty() && rows > 0 {
        return internal_err!("{rows} rows were written to no file");
    }
    let written = |draft: &Draft| serde_json::to_string(draft).map_err(|error| external(Error::internal(error.to_string())));
    let texts = drafts.iter().map(written).collect::<Result<Vec<String>>>()?;
    let counts: Vec<u64> = (0..drafts.len()).map(|place| if place == 0 { rows } else { 0 }).collect();
    debug_assert_eq!(counts.iter().sum::<u64>(), rows, "the rows of a task are told once");
    Ok(RecordBatch::try_new(schema(), vec![Arc::new(StringArray::from(texts)), Arc::new(UInt64Array::from(counts))])?)
}

/// Adds what tasks have told to what is known, and gives their rows.
pub(super) fn heard(batch: &RecordBatch, drafts: &mut Vec<Draft>) -> Result<u64> {
    let (texts, counts) = match batch.columns() {
        [texts, counts] => (as_string_array(texts)?, as_uint64_array(counts)?),
        _ => return internal_err!("what tasks have written is told in {} columns", batch.num_columns()),
    };
    for place in 0..texts.len() {
        let read = serde_json::from_str(texts.value(place));
        drafts.push(read.map_err(|error| external(Error::internal(format!("a draft can't be read: {error}"))))?);
    }
    Ok(counts.values().iter().fold(0u64, |rows, count| rows.saturating_add(*count)))
}

#[cfg(test)]
mod tests {
    use forebay_types::WorkerId;

    use super::*;

    #[test]
    fn drafts_and_their_rows_arrive_as_they_were_told() {
        let of = |path: &str| Draft { path: path.parse().unwrap(), worker: WorkerId(7), upload: 1 << 60, parts: 2, bytes: 300 };
        let sent = [of("/lake/x/a=1/b.parquet"), of("/lake/x/ä%20 c.parquet")];
        let mut got = Vec::new();
        assert_eq!(heard(&told(&sent, 12).unwrap(), &mut got).unwrap(), 12);
        assert_eq!(heard(&told(&[], 0).unwrap(), &mut got).unwrap(), 0);
        assert_eq!(got, sent);
        assert!(told(&[], 1).is_err(), "rows that are in no file are lost");
    }
}
