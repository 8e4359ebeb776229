//! One object of a shard's log.

use forebay_shard::{Key, KeyType, Schema, Value, ValueType, key_hash};
use forebay_types::{Error, Result};

use super::claim::LogClaim;
use crate::update::Change;

const MAGIC: &[u8; 8] = b"FBDSTLOG";
const VERSION: u32 = 1;
/// That of an object which says that its shard has moved: who does not know it must not go on.
const VERSION_MOVED: u32 = 2;
/// That of one that is under a claim, makes it, or ends it: who does not know it must not write.
const VERSION_CLAIM: u32 = 3;
/// Magic, version, checksum of what follows, number, kind, count of calls.
const HEADER_BYTES: usize = 32;
const CHANGES: u32 = 0;
const SEALED: u32 = 1;
const MOVED: u32 = 2;
const CLAIM: u32 = 3;
const KEPT: u32 = 4;
const OVER: u32 = 5;

/// What an object of a shard's log says.
#[derive(Clone, Debug, PartialEq)]
pub enum LogObject {
    /// Calls whose changes were made, in this order.
    Calls(Vec<LoggedCall>),
    /// Nothing follows: the dataset was replaced.
    Sealed,
    /// Nothing follows: the dataset's records are in other shards from here on, those that its latest manifest has or is about to have.
    Moved,
    /// From here on one worker writes, and another one has the same: what follows may be acknowledged before it is here.
    Claim(LogClaim),
    /// As `Calls`, under a claim.
    Kept(LogClaim, Vec<LoggedCall>),
    /// The claim before it is over, and nothing more comes by it: anyone writes from here on.
    Over,
}

/// The changes of one call: all of them were made, at once.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedCall {
    /// Drawn by who called, so that a call that is made again is made once.
    pub id: u128,
    /// What it changed.
    pub changes: Vec<Change>,
}

impl LogObject {
    /// The claim that what follows it stands under.
    pub fn claim(&self) -> Option<LogClaim> {
        match self {
            Self::Claim(claim) | Self::Kept(claim, _) => Some(*claim),
            Self::Calls(_) | Self::Sealed | Self::Moved | Self::Over => None,
        }
    }

    /// The calls that it has; none where it has no part in that.
    pub fn into_calls(self) -> Option<Vec<LoggedCall>> {
        match self {
            Self::Calls(calls) | Self::Kept(_, calls) => Some(calls),
            Self::Claim(_) | Self::Over => Some(Vec::new()),
            Self::Sealed | Self::Moved => None,
        }
    }

    /// Takes the changes out of its calls, in their order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        match self {
            Self::Calls(calls) | Self::Kept(_, calls) => {
                calls.iter_mut().flat_map(|call| std::mem::take(&mut call.changes)).collect()
            }
            Self::Claim(_) | Self::Over | Self::Sealed | Self::Moved => Vec::new(),
        }
    }

    /// Its bytes, as the object with a number.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let (version, kind, calls) = match self {
            Self::Calls(calls) => (VERSION, CHANGES, calls.as_slice()),
            Self::Sealed => (VERSION, SEALED, &[][..]),
            Self::Moved => (VERSION_MOVED, MOVED, &[][..]),
            Self::Claim(_) => (VERSION_CLAIM, CLAIM, &[][..]),
            Self::Kept(_, calls) => (VERSION_CLAIM, KEPT, calls.as_slice()),
            Self::Over => (VERSION_CLAIM, OVER, &[][..]),
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&length(calls.len()));
        self.claim().iter().for_each(|claim| claim.encode(&mut bytes));
        for call in calls {
            bytes.extend_from_slice(&call.id.to_le_bytes());
            bytes.extend_from_slice(&length(call.changes.len()));
            call.changes.iter().for_each(|change| change.encode(&mut bytes));
        }
        let checksum = forebay_types::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads what [`Self::encode`] wrote, from whoever it comes, for a shard of that schema. `what` names it in errors.
    pub fn decode(bytes: &[u8], number: u64, schema: &Schema, what: &str) -> Result<Self> {
        let (kind, count, mut rest) = parts(bytes, number, what)?;
        let claim = claim_of(kind, &mut rest, number).ok_or_else(|| damaged(what))?;
        if !matches!(kind, CHANGES | KEPT) {
            return match (kind, claim) {
                _ if count > 0 || !rest.is_empty() => Err(damaged(what)),
                (SEALED, _) => Ok(Self::Sealed),
                (MOVED, _) => Ok(Self::Moved),
                (OVER, _) => Ok(Self::Over),
                (CLAIM, Some(claim)) => Ok(Self::Claim(claim)),
                _ => Err(damaged(what)),
            };
        }
        let call = |_| decode_call(&mut rest, |change| fits(change, schema)).ok_or_else(|| damaged(what));
        let calls = (0..count).map(call).collect::<Result<Vec<_>>>()?;
        match claim {
            _ if !rest.is_empty() => Err(damaged(what)),
            Some(claim) => Ok(Self::Kept(claim, calls)),
            None => Ok(Self::Calls(calls)),
        }
    }

    /// The claim that what follows an object stands under, of whatever schema its shard is. Fails as [`Self::decode`].
    pub fn claim_in(bytes: &[u8], number: u64, what: &str) -> Result<Option<LogClaim>> {
        let (kind, _, mut rest) = parts(bytes, number, what)?;
        claim_of(kind, &mut rest, number).ok_or_else(|| damaged(what))
    }

    /// The hashes of the keys of the records that an object changes, of whatever schema its shard is. Fails as [`Self::decode`].
    pub fn keys_in(bytes: &[u8], number: u64, what: &str) -> Result<Vec<u64>> {
        let (kind, count, mut rest) = parts(bytes, number, what)?;
        claim_of(kind, &mut rest, number).ok_or_else(|| damaged(what))?;
        let mut keys = Vec::new();
        for _ in 0..count {
            let call = decode_call(&mut rest, |_| true).ok_or_else(|| damaged(what))?;
            keys.extend(call.changes.iter().map(|change| key_hash(change.key())));
        }
        Ok(keys)
    }
}

