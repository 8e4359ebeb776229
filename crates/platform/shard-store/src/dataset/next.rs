//! The shards that a dataset is about to have in place of those that it has.

use std::sync::Arc;

use forebay_shard::{Key, KeyMap};
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::log::{LogObject, LoggedCall};
use super::names::is_log;
use super::shard::DatasetShard;
use super::splits;

/// Logs from before that a dataset remembers: who has opened it by one of these is led on.
pub(super) const BEFORE_MAX: usize = 16;
/// Calls go into an object of a new log until they have so many changes: those of objects of the old ones, one after the other.
const CHANGES_TOGETHER: usize = 1024;
/// The same by the bytes of the changes.
const BYTES_TOGETHER: usize = 1 << 20;

/// What takes the place of a dataset's shards once their logs have ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextShards {
    /// The name of the log that they will have.
    pub log: String,
    /// They are made of the shards as these were when they were cut.
    pub shards: Vec<DatasetShard>,
    /// For each shard that the dataset has, the number of the first object of its log that is in none of them yet.
    pub cuts: Vec<u64>,
    /// The split points of their keys, where these are in ranges.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "splits")]
    pub splits: Option<Arc<[Key]>>,
}

impl NextShards {
    /// Which of them has which keys.
    pub fn map(&self) -> KeyMap {
        KeyMap::new(self.shards.len(), self.splits.as_ref())
    }

    /// Of a dataset with these shards, whose log has a name.
    pub(super) fn check(&self, of: &[DatasetShard], log: Option<&str>) -> Result<()> {
        let is_cut = |(cut, shard): (&u64, &DatasetShard)| (1..=shard.log_from).contains(cut);
        let are_cut = self.cuts.len() == of.len() && self.cuts.iter().zip(of).all(is_cut);
        if !is_log(&self.log) || log.is_none_or(|log| log == self.log) || !are_cut {
            return Err(Error::corrupt("the shards that are to come are not named and cut as such shards are"));
        }
        self.shards.iter().try_for_each(DatasetShard::check)
    }
}

/// What a call of a log that was moved is named by in another log, as far as its records are in that one's shard. Parts of a call in several
/// shards have several names: shards that come to be one again don't take one for another.
pub fn moved_call(id: u128, log: &str, shard: usize) -> u128 {
    let mut text = id.to_le_bytes().to_vec();
    text.extend_from_slice(log.as_bytes());
    xxh3_128_with_seed(&text, shard as u64)
}

/// Calls of old logs on their way into the new log of one shard: whoever writes it makes the same objects, so that one who comes after
/// another goes on where that one was.
pub struct Tail {
    log: String,
    shard: usize,
    map: KeyMap,
    calls: Vec<LoggedCall>,
    changes: usize,
    bytes: usize,
}

impl Tail {
    /// Of a shard of those that a map says, for the log with a name.
    pub fn new(log: &str, shard: usize, map: KeyMap) -> Self {
        Self { log: log.to_string(), shard, map, calls: Vec::new(), changes: 0, bytes: 0 }
    }

    /// What the next object of an old log says of this shard's keys; gives an object that is full. To be told of the logs in order of their
    /// shards, and of each log's objects in order of their numbers.
    pub fn push(&mut self, calls: Vec<LoggedCall>) -> Option<LogObject> {
        for LoggedCall { id, changes } in calls {
            let is_here = |change: &crate::update::Change| self.map.shard_of(change.key()) == self.shard;
            let changes: Vec<_> = changes.into_iter().filter(is_here).collect();
            if changes.is_empty() {
                continue;
            }
            self.changes += changes.len();
            let mut encoded = Vec::new();
            changes.iter().for_each(|change| change.encode(&mut encoded));
            self.bytes += encoded.len();
            self.calls.push(LoggedCall { id: moved_call(id, &self.log, self.shard), changes });
        }
        (self.changes >= CHANGES_TOGETHER || self.bytes >= BYTES_TOGETHER).then(|| self.end()).flatten()
    }

    /// The object of what is left, if anything is.
    pub fn end(&mut self) -> Option<LogObject> {
        (self.changes, self.bytes) = (0, 0);
        let calls = std::mem::take(&mut self.calls);
        (!calls.is_empty()).then_some(LogObject::Calls(calls))
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard::Value;

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};
    use crate::dataset::{Dataset, DatasetFile, DatasetOrders};
    use crate::update::Change;

    fn shards(count: usize, log_from: u64) -> Vec<DatasetShard> {
        let file = DatasetFile { name: "manifest".into(), object: format!("{:032x}", 7), bytes: 3, crc32c: 1 };
        vec![DatasetShard { files: vec![file], log_from, ..DatasetShard::default() }; count]
    }

    fn dataset() -> Dataset {
        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
        let next = NextShards { log: "f".repeat(16), shards: shards(3, 1), cuts: vec![5, 2], splits: None };
        let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
        let orders = DatasetOrders { pin: None, frozen: true, ..DatasetOrders::default() };
        Dataset { log: Some("0".repeat(16)), orders, next: Some(next), ..Dataset::new(columns, vec![0.5], shards(2, 5)) }
    }

