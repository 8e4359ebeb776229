//! What belongs to a dataset.

use std::sync::Arc;

use forebay_shard::{Key, KeyMap};
use forebay_types::{Error, Result, digest};
use serde::{Deserialize, Serialize};

use super::following::DatasetFollowing;
use super::names::is_log;
use super::next::{BEFORE_MAX, NextShards};
use super::orders::{DatasetOrders, SIZE_MAX};
use super::shard::DatasetShard;
use super::splits;
use crate::columns::Columns;

/// The version that is written; a newer one is refused. Those before 2 have no log.
const VERSION: u32 = 2;
/// The version of a dataset that follows objects: programs that know nothing of that would lose what came from which.
const VERSION_FOLLOWING: u32 = 3;
/// That of one that is about to have other shards: who does not know that must not write the manifest behind it.
const VERSION_NEXT: u32 = 4;
/// That of one with times of nanoseconds, whatever else it has: who does not know these takes it for damaged.
const VERSION_NANOSECONDS: u32 = 5;
/// That of one with keys in ranges, whatever else it has: who does not know these looks for records where they are not.
const VERSION_RANGES: u32 = 6;
const WORD: &str = "forebay-shards";
/// Bytes of a manifest at most: it is read whole.
const BYTES_MAX: usize = 16 << 20;
/// Shards at most: each question of a search goes to all of them.
const SHARDS_MAX: usize = 4096;
/// Replicas of a shard at most.
const REPLICAS_MAX: usize = 16;

/// Shards of one table, by a hash of its key or by ranges of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// The columns as they were in the input.
    pub columns: Columns,
    /// The size that each replica of a shard is kept at, as a part of the input, the first one's first.
    pub replicas: Vec<f64>,
    /// The shards; a key is in the one that [`Self::map`] says.
    pub shards: Vec<DatasetShard>,
    /// The name of the log that has what was changed since; none for a dataset of an earlier version, which nobody changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// What is ordered of its replicas.
    #[serde(default, skip_serializing_if = "DatasetOrders::is_none")]
    pub orders: DatasetOrders,
    /// The objects that it follows; none where it stays as it was made, but for what is changed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub following: Option<DatasetFollowing>,
    /// The shards that it is about to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextShards>,
    /// The logs that it had before, with other shards, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The split points of its keys, where these are in ranges.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "splits")]
    pub splits: Option<Arc<[Key]>>,
}

impl Dataset {
    /// One that nobody changes, of which nothing is ordered and which follows nothing.
    pub fn new(columns: Columns, replicas: Vec<f64>, shards: Vec<DatasetShard>) -> Self {
        let (log, orders, following, next, before) = (None, DatasetOrders::default(), None, None, Vec::new());
        Self { columns, replicas, shards, log, orders, following, next, before, splits: None }
    }

    /// Where a key's record is.
    pub fn shard_of(&self, key: &Key) -> usize {
        self.map().shard_of(key)
    }

    /// Which of its shards has which keys.
    pub fn map(&self) -> KeyMap {
        KeyMap::new(self.shards.len(), self.splits.as_ref())
    }

    /// What a shard of the dataset in `folder` of a mount is kept under where it is served. Datasets share nothing: what one of
    /// them says of its objects, or has in its log, is nothing that another one's readers may be answered by.
    pub fn shard_id(&self, mount: u64, folder: &str, number: usize) -> u128 {
        let shard = &self.shards[number];
        let log = self.log.as_deref().unwrap_or_default();
        // Names may have any character in them: by their lengths they end where they do.
        let mut text = format!("{mount} {} {folder}\n{log} {number} {}\n", folder.len(), shard.log_from);
        for file in &shard.files {
            text.push_str(&format!("{} {}={} {:08x}\n", file.name.len(), file.name, file.object, file.crc32c));
        }
        digest(&[text.as_bytes()])
    }