fn damaged(what: &str) -> Error {
    Error::corrupt(format!(
        "{what}: this part of the log is damaged: restore it from a copy, or put back the dataset as it was before"
    ))
}

/// The kind of an object, how many calls it has, and what comes behind that; verified.
fn parts<'b>(bytes: &'b [u8], number: u64, what: &str) -> Result<(u32, u32, &'b [u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(|| damaged(what))?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    if &header[..8] != MAGIC {
        return Err(damaged(what));
    }
    if word(8) > VERSION_CLAIM {
        return Err(Error::invalid(format!("{what}: it is of a newer version of Forebay: use that one")));
    }
    let version = match word(24) {
        CLAIM | KEPT | OVER => VERSION_CLAIM,
        MOVED => VERSION_MOVED,
        _ => VERSION,
    };
    let is_whole = word(8) == version && word(12) == forebay_types::crc32c(&bytes[16..]);
    if !is_whole || header[16..24] != number.to_le_bytes() {
        return Err(damaged(what));
    }
    Ok((word(24), word(28), rest))
}

/// The claim that an object of a kind begins with, if one of that kind does; none at all where it should and does not.
fn claim_of(kind: u32, rest: &mut &[u8], number: u64) -> Option<Option<LogClaim>> {
    let fits = |claim: &LogClaim| match kind {
        CLAIM => claim.number == number,
        _ => claim.number < number,
    };
    match kind {
        CLAIM | KEPT => LogClaim::decode(rest).filter(fits).map(Some),
        _ => Some(None),
    }
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).expect("calls are bounded").to_le_bytes()
}

fn decode_call(rest: &mut &[u8], fits: impl Fn(&Change) -> bool) -> Option<LoggedCall> {
    let (id, after) = rest.split_first_chunk()?;
    let (count, after) = after.split_first_chunk()?;
    *rest = after;
    let mut changes = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let change = Change::decode(rest).ok()?;
        fits(&change).then_some(())?;
        changes.push(change);
    }
    Some(LoggedCall { id: u128::from_le_bytes(*id), changes })
}

/// Whether a shard of that schema may have such a record.
fn fits(change: &Change, schema: &Schema) -> bool {
    let key_type = match change.key() {
        Key::U64(_) => KeyType::U64,
        Key::Bytes(_) => KeyType::Bytes,
    };
    let values = match change {
        Change::Put(_, values) => values,
        Change::Delete(_) => return key_type == schema.key_type,
    };
    key_type == schema.key_type
        && values.len() == schema.attributes.len()
        && values.iter().zip(&schema.attributes).all(|(value, attribute)| is_of(value, attribute.value_type))
}

