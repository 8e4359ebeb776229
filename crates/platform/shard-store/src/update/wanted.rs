//! A change as a program asks for it.

use forebay_types::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::Change;
use crate::columns::Columns;
use crate::exact::exact_json;
use crate::literal::Literal;

/// A change that somebody wants, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedChange {
    /// What is to be there then.
    pub change: Change,
    /// When it may be made.
    pub condition: ChangeIf,
}

/// When a record may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeIf {
    /// Whatever is there.
    Always,
    /// When the key has no record.
    Absent,
    /// When nothing changed the record since it had this version.
    Version(u64),
}

impl WantedChange {
    /// From a JSON object: `put` with a record or `delete` with a key, and `if_absent` or `if_version` beside it.
    pub fn parse(columns: &Columns, line: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Shape {
            put: Option<Map<String, Json>>,
            delete: Option<Json>,
            #[serde(default)]
            if_absent: bool,
            if_version: Option<u64>,
        }
        let text = || String::from_utf8_lossy(line).trim_end().to_string();
        let shape: Shape = exact_json(line).map_err(|error| Error::invalid(format!("{} is no change: {error}", text())))?;
        let change = match (shape.put, shape.delete) {
            (Some(record), None) => {
                let (key, values) = columns.record_of(&record)?;
                Change::Put(key, values)
            }
            (None, Some(key)) => Change::Delete(columns.key_of(&Literal::from_json(&key)?)?),
            _ => return Err(Error::invalid(format!("{} is no change: it has one of \"put\", \"delete\"", text()))),
        };
        let condition = match (shape.if_absent, shape.if_version) {
            (false, None) => ChangeIf::Always,
            (true, None) => ChangeIf::Absent,
            (false, Some(version)) => ChangeIf::Version(version),
            (true, Some(_)) => return Err(Error::invalid(format!("{}: a record that is absent has no version", text()))),
        };
        Ok(Self { change, condition })
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard::{Key, Value};
    use serde_json::json;

    use super::*;
    use crate::columns::{Column, ColumnKind};

    fn parse(line: &Json) -> Result<WantedChange> {
        let columns = Columns::new(vec![Column::new("k", ColumnKind::Uint), Column::new("v", ColumnKind::Text)], "k").unwrap();
        WantedChange::parse(&columns, line.to_string().as_bytes())
    }

    #[test]
    fn changes_and_their_conditions_are_read() {
        let put = Change::Put(Key::U64(1), vec![Value::Text("a".into())]);
        for (more, condition) in [
            (json!({}), ChangeIf::Always),
            (json!({"if_absent": true}), ChangeIf::Absent),
            (json!({"if_version": 0}), ChangeIf::Version(0)),
        ] {
            let mut line = more;
            line["put"] = json!({"k": 1, "v": "a"});
            assert_eq!(parse(&line).unwrap(), WantedChange { change: put.clone(), condition });
        }
        let delete = WantedChange { change: Change::Delete(Key::U64(7)), condition: ChangeIf::Version(3) };
        assert_eq!(parse(&json!({"delete": 7, "if_version": 3})).unwrap(), delete);
    }

    #[test]
    fn values_come_as_they_were_sent() {
        let kinds = [ColumnKind::Int, ColumnKind::Float64, ColumnKind::Float32, ColumnKind::Decimal(8)];
        let column = |(place, kind): (usize, ColumnKind)| Column { name: format!("c{place}"), kind };
        let columns = Columns::new(kinds.into_iter().enumerate().map(column).collect(), "c0").unwrap();
        for row in 1..3000u32 {
            let (float, short) = (f64::from(row).sqrt() / 7e9, (f64::from(row).ln() * 1e-39) as f32);
            let values = vec![Value::Float(float), Value::Float(short.into()), Value::Decimal((i128::from(row) - 1500) * 7)];
            let record = columns.record_json(&Key::U64(1), &values, None).unwrap();
            assert_eq!(columns.whole_json(&Key::U64(1), values.clone()), record);
            let line = json!({ "put": record }).to_string();
            let read = WantedChange::parse(&columns, line.as_bytes()).unwrap();
            assert_eq!(read.change, Change::Put(Key::U64(1), values), "{line}");
        }
    }

    #[test]
    fn what_is_no_change_is_refused() {
        for line in [
            json!({}),
            json!([]),
            json!({"put": {"v": "no key"}}),
            json!({"put": {"k": 1, "w": "no such column"}}),
            json!({"put": {"k": 1}, "delete": 1}),
            json!({"delete": "x"}),
            json!({"put": {"k": 1}, "if_absent": true, "if_version": 1}),
            json!({"put": {"k": 1}, "if_verison": 1}),
            json!({"put": {"k": 1}, "if_version": -1}),
        ] {
            assert!(parse(&line).is_err(), "{line}");
        }
    }
}