    /// As it is stored.
    pub fn encode(&self) -> Result<Vec<u8>> {
        self.check()?;
        let body = serde_json::to_vec(self).map_err(|error| Error::internal(format!("a manifest can't be written: {error}")))?;
        let version = match (&self.next, &self.following) {
            _ if self.splits.is_some() => VERSION_RANGES,
            _ if self.columns.have_nanoseconds() => VERSION_NANOSECONDS,
            (Some(_), _) => VERSION_NEXT,
            (None, Some(_)) => VERSION_FOLLOWING,
            (None, None) => VERSION,
        };
        let mut bytes = format!("{WORD} {version} {:08x}\n", checksum(&body)).into_bytes();
        bytes.extend(body);
        let much = || Error::invalid(format!("the manifest takes more than {} MiB: follow fewer objects", BYTES_MAX >> 20));
        if bytes.len() > BYTES_MAX { Err(much()) } else { Ok(bytes) }
    }

    /// Reads what [`Self::encode`] wrote, from whoever it comes. `what` names it in errors.
    pub fn decode(bytes: &[u8], what: &str) -> Result<Self> {
        let damaged = || Error::corrupt(format!("{what}: the manifest is damaged: create the dataset again"));
        if bytes.len() > BYTES_MAX {
            return Err(damaged());
        }
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged())?;
        let [WORD, version, sum] = head.split(' ').collect::<Vec<_>>()[..] else {
            return Err(Error::invalid(format!("{what} is no manifest of shards")));
        };
        let version: u32 = version.parse().map_err(|_| damaged())?;
        if version > VERSION_RANGES {
            return Err(Error::invalid(format!(
                "{what}: the dataset has version {version}, this program reads up to {VERSION_RANGES}: use a newer Forebay"
            )));
        }
        let body = &bytes[end + 1..];
        if u32::from_str_radix(sum, 16) != Ok(checksum(body)) {
            return Err(damaged());
        }
        let dataset: Self = serde_json::from_slice(body).map_err(|_| damaged())?;
        if (version == VERSION_RANGES) != dataset.splits.is_some() {
            return Err(damaged());
        }
        dataset.check().map_err(|error| error.context(what))?;
        Ok(dataset)
    }

    /// `Invalid` where a dataset can't have so many shards, or such replicas.
    pub fn check_shape(shards: usize, replicas: &[f64]) -> Result<()> {
        let wrong = |what: String| Err(Error::invalid(what));
        if shards == 0 || shards > SHARDS_MAX {
            return wrong(format!("a dataset has 1 to {SHARDS_MAX} shards, not {shards}"));
        }
        if replicas.is_empty() || replicas.len() > REPLICAS_MAX {
            return wrong(format!("a shard has 1 to {REPLICAS_MAX} replicas, not {}", replicas.len()));
        }
        match replicas.iter().find(|size| !(**size > 0.0 && **size <= SIZE_MAX)) {
            Some(size) => wrong(format!("a replica's size is a part of the input above 0 and up to {SIZE_MAX}, not {size}")),
            None => Ok(()),
        }
    }

    /// The names of all objects below `data/` that it is made of, or is about to be.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        let next = self.next.iter().flat_map(|next| &next.shards);
        self.shards.iter().chain(next).flat_map(DatasetShard::objects)
    }

    /// The dataset with the shards that it is about to have, whose logs begin at `log_from`; none where it is about to have no others.
    pub fn moved(&self, log_from: u64) -> Option<Self> {
        let mut next = self.next.clone()?;
        next.shards.iter_mut().for_each(|shard| shard.log_from = log_from);
        let mut before = self.before.clone();
        before.extend(self.log.clone());
        before.drain(..before.len().saturating_sub(BEFORE_MAX));
        Some(Self { shards: next.shards, log: Some(next.log), next: None, before, splits: next.splits, ..self.clone() })
    }

    fn check(&self) -> Result<()> {
        Self::check_shape(self.shards.len(), &self.replicas)?;
        if self.log.iter().chain(&self.before).any(|log| !is_log(log)) || self.before.len() > BEFORE_MAX {
            return Err(Error::corrupt("the log is not named as such logs are"));
        }
        self.orders.check()?;
        self.following.iter().try_for_each(|following| following.check(self.log.is_some()))?;
        if let Some(next) = &self.next {
            Self::check_shape(next.shards.len(), &self.replicas)?;
            next.check(&self.shards, self.log.as_deref())?;
            // Who does not know ranges is told of them by the version, which this one's say.
            if next.splits.is_some() != self.splits.is_some() {
                return Err(Error::corrupt("shards by hash do not come to be ranges, nor ranges shards by hash"));
            }
            next.map().check(next.shards.len(), self.columns.key_type())?;
        }
        self.map().check(self.shards.len(), self.columns.key_type())?;
        self.shards.iter().try_for_each(DatasetShard::check)
    }
}

