//! From Python's values to values of SQL for a statement's parameters; what has no type in SQL is refused.

use std::collections::HashMap;

use forebay_sql::{ParamValues, ScalarValue};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
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
    // Each of its letters would be a value.
    if parameters.is_instance_of::<PyString>() || parameters.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("parameters is a list of values, or a mapping of their names"));
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
        return whole(value);
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
    if value.hasattr("as_tuple")? {
        return decimal(value);
    }
    // NumPy's truths are no indices, and of its floats only those of 64 bits are Python's.
    let kind = value.getattr("dtype").and_then(|of| of.getattr("kind")).and_then(|kind| kind.extract::<String>());
    match kind.as_deref() {
        Ok("b") => return Ok(ScalarValue::Boolean(Some(value.is_truthy()?))),
        Ok("f") => return Ok(ScalarValue::Float64(Some(value.extract()?))),
        _ => {}
    }
    // A whole number of another library, NumPy's say.
    if value.hasattr("__index__")? {
        return whole(&value.call_method0("__index__")?);
    }
    Err(PyTypeError::new_err(format!(
        "a parameter is None, bool, int, float, str, bytes, date, datetime or Decimal, not {}",
        value.get_type().name()?
    )))
}

/// A whole number of 64 bits, with a sign or without one.
fn whole(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if let Ok(value) = value.extract::<i64>() {
        return Ok(ScalarValue::Int64(Some(value)));
    }
    let value = value.extract::<u64>().map_err(|_| {
        PyOverflowError::new_err(
            "a parameter that is a whole number has 64 bits at most: give it as text, and cast it in the statement",
        )
    })?;
    Ok(ScalarValue::UInt64(Some(value)))
}

/// Digits that a decimal has at most.
const DIGITS_MAX: i64 = 38;

/// A `decimal.Decimal`, with as many digits after the point as it has.
fn decimal(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let refused =
        || PyValueError::new_err(format!("a Decimal parameter is a number of {DIGITS_MAX} digits at most, not {value}"));
    let (is_negative, digits, exponent): (u8, Vec<u8>, i64) = value.call_method0("as_tuple")?.extract().map_err(|_| refused())?;
    let scale = (-exponent).max(0);
    let zeros = exponent.max(0);
    let precision = (digits.len() as i64).saturating_add(zeros).max(scale).max(1);
    if precision > DIGITS_MAX {
        return Err(refused());
    }
    let places = digits.iter().map(|digit| i128::from(*digit)).chain((0..zeros).map(|_| 0));
    let number = places.fold(0i128, |number, digit| number * 10 + digit);
    let number = if is_negative == 1 { -number } else { number };
    Ok(ScalarValue::Decimal128(Some(number), precision as u8, scale as i8))
}

/// A date, or a datetime to the microsecond, Pandas' to the nanosecond; one with a time zone becomes UTC. What is not equal to
/// itself, as Pandas' `NaT`, is no time.
fn moment(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if PyAnyMethods::ne(value, value)? {
        return Ok(ScalarValue::Null);
    }
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
    let micros = seconds * 1_000_000 + field("microsecond")?;
    let nanos = if moment.hasattr("nanosecond")? { field("nanosecond")? } else { 0 };
    if nanos == 0 {
        return Ok(ScalarValue::TimestampMicrosecond(Some(micros), zone));
    }
    let exact = micros.checked_mul(1_000).and_then(|whole| whole.checked_add(nanos));
    let exact = exact.ok_or_else(|| PyOverflowError::new_err("a time with nanoseconds is one from 1677 to 2262"))?;
    Ok(ScalarValue::TimestampNanosecond(Some(exact), zone))
}