    #[test]
    fn shards_to_come_come_back_and_only_programs_that_know_them_read_the_manifest() {
        let dataset = dataset();
        let bytes = dataset.encode().unwrap();
        assert!(bytes.starts_with(b"forebay-shards 4 "));
        assert_eq!(Dataset::decode(&bytes, "m").unwrap(), dataset);
        assert_eq!(dataset.objects().count(), 5, "what is to come is named");
        let moved = dataset.moved(9).unwrap();
        assert_eq!((moved.shards, moved.log.clone()), (shards(3, 9), Some("f".repeat(16))));
        assert_eq!((moved.before, moved.next, moved.orders), (vec!["0".repeat(16)], None, dataset.orders));
        let plain = Dataset { next: None, ..dataset };
        assert!(plain.moved(9).is_none());
        assert!(plain.encode().unwrap().starts_with(b"forebay-shards 2 "));
    }

    #[test]
    fn only_so_many_logs_of_before_are_remembered() {
        let mut dataset = dataset();
        for number in 0..40 {
            dataset.next = Some(NextShards { log: format!("{number:016x}"), cuts: vec![1; dataset.shards.len()], ..next() });
            dataset.log = Some(format!("{:016x}", number + 100));
            dataset = Dataset::decode(&dataset.moved(1).unwrap().encode().unwrap(), "m").unwrap();
        }
        assert_eq!((dataset.before.len(), dataset.before[15].as_str()), (BEFORE_MAX, "000000000000008b"));
    }

    fn next() -> NextShards {
        dataset().next.unwrap()
    }

    #[test]
    fn shards_to_come_that_are_not_cut_out_of_these_are_refused() {
        let wrong = [
            NextShards { log: "0".repeat(16), ..next() },
            NextShards { log: "../x".into(), ..next() },
            NextShards { cuts: vec![5], ..next() },
            NextShards { cuts: vec![5, 0], ..next() },
            NextShards { cuts: vec![6, 5], ..next() },
            NextShards { shards: vec![], ..next() },
            NextShards { shards: vec![DatasetShard { log_from: 1, ..DatasetShard::default() }], ..next() },
        ];
        for next in wrong {
            assert!(Dataset { next: Some(next.clone()), ..dataset() }.encode().is_err(), "{next:?}");
        }
        assert!(Dataset { log: None, ..dataset() }.encode().is_err(), "nobody changes it");
    }

    #[test]
    fn ranges_that_are_to_come_take_the_place_of_ranges_alone() {
        let splits = |splits: &[u64]| -> Option<Arc<[Key]>> { Some(splits.iter().map(|split| Key::U64(*split)).collect()) };
        let announced = NextShards { splits: splits(&[3, 7]), ..next() };
        let ranges = Dataset { splits: splits(&[7]), next: Some(announced.clone()), ..dataset() };
        let bytes = ranges.encode().unwrap();
        assert!(bytes.starts_with(b"forebay-shards 6 "));
        assert_eq!(Dataset::decode(&bytes, "m").unwrap(), ranges);
        let moved = ranges.moved(9).unwrap();
        assert_eq!((moved.map(), moved.next), (announced.map(), None));
        assert!(Dataset { next: Some(next()), ..ranges.clone() }.encode().is_err(), "they would be by hash");
        assert!(Dataset { splits: None, ..ranges.clone() }.encode().is_err(), "these are by hash");
        let wrong = NextShards { splits: splits(&[7, 3]), ..next() };
        assert!(Dataset { next: Some(wrong), ..ranges }.encode().is_err());
    }

    #[test]
    fn a_tail_has_the_calls_of_its_keys_in_their_order_and_the_same_objects_whoever_makes_it() {
        let put = |key: u64, value: i64| Change::Put(Key::U64(key), vec![Value::Int(value)]);
        let objects: Vec<Vec<LoggedCall>> = (0..900u64)
            .map(|number| {
                let changes = (0..7).map(|key| put(key * 31 + number % 3, number as i64)).collect();
                vec![LoggedCall { id: number.into(), changes }]
            })
            .collect();
        let made = |shard: usize| {
            let mut tail = Tail::new("log", shard, KeyMap::Hash(3));
            let mut made: Vec<LogObject> = objects.iter().filter_map(|calls| tail.push(calls.clone())).collect();
            made.extend(tail.end());
            assert!(tail.end().is_none());
            made
        };
        let mut count = 0;
        for shard in 0..3 {
            assert_eq!(made(shard), made(shard));
            assert!(made(shard).len() < 20, "many of the old ones go into one");
            let calls = made(shard).into_iter().flat_map(|object| match object {
                LogObject::Calls(calls) => calls,
                other => panic!("{other:?}"),
            });
            let calls: Vec<LoggedCall> = calls.collect();
            let ids: Vec<u128> = calls.iter().map(|call| call.id).collect();
            let is_in = |number: &u128| ids.contains(&moved_call(*number, "log", shard));
            assert_eq!(
                (0..900).filter(is_in).map(|number| moved_call(number, "log", shard)).collect::<Vec<_>>(),
                ids,
                "in their order"
            );
            let keys: Vec<&Key> = calls.iter().flat_map(|call| &call.changes).map(Change::key).collect();
            assert!(keys.iter().all(|key| KeyMap::Hash(3).shard_of(key) == shard));
            count += keys.len();
        }
        assert_eq!(count, 900 * 7, "each change is in one of them");
    }
}
