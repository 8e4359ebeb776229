//! Records as they are sent: keys and values in the bytes that shards keep, with no JSON between (docs/specs/protocol.md).

use std::borrow::Cow;
use std::cell::RefCell;

use forebay_shard::{Key, KeyType, Record, Value};
use forebay_types::{Error, Result, ResultExt};

use crate::columns::Columns;
use crate::store::{Store, put_values};

/// What is wanted of each record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The places of attributes; none for all.
    attributes: Option<Vec<usize>>,
    /// The record's version as well.
    pub versioned: bool,
}

/// The answer for one key.
#[derive(Clone, Debug)]
pub struct SentRecord {
    /// The record's version, where it was wanted; also of a record that is not there.
    pub version: Option<u64>,
    /// The values that were wanted; none where the key has no record.
    pub record: Option<Record>,
}

thread_local! {
    static RECORD: RefCell<Record> = RefCell::new(Record::new());
}

impl Wanted {
    /// Some attributes by their places, or all. `Invalid` for what these columns have not.
    pub fn new(columns: &Columns, attributes: Option<Vec<usize>>, versioned: bool) -> Result<Self> {
        let count = columns.all().len() - 1;
        let asked = attributes.as_deref().unwrap_or_default();
        match asked.iter().find(|place| **place >= count) {
            Some(place) => Err(Error::invalid(format!("there is no attribute {place}; a record has {count}"))),
            // What a shard reads at once.
            None if asked.len() > count => Err(Error::invalid(format!("{} values of a record that has {count}", asked.len()))),
            None if attributes.is_some() && asked.is_empty() => Err(Error::invalid("a record is asked for one value at least")),
            None => Ok(Self { attributes, versioned }),
        }
    }

    /// The places of the attributes, empty for all.
    pub fn places(&self) -> Vec<u16> {
        self.attributes.iter().flatten().map(|place| u16::try_from(*place).expect("attributes are few")).collect()
    }

    /// How many values an answer has, of records with these columns.
    fn values(&self, columns: &Columns) -> usize {
        self.attributes.as_ref().map_or(columns.all().len() - 1, Vec::len)
    }
}

impl Store {
    /// Appends the answer for a key; updates before `log_from` are in the files.
    pub fn send_record(&self, log_from: u64, key: &Key, wanted: &Wanted, out: &mut Vec<u8>) -> Result<()> {
        let columns = self.records()?;
        // The version before the record: of a record that changes in between, the older version is told, which is good for nothing
        // any more.
        let version = wanted.versioned.then(|| self.version(key, log_from));
        RECORD.with_borrow_mut(|record| {
            let type_of = |place| columns.attribute_type(place);
            let read = self.view.load().read(key, wanted.attributes.as_deref(), type_of, record);
            let there = read.context(|| self.path.display())?;
            put_answer(version, there.then_some(record), out);
            Ok(())
        })
    }

    /// The same for a shard whose files are elsewhere, by what its cold file says.
    pub fn send_far(&self, log_from: u64, key: &Key, wanted: &Wanted, far: Option<&[Value]>, out: &mut Vec<u8>) -> Result<()> {
        let columns = self.records()?;
        let view = self.view.load();
        let (values, version) = match view.newest(key) {
            Some(update) => (update.values.map(|values| Cow::Owned(values.to_vec())), update.number),
            None => (far.map(Cow::Borrowed), log_from.saturating_sub(1)),
        };
        let mut record = Record::new();
        if let Some(values) = &values {
            put_values(values, wanted.attributes.as_deref(), |place| columns.attribute_type(place), &mut record)?;
        }
        put_answer(wanted.versioned.then_some(version), values.map(|_| &mut record), out);
        Ok(())
    }
}

fn put_answer(version: Option<u64>, record: Option<&mut Record>, out: &mut Vec<u8>) {
    out.push(u8::from(record.is_some()));
    if let Some(version) = version {
        out.extend_from_slice(&version.to_le_bytes());
    }
    if let Some(record) = record {
        record.write(out);
    }
}

