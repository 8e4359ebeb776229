//! The buckets of an attribute.

use super::bucket::{bucket_of, hash, head, put};
use crate::build::input::Input;
use crate::model::key::Key;
use crate::record::varint;

/// Bytes of a bucket, about.
const BUCKET_BYTES: usize = 3 << 10;
/// Records of a value on average, beyond which an equality is better off with the whole shard.
const HITS_MAX: u64 = 256;
/// Bytes of an attribute's buckets: what a directory can name.
const BYTES_MAX: usize = u32::MAX as usize;

/// Where a record has its value.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    record: u32,
    from: u32,
    length: u32,
}

/// Appends the directory and the buckets of an attribute; gives how many, none where an equality would find too much in them.
pub(super) fn write(input: &Input, keys: &[Key], attribute: usize, attributes: usize, out: &mut Vec<u8>) -> u64 {
    if input.distinct(attribute).saturating_mul(2 * HITS_MAX) < keys.len() as u64 {
        return 0;
    }
    let mut places = places(input, attribute, attributes);
    let value = |place: &Place| &input.values[place.from as usize..][..place.length as usize];
    places.sort_unstable_by(|a, b| a.hash.cmp(&b.hash).then_with(|| value(a).cmp(value(b))).then(a.record.cmp(&b.record)));
    let groups: Vec<&[Place]> = places.chunk_by(|a, b| a.hash == b.hash && value(a) == value(b)).collect();
    if groups.is_empty() || places.len() as u64 > HITS_MAX * groups.len() as u64 {
        return 0;
    }
    let mut listed = Vec::with_capacity(groups.len());
    let mut bytes = 0;
    for group in groups {
        let of_value: Vec<&Key> = group.iter().map(|place| &keys[place.record as usize]).collect();
        let mut entry = Vec::new();
        put(value(&group[0]), &of_value, &mut entry);
        bytes += entry.len();
        listed.push((group[0].hash, entry));
    }
    let count = bytes.div_ceil(BUCKET_BYTES).max(1) as u64;
    if bytes + 4 * count as usize > BYTES_MAX {
        return 0;
    }
    let (mut directory, mut buckets) = (Vec::new(), Vec::with_capacity(bytes));
    let mut listed = listed.into_iter().peekable();
    for bucket in 0..count {
        directory.extend_from_slice(&(buckets.len() as u32).to_le_bytes());
        let mut values = Vec::new();
        while let Some((_, entry)) = listed.next_if(|(hash, _)| bucket_of(*hash, count) == bucket) {
            values.extend_from_slice(&entry);
        }
        buckets.extend_from_slice(&head(bucket, &values));
        buckets.extend_from_slice(&values);
    }
    assert!(listed.next().is_none(), "every value is in a bucket");
    directory.extend_from_slice(&(buckets.len() as u32).to_le_bytes());
    out.extend_from_slice(&directory);
    out.extend_from_slice(&buckets);
    count
}

/// Of every record that has a value.
fn places(input: &Input, attribute: usize, attributes: usize) -> Vec<Place> {
    let mut places = Vec::with_capacity(input.keys.len());
    let mut start = 0;
    input.for_each_record(attributes, |record, lengths, values| {
        let (mut at, mut from) = (0, start);
        for place in 0..=attribute {
            let (length, next) = varint::read(lengths, at);
            at = next;
            if place == attribute && length > 0 {
                let length = length as usize - 1;
                let hash = hash(&input.values[from..from + length]);
                places.push(Place { hash, record: record as u32, from: from as u32, length: length as u32 });
            }
            from += (length as usize).saturating_sub(1);
        }
        start += values.len();
    });
    places
}