fn checksum(body: &[u8]) -> u32 {
    forebay_types::crc32c(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AskedShares;
    use crate::columns::{Column, ColumnKind};
    use crate::dataset::{Acknowledged, DatasetBounds, DatasetFile, DatasetPin};

    fn dataset(shards: usize) -> Dataset {
        let columns = Columns::new(vec![Column::new("k", ColumnKind::Int), Column::new("v", ColumnKind::Text)], "k").unwrap();
        let file = DatasetFile { name: "manifest".into(), object: format!("{:032x}", 7), bytes: 3, crc32c: 1 };
        let shard = DatasetShard { records: 1, input_bytes: 2, files: vec![file], log_from: 1, ..DatasetShard::default() };
        let dataset = Dataset::new(columns, vec![0.9, 0.5], vec![shard; shards]);
        Dataset { log: Some("0123456789abcdef".into()), ..dataset }
    }

    #[test]
    fn orders_come_back_and_name_no_other_shard() {
        let plain = dataset(1);
        assert!(!String::from_utf8(plain.encode().unwrap()).unwrap().contains("orders"));
        let (storage, two) = (Acknowledged::Storage, Acknowledged::TwoWorkers);
        for (size, frozen, ack) in [(None, false, two), (Some(0.8), true, storage), (None, true, two)] {
            let orders = DatasetOrders { pin: Some(DatasetPin { size }), frozen, ack };
            let ordered = Dataset { orders, ..plain.clone() };
            assert_eq!(Dataset::decode(&ordered.encode().unwrap(), "m").unwrap(), ordered);
            assert_eq!(ordered.shard_id(1, "a", 0), plain.shard_id(1, "a", 0));
            assert_eq!(orders.least(0.5), Some(size.unwrap_or(0.5)));
        }
        let alone = DatasetOrders { ack: two, ..DatasetOrders::default() };
        let ordered = Dataset { orders: alone, ..plain.clone() };
        assert!(String::from_utf8(ordered.encode().unwrap()).unwrap().contains(r#""orders":{"ack":"two-workers"}"#));
        assert_eq!(plain.orders.least(0.5), None);
        for size in [0.0, -1.0, f64::NAN, 17.0] {
            let orders = DatasetOrders { pin: Some(DatasetPin { size: Some(size) }), frozen: false, ..DatasetOrders::default() };
            assert!(Dataset { orders, ..plain.clone() }.encode().is_err(), "{size}");
        }
    }

    #[test]
    fn a_manifest_comes_back_and_no_flipped_bit_passes() {
        let dataset = dataset(3);
        let bytes = dataset.encode().unwrap();
        assert_eq!(Dataset::decode(&bytes, "m").unwrap(), dataset);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(Dataset::decode(&damaged, "m").is_err(), "byte {at}");
            assert!(Dataset::decode(&bytes[..at], "m").is_err(), "cut at {at}");
        }
    }

    #[test]
    fn what_a_shard_was_asked_comes_back_and_names_no_other_shard() {
        let plain = dataset(1);
        let mut asked = plain.clone();
        let counters = forebay_shard::QueryCounters { gets: 900.0, searches: vec![100.0], ..Default::default() };
        asked.shards[0].asked = AskedShares::of(&counters);
        assert_eq!(Dataset::decode(&asked.encode().unwrap(), "m").unwrap(), asked);
        assert_eq!(asked.shard_id(1, "a", 0), plain.shard_id(1, "a", 0));
        let many = forebay_shard::QueryCounters { searches: vec![1.0; 129], ..Default::default() };
        asked.shards[0].asked = AskedShares::of(&many);
        assert!(asked.encode().is_err());
    }

    #[test]
    fn what_values_lie_between_comes_back_and_who_does_not_know_it_reads_the_rest() {
        let plain = dataset(1);
        assert!(!String::from_utf8(plain.encode().unwrap()).unwrap().contains("bounds"));
        let mut said = plain.clone();
        let ends = DatasetBounds { least: "62".into(), most: Some("64".into()) };
        said.shards[0].bounds = vec![Some(ends.clone())];
        let bytes = said.encode().unwrap();
        assert!(bytes.starts_with(b"forebay-shards 2 "), "older programs read it");
        assert_eq!(Dataset::decode(&bytes, "m").unwrap(), said);
        assert_eq!(said.shard_id(1, "a", 0), plain.shard_id(1, "a", 0));
        let equal = |text: &str| forebay_shard::Query::eq(0, forebay_shard::Value::Text(text.into()));
        let is_out = |dataset: &Dataset, text: &str| dataset.shards[0].excluding(&dataset.columns)(&equal(text));
        assert_eq!(["a", "b", "c", "e"].map(|text| is_out(&said, text)), [true, false, false, true]);
        assert!(!is_out(&plain, "a"), "nothing is known");
        for bounds in [vec![None; 129], vec![Some(DatasetBounds { least: "65".into(), ..ends })]] {
            let mut wrong = plain.clone();
            wrong.shards[0].bounds = bounds;
            assert!(wrong.encode().is_err());
        }
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in ["../x", "/etc/passwd", "a/b", "", ".."] {
            let mut dataset = dataset(1);
            dataset.shards[0].files[0].name = name.into();
            assert!(dataset.encode().is_err(), "{name:?}");
        }
        let mut other = dataset(1);
        other.shards[0].files[0].object = "../../secret".into();
        assert!(other.encode().is_err());
    }

    #[test]
    fn sizes_and_counts_are_bounded() {
        for replicas in [vec![], vec![0.0], vec![f64::NAN], vec![17.0], vec![0.5; 17]] {
            assert!(Dataset { replicas, ..dataset(1) }.encode().is_err());
        }
        assert!(dataset(0).encode().is_err() && dataset(SHARDS_MAX + 1).encode().is_err());
    }

    #[test]
    fn shards_of_two_datasets_are_never_one() {
        let one = dataset(2);
        let id = one.shard_id(1, "a", 0);
        assert_ne!(id, one.shard_id(2, "a", 0), "another mount");
        assert_ne!(id, one.shard_id(1, "b", 0), "another folder");
        assert_ne!(id, one.shard_id(1, "a", 1), "the same bytes, and another part of the log");
        let mut other = one.clone();
        other.shards[0].files[0].crc32c += 1;
        assert_ne!(id, other.shard_id(1, "a", 0), "other bytes under the same name");
        let mut split = one.clone();
        let file = split.shards[0].files[0].clone();
        split.shards[0].files.push(DatasetFile { name: "other".into(), ..file.clone() });
        let mut joined = one.clone();
        joined.shards[0].files[0].name = format!("{}={} {:08x}\nother", file.name, file.object, file.crc32c);
        assert_ne!(split.shard_id(1, "a", 0), joined.shard_id(1, "a", 0), "a name that reads like two files");
        let again = Dataset { log: Some("f".repeat(16)), ..one };
        assert_ne!(id, again.shard_id(1, "a", 0), "made again, of the same bytes");
    }

    #[test]
    fn a_manifest_of_before_there_were_logs_is_read_and_has_none() {
        let mut body = serde_json::to_value(dataset(1)).unwrap();
        body.as_object_mut().unwrap().remove("log");
        body["shards"][0].as_object_mut().unwrap().remove("log_from");
        let body = serde_json::to_vec(&body).unwrap();
        let mut bytes = format!("{WORD} 1 {:08x}\n", checksum(&body)).into_bytes();
        bytes.extend(body);
        let read = Dataset::decode(&bytes, "m").unwrap();
        assert_eq!((read.log, read.shards[0].log_from), (None, 1));
    }

    #[test]
    fn a_manifest_with_times_of_nanoseconds_is_of_a_version_that_refuses_who_knows_none() {
        for (kind, head) in [(ColumnKind::TimestampUtc, "forebay-shards 2 "), (ColumnKind::TimestampNanos, "forebay-shards 5 ")] {
            let columns = Columns::new(vec![Column::new("k", ColumnKind::Int), Column::new("at", kind)], "k").unwrap();
            let dataset = Dataset { columns, ..dataset(1) };
            let bytes = dataset.encode().unwrap();
            assert!(bytes.starts_with(head.as_bytes()), "{kind:?}");
            assert_eq!(Dataset::decode(&bytes, "m").unwrap(), dataset);
        }
        let newer = Dataset::decode(b"forebay-shards 7 00000000\n{}", "m").unwrap_err();
        assert!(newer.message().contains("use a newer Forebay"), "{newer}");
    }

    #[test]
    fn logs_are_named_by_digits() {
        for log in ["", "0123", "0123456789ABCDEF", "../../../../../x", "0123456789abcdef0"] {
            assert!(Dataset { log: Some(log.into()), ..dataset(1) }.encode().is_err(), "{log:?}");
        }
        let mut none = dataset(1);
        none.shards[0].log_from = 0;
        assert!(none.encode().is_err(), "objects of a log are numbered from 1");
    }

    #[test]
    fn ranges_come_back_and_only_programs_that_know_them_read_the_manifest() {
        let ranges = |splits: &[u64]| {
            let splits = Some(splits.iter().map(|split| Key::U64(*split)).collect());
            Dataset { splits, ..dataset(3) }
        };
        let said = ranges(&[7, u64::MAX - 4]);
        let bytes = said.encode().unwrap();
        assert!(bytes.starts_with(b"forebay-shards 6 "));
        assert_eq!(Dataset::decode(&bytes, "m").unwrap(), said);
        assert_eq!([6u64, 7, u64::MAX - 4].map(|key| said.shard_of(&Key::U64(key))), [0, 1, 2]);
        for wrong in [&[][..], &[7], &[7, 7], &[9, 7], &[1, 2, 3]] {
            assert!(ranges(wrong).encode().is_err(), "{wrong:?}");
        }
        let texts = |first: &[u8]| {
            let columns =
                Columns::new(vec![Column::new("k", ColumnKind::Text), Column::new("v", ColumnKind::Text)], "k").unwrap();
            let splits = Some([Key::Bytes(first.to_vec()), Key::from("z")].into());
            Dataset { columns, splits, ..dataset(3) }
        };
        let said = texts(b"\x00\xff");
        assert_eq!(Dataset::decode(&said.encode().unwrap(), "m").unwrap(), said);
        assert!(texts(&[b'a'; 65]).encode().is_err() && texts(b"zz").encode().is_err());
        let plain = dataset(3);
        assert!(!String::from_utf8(plain.encode().unwrap()).unwrap().contains("splits"), "by hash nothing is said");
        assert_eq!(plain.map(), KeyMap::Hash(3));
    }

    #[test]
    fn split_points_that_are_none_are_damage() {
        let sealed = |splits: serde_json::Value| {
            let mut body = serde_json::to_value(dataset(2)).unwrap();
            body["splits"] = splits;
            let body = serde_json::to_vec(&body).unwrap();
            let mut bytes = format!("{WORD} 6 {:08x}\n", checksum(&body)).into_bytes();
            bytes.extend(body);
            Dataset::decode(&bytes, "m")
        };
        assert_eq!(sealed(serde_json::json!([5])).unwrap().map(), KeyMap::Ranges([Key::U64(5)].into()));
        for wrong in ["null", "[-1]", "[\"61\"]", "[\"6\"]", "[5, 6]", "[[5]]", "[1.5]", "{}", "[]"] {
            assert!(sealed(serde_json::from_str(wrong).unwrap()).is_err(), "{wrong}");
        }
    }
}
