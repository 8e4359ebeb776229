//! Which shards' keys go into which.

use std::ops::Range;

use forebay_types::{Error, Result};

/// Shards of a dataset at most.
pub const SHARDS_MAX: u32 = 4096;

/// Keys of a shard that go into another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The shard that they come from.
    pub shard: u32,
    /// How many of its keys, as a part of them, where hashes are spread evenly.
    pub part: f64,
}

/// The hashes of keys that are in a shard of so many: those of which `floor(hash * shards / 2^64)` is its number.
pub fn hashes(shard: u32, shards: u32) -> Range<u128> {
    assert!(shard < shards, "shards are numbered from 0");
    let bound = |number: u32| (u128::from(number) << 64).div_ceil(u128::from(shards));
    bound(shard)..bound(shard + 1)
}

/// For each of so many shards `after`, those of `before` that its keys come from, ascending. One at a time can be made: it needs no other
/// than these.
/// `Invalid`: counts that no dataset has.
pub fn recut(before: u32, after: u32) -> Result<Vec<Vec<Share>>> {
    for shards in [before, after] {
        if !(1..=SHARDS_MAX).contains(&shards) {
            return Err(Error::invalid(format!("a dataset has 1 to {SHARDS_MAX} shards, not {shards}")));
        }
    }
    let length = |range: &Range<u128>| (range.end - range.start) as f64;
    let from = |target: u32| -> Vec<Share> {
        let wanted = hashes(target, after);
        let source_of = |hash: u128| ((hash * u128::from(before)) >> 64) as u32;
        let share = |shard: u32| {
            let has = hashes(shard, before);
            let both = wanted.start.max(has.start)..wanted.end.min(has.end);
            assert!(both.start < both.end, "only shards are named that have some of the keys");
            Share { shard, part: length(&both) / length(&has) }
        };
        (source_of(wanted.start)..=source_of(wanted.end - 1)).map(share).collect()
    };
    Ok((0..after).map(from).collect())
}

/// How many shards of about `bytes_each` an input makes.
/// `Invalid`: they would be more than a dataset has.
pub fn shards_for(input_bytes: u64, bytes_each: u64) -> Result<u32> {
    let needed = if bytes_each == 0 { u64::MAX } else { input_bytes.div_ceil(bytes_each).max(1) };
    match u32::try_from(needed) {
        Ok(shards) if shards <= SHARDS_MAX => Ok(shards),
        _ => Err(Error::invalid(format!(
            "{input_bytes} bytes are more than {SHARDS_MAX} shards of {bytes_each}: choose a larger size for each"
        ))),
    }
}
