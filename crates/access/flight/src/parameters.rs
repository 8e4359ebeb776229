use std::collections::HashMap;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::{ParamValues, ScalarValue};
use futures::TryStreamExt;
use tonic::Status;

use crate::status::internal;

/// Reads the values that a client binds to a prepared statement: one row. None when it binds nothing.
pub(crate) async fn read(stream: PeekableFlightDataStream) -> Result<Option<ParamValues>, Status> {
    let data = stream.map_err(|status| FlightError::Tonic(Box::new(status)));
    let batches: Vec<RecordBatch> = FlightRecordBatchStream::new_from_flight_data(data).try_collect().await.map_err(internal)?;
    let mut rows = batches.iter().filter(|batch| batch.num_rows() > 0);
    let Some(row) = rows.next() else { return Ok(None) };
    if row.num_rows() > 1 || rows.next().is_some() {
        return Err(Status::invalid_argument("bind one row of parameters at a time"));
    }
    values(row).map(Some)
}

/// `$name` parameters by name when every column has one, else `$1`, `$2` by the columns' order.
fn values(row: &RecordBatch) -> Result<ParamValues, Status> {
    let schema = row.schema();
    let named = |name: &str| name.trim_start_matches('$').starts_with(|c: char| c.is_alphabetic() || c == '_');
    let by_name = name_prefixed(schema.fields().iter().map(|field| field.name().as_str()))
        && schema.fields().iter().all(|field| named(field.name()));
    let scalar = |ix: usize| ScalarValue::try_from_array(row.column(ix), 0).map_err(internal);
    if by_name {
        let named = schema.fields().iter().enumerate();
        let values = named.map(|(ix, field)| Ok((field.name().trim_start_matches('$').to_string(), scalar(ix)?)));
        return Ok(ParamValues::from(values.collect::<Result<HashMap<_, _>, Status>>()?));
    }
    let values = (0..row.num_columns()).map(scalar).collect::<Result<Vec<_>, Status>>()?;
    Ok(ParamValues::from(values))
}

/// Only names that a client took from the statement begin with `$`; others are of its own making.
fn name_prefixed<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    names.all(|name| name.starts_with('$'))
}
