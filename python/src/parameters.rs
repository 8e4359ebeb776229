//! From Python's values to values of SQL for a statement's parameters; what has no type in SQL is refused.

use std::collections::HashMap;

use forebay_sql::{ParamValues, ScalarValue};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

/// Days from 0001-01-01, which Python counts from 1, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_163;

/// Values for a statement's parameters: a mapping for `$name`, a sequence for `$1`, `$2`.
pub(crate) fn values(parameters: &Bound<'_, PyAny>) -> PyResult<ParamValues> {
    if let Ok(named) = parameters.cast::<PyDict>() {
        let values = named.iter().map(|(name, value)| {
            let name: String = name.extract()?;
            Ok((name.trim_start_matches('$').to_string(), scalar(&value)?))
        });
        return Ok(ParamValues::from(values.collect::<PyResult<HashMap<_, _>>>()?));
    }
    let values = parameters.try_iter()?.map(|value| scalar(&value?));
    Ok(ParamValues::from(values.collect::<PyResult<Vec<_>>>()?))
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(ScalarValue::Boolean(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(ScalarValue::Int64(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ScalarValue::Float64(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(ScalarValue::Utf8(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyBytes>() {
        return Ok(ScalarValue::Binary(Some(value.extract()?)));
    }
    if value.hasattr("toordinal")? {
        return moment(value);
    }
    Err(PyTypeError::new_err(format!(
        "a parameter is None, bool, int, float, str, bytes, date or datetime, not {}",
        value.get_type().name()?
    )))
}

/// A date, or a datetime to the microsecond; one with a time zone becomes UTC.
fn moment(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if !value.hasattr("microsecond")? {
        let days = value.call_method0("toordinal")?.extract::<i64>()? - EPOCH_DAYS;
        return Ok(ScalarValue::Date32(i32::try_from(days).ok()));
    }
    let offset = value.call_method0("utcoffset")?;
    let (moment, zone) = match offset.is_none() {
        true => (value.clone(), None),
        false => (value.call_method1("__sub__", (offset,))?, Some("+00:00".into())),
    };
    let field = |name: &str| moment.getattr(name)?.extract::<i64>();
    let days = moment.call_method0("toordinal")?.extract::<i64>()? - EPOCH_DAYS;
    let seconds = ((days * 24 + field("hour")?) * 60 + field("minute")?) * 60 + field("second")?;
    Ok(ScalarValue::TimestampMicrosecond(Some(seconds * 1_000_000 + field("microsecond")?), zone))
}
