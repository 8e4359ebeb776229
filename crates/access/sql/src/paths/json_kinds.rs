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

/// What was seen of a field, and of what is in it: as much as was read, where a path for each field might be the square of that.
#[derive(Default)]
struct Seen {
    /// The first kind, and its line.
    first: Option<(&'static str, usize)>,
    fields: HashMap<String, Seen>,
    /// All values of a list.
    items: Option<Box<Seen>>,
}

/// The path of a field that is of two kinds, and which in which lines.
type Mixed = (String, String);

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
    let (mut seen, mut line, mut at) = (HashMap::new(), 1, 0);
    while let Some(Ok(record)) = records.next() {
        let end = records.byte_offset();
        line += text[at..end].iter().filter(|byte| **byte == b'\n').count();
        at = end;
        if let Some((path, kinds)) = of_fields(&record, line, &mut seen) {
            return Some(format!("the field '{}' is {kinds}", path.strip_prefix('.').unwrap_or(&path)));
        }
    }
    None
}

fn of_fields(fields: &Map<String, Value>, line: usize, seen: &mut HashMap<String, Seen>) -> Option<Mixed> {
    fields.iter().find_map(|(name, value)| {
        let (path, kinds) = of_value(value, line, seen.entry(name.clone()).or_default())?;
        Some((format!(".{name}{path}"), kinds))
    })
}

fn of_value(value: &Value, line: usize, seen: &mut Seen) -> Option<Mixed> {
    let kind = match value {
        Value::Null => return None,
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => OBJECT,
    };
    let (first, at) = *seen.first.get_or_insert((kind, line));
    if (first == OBJECT) != (kind == OBJECT) {
        return Some((String::new(), format!("{kind} in line {line} and {first} in line {at}")));
    }
    match value {
        Value::Object(fields) => of_fields(fields, line, &mut seen.fields),
        Value::Array(items) => {
            let seen = seen.items.get_or_insert_default();
            let (path, kinds) = items.iter().find_map(|value| of_value(value, line, seen))?;
            Some((format!("[]{path}"), kinds))
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