fn is_of(value: &Value, wanted: ValueType) -> bool {
    match value {
        Value::Null => true,
        Value::Bytes(_) => wanted == ValueType::Bytes,
        Value::Text(_) => wanted == ValueType::Text,
        Value::Bool(_) => wanted == ValueType::Bool,
        Value::Int(_) => wanted == ValueType::Int,
        Value::Float(_) => wanted == ValueType::Float,
        Value::Decimal(_) => matches!(wanted, ValueType::Decimal { .. }),
        Value::Date(_) => wanted == ValueType::Date,
        Value::Timestamp(_) => wanted == ValueType::Timestamp,
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::WorkerId;

    use super::*;

    fn schema() -> Schema {
        Schema::new("id", KeyType::U64).with("name", ValueType::Text).with("size", ValueType::Int)
    }

    fn object() -> LogObject {
        let put = |key, name: &str| Change::Put(Key::U64(key), vec![Value::Text(name.into()), Value::Null]);
        LogObject::Calls(vec![
            LoggedCall { id: 7, changes: vec![put(1, "one"), Change::Delete(Key::U64(2))] },
            LoggedCall { id: u128::MAX, changes: vec![put(3, "")] },
        ])
    }

    fn claim(number: u64) -> LogClaim {
        LogClaim { id: u128::MAX - 1, writer: WorkerId(1), second: WorkerId(u64::MAX), number }
    }

    #[test]
    fn changes_are_taken_out_of_their_calls_in_order() {
        let mut object = object();
        let keys: Vec<Key> = object.take_changes().iter().map(|change| change.key().clone()).collect();
        assert_eq!(keys, [1, 2, 3].map(Key::U64));
        let ids = object.clone().into_calls().unwrap_or_default().into_iter().map(|call| (call.id, call.changes.len()));
        assert_eq!(ids.collect::<Vec<_>>(), [(7, 0), (u128::MAX, 0)], "calls are still known");
        assert!(object.take_changes().is_empty() && LogObject::Sealed.take_changes().is_empty());
    }

    #[test]
    fn a_claim_stands_before_what_is_under_it() {
        for object in [LogObject::Claim(claim(8)), LogObject::Kept(claim(9), vec![])] {
            let bytes = object.encode(9);
            assert!(LogObject::decode(&bytes, 9, &schema(), "log").is_err(), "{object:?}");
            assert!(LogObject::claim_in(&bytes, 9, "log").is_err(), "{object:?}");
        }
    }

    #[test]
    fn objects_come_back_and_no_flipped_bit_passes() {
        let Some(calls) = object().into_calls() else { panic!("calls") };
        let claimed = [LogObject::Claim(claim(9)), LogObject::Kept(claim(4), calls), LogObject::Over];
        for object in [object(), LogObject::Sealed, LogObject::Moved].into_iter().chain(claimed) {
            let bytes = object.encode(9);
            assert_eq!(LogObject::decode(&bytes, 9, &schema(), "log").unwrap(), object);
            assert!(LogObject::decode(&bytes, 8, &schema(), "log").is_err(), "it is another one's");
            assert_eq!(LogObject::claim_in(&bytes, 9, "log").unwrap(), object.claim());
            let calls = object.clone().into_calls().unwrap_or_default();
            let keys: Vec<u64> = calls.iter().flat_map(|call| &call.changes).map(|change| key_hash(change.key())).collect();
            assert_eq!(LogObject::keys_in(&bytes, 9, "log").unwrap(), keys);
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert!(LogObject::decode(&damaged, 9, &schema(), "log").is_err(), "byte {at}");
                assert!(LogObject::decode(&bytes[..at], 9, &schema(), "log").is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn what_no_record_of_the_shard_could_be_is_damage_whatever_its_checksum() {
        let number = Value::Int(1);
        for change in [
            Change::Delete(Key::from("text")),
            Change::Put(Key::U64(1), vec![]),
            Change::Put(Key::U64(1), vec![number.clone(), number]),
        ] {
            let bytes = LogObject::Calls(vec![LoggedCall { id: 1, changes: vec![change.clone()] }]).encode(1);
            assert!(LogObject::decode(&bytes, 1, &schema(), "log").is_err(), "{change:?}");
        }
    }

    #[test]
    fn counts_that_the_bytes_do_not_have_ask_for_no_memory() {
        let mut bytes = object().encode(1);
        bytes[28..32].copy_from_slice(&u32::MAX.to_le_bytes());
        let checksum = forebay_types::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        assert!(LogObject::decode(&bytes, 1, &schema(), "log").is_err());
    }
}
