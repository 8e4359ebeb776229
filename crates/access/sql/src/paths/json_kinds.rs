//! Which field of JSON is an object in one line and none in another, and in which: the engine, which makes no type of both, names neither.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::sync::Arc;

use datafusion::datasource::file_format::FileFormat;
use forebay_types::Error;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use serde_json::{Map, Value};

/// Bytes of a file, and of what they are decompressed to, in which it is looked for.
const MOST_BYTES: u64 = 4 << 20;
const OBJECT: &str = "an object";

/// What was seen first of each field, and in which line.
type Seen = HashMap<String, (&'static str, usize)>;

/// The error with the field and the lines, where these are found in what the file begins with.
pub(super) async fn named(store: &Arc<dyn ObjectStore>, format: &dyn FileFormat, file: &ObjectMeta, error: Error) -> Error {
    let Ok(start) = store.get_range(&file.location, 0..file.size.min(MOST_BYTES)).await else { return error };
    let mut plain = Vec::new();
    let start = Cursor::new(start);
    // What is cut short ends with an error after all that it has.
    let _ = match format.compression_type().map(|compression| compression.convert_read(start.clone())) {
        Some(Ok(reader)) => reader.take(MOST_BYTES).read_to_end(&mut plain),
        Some(Err(_)) => return error,
        None => start.take(MOST_BYTES).read_to_end(&mut plain),
    };
    match mixed(&plain) {
        Some(why) => error.context(why),
        None => error,
    }
}

/// The first field that is of another kind than in a line before. What is no record ends the search.
fn mixed(text: &[u8]) -> Option<String> {
    let mut records = serde_json::Deserializer::from_slice(text).into_iter::<Map<String, Value>>();
    let (mut seen, mut line, mut at) = (Seen::new(), 1, 0);
    while let Some(Ok(record)) = records.next() {
        let end = records.byte_offset();
        line += text[at..end].iter().filter(|byte| **byte == b'\n').count();
        at = end;
        if let Some(found) = record.iter().find_map(|(name, value)| of_value(name, value, line, &mut seen)) {
            return Some(found);
        }
    }
    None
}

fn of_value(path: &str, value: &Value, line: usize, seen: &mut Seen) -> Option<String> {
    let kind = match value {
        Value::Null => return None,
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => OBJECT,
    };
    match seen.get(path) {
        Some((first, at)) if (*first == OBJECT) != (kind == OBJECT) => {
            return Some(format!("the field '{path}' is {kind} in line {line} and {first} in line {at}"));
        }
        Some(_) => {}
        None => {
            seen.insert(path.to_string(), (kind, line));
        }
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| of_value(&format!("{path}.{name}"), value, line, seen)),
        Value::Array(items) => {
            let item = format!("{path}[]");
            items.iter().find_map(|value| of_value(&item, value, line, seen))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::mixed;

    #[test]
    fn a_field_of_two_kinds_is_found_with_its_lines() {
        for (text, found) in [
            (
                "{\"a\": 1}\n{\"a\": null}\n\n{\"a\": {\"b\": 2}}\n",
                Some("the field 'a' is an object in line 4 and a number in line 1"),
            ),
            ("{\"a\": {}}\r\n{\"a\": \"x\"}", Some("the field 'a' is a text in line 2 and an object in line 1")),
            ("{\"a\": {\"b\": [1]}}\n{\"a\": {\"b\": {}}}", Some("the field 'a.b' is an object in line 2 and a list in line 1")),
            ("{\"a\": [{\"b\": 1}, true]}", Some("the field 'a[]' is a truth value in line 1 and an object in line 1")),
            ("{\"a\": 1}\n{\"a\": \"x\"}\n{\"a\": [1]}\n{\"b\": {}}\n", None),
            ("{\"a\": 1}\n{\"a\": {", None),
            ("[{\"a\": 1}, {\"a\": {}}]", None),
            ("", None),
        ] {
            assert_eq!(mixed(text.as_bytes()).as_deref(), found, "{text}");
        }
    }
}
