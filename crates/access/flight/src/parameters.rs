use std::collections::HashMap;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::{ParamValues, ScalarValue};
use futures::TryStreamExt;
use tonic::Status;

use crate::status::internal;

/// Reads the values that a client binds to a prepared statement: one row. None when it binds nothing. Kept is that row alone,
/// however much a client goes on to send.
pub(crate) async fn read(stream: PeekableFlightDataStream) -> Result<Option<ParamValues>, Status> {
    let data = stream.map_err(|status| FlightError::Tonic(Box::new(status)));
    let mut batches = FlightRecordBatchStream::new_from_flight_data(data);
    let mut bound = None;
    while let Some(batch) = batches.try_next().await.map_err(internal)? {
        match batch.num_rows() {
            0 => {}
            1 if bound.is_none() => bound = Some(values(&batch)?),
            _ => return Err(Status::invalid_argument("bind one row of parameters at a time")),
        }
    }
    Ok(bound)
}

/// Columns named as `$name` parameters go by name; any others, `$1` and a client's own names among them, by their order.
fn values(row: &RecordBatch) -> Result<ParamValues, Status> {
    let schema = row.schema();
    let scalar = |ix: usize| ScalarValue::try_from_array(row.column(ix), 0).map_err(internal);
    let names: Option<Vec<&str>> = schema.fields().iter().map(|field| parameter_name(field.name())).collect();
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        let values = names.iter().enumerate().map(|(ix, name)| Ok((name.to_string(), scalar(ix)?)));
        return Ok(ParamValues::from(values.collect::<Result<HashMap<_, _>, Status>>()?));
    }
    let values = (0..row.num_columns()).map(scalar).collect::<Result<Vec<_>, Status>>()?;
    Ok(ParamValues::from(values))
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
    use super::numbered;

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