/// Appends keys as they are sent: eight bytes each, or their length before them.
pub fn write_keys<'k>(keys: impl IntoIterator<Item = &'k Key>, out: &mut Vec<u8>) {
    for key in keys {
        match key {
            Key::U64(key) => out.extend_from_slice(&key.to_le_bytes()),
            Key::Bytes(bytes) => {
                out.extend_from_slice(&u32::try_from(bytes.len()).expect("keys are bounded").to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// The keys in what was sent, at most so many.
pub fn read_keys(mut bytes: &[u8], key_type: KeyType, most: usize) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        if keys.len() == most {
            return Err(Error::invalid(format!("a call has {most} questions at most: send several")));
        }
        let key = match key_type {
            KeyType::U64 => take(&mut bytes, 8).and_then(|key| Some(Key::U64(u64::from_le_bytes(key.try_into().ok()?)))),
            KeyType::Bytes => take(&mut bytes, 4).and_then(|length| {
                let length = u32::from_le_bytes(length.try_into().ok()?);
                take(&mut bytes, length as usize).map(|key| Key::Bytes(key.to_vec()))
            }),
        };
        keys.push(key.ok_or_else(|| Error::invalid("the keys that were sent end in the middle of one"))?);
    }
    Ok(keys)
}

/// The answers in what was sent for so many keys.
pub fn read_records(mut bytes: &[u8], keys: usize, columns: &Columns, wanted: &Wanted) -> Result<Vec<SentRecord>> {
    let values = wanted.values(columns);
    let mut record = || {
        let is_there = match take(&mut bytes, 1)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let version = if wanted.versioned { Some(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?)) } else { None };
        if !is_there {
            return Some(SentRecord { version, record: None });
        }
        let (record, length) = Record::read(bytes, values)?;
        bytes = &bytes[length..];
        Some(SentRecord { version, record: Some(record) })
    };
    let records: Option<Vec<SentRecord>> = (0..keys).map(|_| record()).collect();
    match (records, bytes) {
        (Some(records), []) => Ok(records),
        _ => Err(Error::internal(format!("an answer for {keys} keys can't be read"))),
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Column, ColumnKind};
    use crate::update::Change;

    fn columns(key: ColumnKind) -> Columns {
        Columns::new(
            vec![Column::new("name", ColumnKind::Text), Column::new("id", key), Column::new("size", ColumnKind::Int)],
            "id",
        )
        .unwrap()
    }

    fn values(key: u64) -> Vec<Value> {
        vec![Value::Text(format!("name {key}")), if key.is_multiple_of(5) { Value::Null } else { Value::Int(key as i64 % 3) }]
    }

    #[test]
    fn what_is_sent_is_what_is_there_here_and_far_and_after_changes() {
        let (folder, columns) = (tempfile::tempdir().unwrap(), columns(ColumnKind::Uint));
        let path = folder.path().join("s");
        let mut building = Store::build(&path, columns.clone(), 0.5).unwrap();
        (0..50).for_each(|number| building.push(Key::U64(number), values(number)).unwrap());
        building.finish().unwrap();
        let (alone, here, far) = (Store::open(&path).unwrap(), Store::open(&path).unwrap(), Store::far(columns.clone()));
        for store in [&here, &far] {
            store.add_updates(
                7,
                [Change::Put(Key::U64(3), values(40)), Change::Delete(Key::U64(8)), Change::Put(Key::U64(60), values(1))],
            );
        }
        for attributes in [None, Some(vec![1]), Some(vec![1, 0])] {
            let wanted = Wanted::new(&columns, attributes.clone(), true).unwrap();
            let (mut sent, mut from_afar) = (Vec::new(), Vec::new());
            for number in 0..70 {
                let key = Key::U64(number);
                here.send_record(7, &key, &wanted, &mut sent).unwrap();
                far.send_far(7, &key, &wanted, alone.get(&key, None).unwrap().as_deref(), &mut from_afar).unwrap();
            }
            assert_eq!(sent, from_afar);
            let came = read_records(&sent, 70, &columns, &wanted).unwrap();
            for (number, came) in (0..).zip(came) {
                let key = Key::U64(number);
                let record = came.record.map(|record| record.values(&columns.schema(), attributes.as_deref()).unwrap());
                assert_eq!(record, here.get(&key, attributes.as_deref()).unwrap(), "{number}");
                assert_eq!(came.version, Some(here.version(&key, 7)));
            }
            assert!(read_records(&sent, 69, &columns, &wanted).is_err(), "more than was asked for");
            for cut in 0..sent.len() {
                assert!(read_records(&sent[..cut], 70, &columns, &wanted).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn keys_come_back_and_what_is_none_is_refused() {
        for (key_type, keys) in
            [(KeyType::U64, vec![Key::U64(0), Key::U64(u64::MAX)]), (KeyType::Bytes, vec![Key::from(""), Key::from("a key")])]
        {
            let mut bytes = Vec::new();
            write_keys(&keys, &mut bytes);
            assert_eq!(read_keys(&bytes, key_type, 2).unwrap(), keys);
            assert!(read_keys(&bytes, key_type, 1).is_err());
            assert!(read_keys(&bytes[..bytes.len() - 1], key_type, 2).is_err());
        }
        assert!(read_keys(&[0xff; 7], KeyType::Bytes, 9).is_err(), "longer than what came");
        let columns = columns(ColumnKind::Text);
        let wrong: [&[usize]; 3] = [&[2], &[], &[0, 1, 0]];
        for attributes in wrong {
            assert!(Wanted::new(&columns, Some(attributes.to_vec()), false).is_err(), "{attributes:?}");
        }
    }
}
