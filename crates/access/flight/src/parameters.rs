//! Values that clients bind to prepared statements, and the `?` of JDBC and ODBC as the engine numbers parameters.

use std::collections::HashMap;
use std::future::ready;

use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::arrow::ipc::root_as_message;
use forebay_sql::{ParamValues, ScalarValue};
use futures::TryStreamExt;
use tonic::Status;

use crate::status::{internal, refused};

/// Bytes of the values of a statement, as they come and as they are kept: columns of a message may name the same bytes, of which each value
/// is a copy.
const BYTES_MAX: usize = 16 << 20;

/// Values of a statement's parameters.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) values: ParamValues,
    /// What they take.
    pub(crate) bytes: usize,
}

/// Reads the values that a client binds to a prepared statement: one row. None when it binds nothing. Kept is that row alone,
/// however much a client goes on to send.
pub(crate) async fn read(stream: PeekableFlightDataStream) -> Result<Option<Bound>, Status> {
    let mut come = 0;
    let bounded = move |data: FlightData| {
        come += data.data_header.len() + data.data_body.len();
        ready(if come > BYTES_MAX { Err(too_many().into()) } else { as_they_are(data) })
    };
    let data = stream.map_err(|status| FlightError::Tonic(Box::new(status))).and_then(bounded);
    let mut batches = FlightRecordBatchStream::new_from_flight_data(data);
    let mut bound = None;
    while let Some(batch) = batches.try_next().await.map_err(refused)? {
        match batch.num_rows() {
            0 => {}
            1 if bound.is_none() => bound = Some(values(&batch)?),
            _ => return Err(Status::invalid_argument("bind one row of parameters at a time")),
        }
    }
    Ok(bound)
}

/// Refuses what is compressed: the library makes room for as many bytes as it says that it has, whatever that is.
fn as_they_are(data: FlightData) -> Result<FlightData, FlightError> {
    // What is no message the decoder refuses.
    let Ok(message) = root_as_message(&data.data_header) else { return Ok(data) };
    let rows = message.header_as_record_batch();
    let rows = rows.or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
    match rows.is_some_and(|rows| rows.compression().is_some()) {
        true => Err(Status::invalid_argument("bind parameters without compression").into()),
        false => Ok(data),
    }
}

/// Columns named as `$name` parameters go by name; any others, `$1` and a client's own names among them, by their order.
fn values(row: &RecordBatch) -> Result<Bound, Status> {
    let schema = row.schema();
    let (mut scalars, mut bytes) = (Vec::with_capacity(row.num_columns()), 0);
    for column in row.columns() {
        let scalar = ScalarValue::try_from_array(column, 0).map_err(internal)?;
        bytes += scalar.size();
        if bytes > BYTES_MAX {
            return Err(too_many());
        }
        scalars.push(scalar);
    }
    let names: Option<Vec<&str>> = schema.fields().iter().map(|field| parameter_name(field.name())).collect();
    let values = match names.filter(|names| !names.is_empty()) {
        Some(names) => ParamValues::from(names.into_iter().map(str::to_string).zip(scalars).collect::<HashMap<String, _>>()),
        None => ParamValues::from(scalars),
    };
    Ok(Bound { values, bytes })
}

fn too_many() -> Status {
    Status::invalid_argument(format!("bind parameters of {} MiB at most: larger values are read from files", BYTES_MAX >> 20))
}

/// A statement whose `?`, as JDBC and ODBC write parameters, are `$1`, `$2`, ..; what stands in quotes or comments stays.
pub(crate) fn numbered(sql: &str) -> String {
    let (mut out, mut count, mut rest) = (String::with_capacity(sql.len() + 8), 0, sql);
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '\'' | '"' | '`' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            '?' => {
                count += 1;
                out.push_str(&format!("${count}"));
                rest = &rest[1..];
                continue;
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

/// `name` of `$name`; none of `$1`.
fn parameter_name(column: &str) -> Option<&str> {
    column.strip_prefix('$').filter(|name| !name.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use arrow_flight::utils::batches_to_flight_data;
    use forebay_sql::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use forebay_sql::arrow::ipc::CompressionType;
    use forebay_sql::arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};

    use super::*;

    #[test]
    fn values_that_name_the_same_bytes_are_bounded_as_what_they_take() {
        let text: ArrayRef = std::sync::Arc::new(StringArray::from(vec!["x".repeat(3 << 20)]));
        let row = |columns: usize| RecordBatch::try_from_iter((0..columns).map(|ix| (format!("${ix}"), text.clone()))).unwrap();
        assert!(values(&row(5)).is_ok_and(|bound| bound.bytes > 15 << 20));
        assert_eq!(values(&row(6)).err().unwrap().code(), tonic::Code::InvalidArgument);
    }

    #[test]
    fn what_says_how_long_it_is_decoded_is_not_decoded() {
        let values: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![7; 1_000]));
        let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
        for data in batches_to_flight_data(&batch.schema(), vec![batch.clone()]).unwrap() {
            assert!(as_they_are(data).is_ok());
        }
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
        let (mut tracker, mut context) = (DictionaryTracker::new(false), IpcWriteContext::default());
        let (_, made) = IpcDataGenerator::default().encode(&batch, &mut tracker, &options, &mut context).unwrap();
        let refused = as_they_are(FlightData { data_header: made.ipc_message.into(), ..FlightData::default() });
        assert!(refused.unwrap_err().to_string().contains("without compression"));
    }

    #[test]
    fn question_marks_are_parameters_but_in_quotes_and_comments() {
        let sql = "select '?''?', \"a?\" -- ?\n from t /* ? */ where ü = ? and b in (?,?)";
        let numbered_sql = "select '?''?', \"a?\" -- ?\n from t /* ? */ where ü = $1 and b in ($2,$3)";
        assert_eq!(numbered(sql), numbered_sql);
        for same in ["select $1, $name", "select '?", "--?", "/*?", "/*/?*/", ""] {
            assert_eq!(numbered(same), same);
        }
    }
}
