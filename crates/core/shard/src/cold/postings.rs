//! The buckets of an attribute.

use std::io::{BufRead, BufReader, Read, Seek, Write};

use forebay_types::{Result, ResultExt};
use xxhash_rust::xxh3::xxh3_64;

use super::block::CANT_WRITE;
use super::bucket::{Name, bucket_of, head, put};
use crate::build::distinct::Distinct;
use crate::build::input::KeyList;
use crate::record::varint;

/// Bytes of a bucket, about.
const BUCKET_BYTES: usize = 3 << 10;
/// Records of a value on average, beyond which an equality is better off with the whole shard.
const HITS_MAX: u64 = 256;
/// Bytes of an attribute's buckets: what a directory can name.
const BYTES_MAX: usize = u32::MAX as usize;
/// Places that are in memory at once, 32 bytes each.
const PLACES_MAX: usize = if cfg!(test) { 1000 } else { 1 << 20 };
/// Bytes that are noted at once.
const CHUNK: usize = 64 << 10;

/// What is noted of an attribute, record after record.
pub(super) struct Noted<W> {
    pub(super) out: W,
    pub(super) distinct: Distinct,
    /// What is not in `out` yet: nothing is written a value at a time.
    pub(super) bytes: Vec<u8>,
    /// The record that was noted last.
    pub(super) last: u32,
}

impl<W: Write> Noted<W> {
    /// Notes that a record has a value.
    pub(super) fn push(&mut self, record: u32, value: &[u8]) -> Result<()> {
        self.distinct.add(value);
        varint::write(u64::from(record - self.last), &mut self.bytes);
        self.last = record;
        let name = Name::of(value);
        name.write(&mut self.bytes);
        // Of a short one it can be made again.
        if name.is_hash {
            self.bytes.extend_from_slice(&xxh3_64(value).to_le_bytes());
        }
        if self.bytes.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    /// Hands over what it has.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.bytes).context(|| CANT_WRITE)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Where a record has its value.
struct Place {
    hash: u64,
    name: Name,
    record: u32,
}

/// Whether equalities of an attribute with about so many values would not find too much.
pub(super) fn are_worth_it(distinct: u64, records: usize) -> bool {
    distinct.saturating_mul(2 * HITS_MAX) >= records as u64
}

/// Writes the directory and the buckets of an attribute; gives how many, none where an equality would find too much in them, and their bytes.
pub(super) fn write(noted: impl Read + Seek, keys: &KeyList, out: &mut impl Write) -> Result<(u64, u64)> {
    let mut places = Places::new(noted, keys.len())?;
    // Once for how many buckets there will be, once for how large each is, and once to write them.
    let (mut records, mut values, mut bytes) = (0, 0, 0);
    let mut entry = Vec::new();
    places.for_each_value(|group| {
        (records, values, bytes) = (records + group.len() as u64, values + 1, bytes + length(group, keys, &mut entry));
        Ok(())
    })?;
    if values == 0 || records > HITS_MAX * values {
        return Ok((0, 0));
    }
    let count = bytes.div_ceil(BUCKET_BYTES).max(1);
    if bytes + 4 * count > BYTES_MAX {
        return Ok((0, 0));
    }
    let mut sizes = vec![0; count];
    places.for_each_value(|group| {
        sizes[bucket_of(group[0].hash, count as u64) as usize] += length(group, keys, &mut entry);
        Ok(())
    })?;
    let mut offset = 0_u32;
    for size in &sizes {
        out.write_all(&offset.to_le_bytes()).context(|| CANT_WRITE)?;
        offset += *size as u32 + 4;
    }
    out.write_all(&offset.to_le_bytes()).context(|| CANT_WRITE)?;
    let (mut bucket, mut written) = (0, Vec::new());
    let mut end_before = |next: u64, written: &mut Vec<u8>| -> Result<()> {
        while bucket < next {
            out.write_all(&head(bucket, written)).and_then(|()| out.write_all(written)).context(|| CANT_WRITE)?;
            written.clear();
            bucket += 1;
        }
        Ok(())
    };
    places.for_each_value(|group| {
        end_before(bucket_of(group[0].hash, count as u64), &mut written)?;
        put_all(group, keys, &mut written);
        Ok(())
    })?;
    end_before(count as u64, &mut written)?;
    debug_assert!(written.is_empty(), "every value is in a bucket");
    Ok((count as u64, u64::from(offset) + 4 * (count as u64 + 1)))
}

fn put_all(group: &[Place], keys: &KeyList, out: &mut Vec<u8>) {
    put(&group[0].name, group.iter().map(|place| keys.key(place.record as usize)), out);
}

fn length(group: &[Place], keys: &KeyList, entry: &mut Vec<u8>) -> usize {
    entry.clear();
    put_all(group, keys, entry);
    entry.len()
}

/// What was noted, in the order of hashes.
struct Places<R> {
    noted: R,
    /// All of it, where it is not too much.
    all: Option<Vec<Place>>,
    /// How often it is read, each time for another part of the hashes.
    parts: u64,
}

impl<R: Read + Seek> Places<R> {
    fn new(noted: R, records: usize) -> Result<Self> {
        let parts = records.div_ceil(PLACES_MAX).max(1) as u64;
        let mut places = Self { noted, all: None, parts };
        if parts == 1 {
            places.all = Some(places.read(0)?);
        }
        Ok(places)
    }

    /// Calls with the places of each value.
    fn for_each_value(&mut self, mut call: impl FnMut(&[Place]) -> Result<()>) -> Result<()> {
        let is_same = |a: &Place, b: &Place| a.hash == b.hash && a.name == b.name;
        if let Some(all) = &self.all {
            return all.chunk_by(is_same).try_for_each(call);
        }
        (0..self.parts).try_for_each(|part| self.read(part)?.chunk_by(is_same).try_for_each(&mut call))
    }

    fn read(&mut self, part: u64) -> Result<Vec<Place>> {
        self.noted.rewind().context(|| CANT_WRITE)?;
        let mut noted = BufReader::with_capacity(CHUNK, &mut self.noted);
        let (mut places, mut record) = (Vec::new(), 0);
        while !noted.fill_buf().context(|| CANT_WRITE)?.is_empty() {
            record += read_number(&mut noted)?;
            let name = Name::read(&mut noted).context(|| CANT_WRITE)?;
            let mut bytes = [0; 8];
            if name.is_hash {
                noted.read_exact(&mut bytes).context(|| CANT_WRITE)?;
            }
            let hash = if name.is_hash { u64::from_le_bytes(bytes) } else { xxh3_64(name.as_bytes()) };
            if bucket_of(hash, self.parts) == part {
                places.push(Place { hash, name, record });
            }
        }
        places.sort_unstable_by(|a, b| (a.hash, &a.name, a.record).cmp(&(b.hash, &b.name, b.record)));
        Ok(places)
    }
}

fn read_number(from: &mut impl Read) -> Result<u32> {
    let (mut number, mut shift, mut byte) = (0, 0, [0x80]);
    while byte[0] & 0x80 != 0 && shift < u32::BITS {
        from.read_exact(&mut byte).context(|| CANT_WRITE)?;
        number |= u32::from(byte[0] & 0x7f) << shift;
        shift += 7;
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::key::KeyType;

    fn noted(records: u32) -> Vec<u8> {
        let mut noted = Noted { out: Vec::new(), distinct: Distinct::new(), bytes: Vec::new(), last: 0 };
        for record in 0..records {
            let value = record.wrapping_mul(0x9e37_79b9) % 700;
            // Names in full, and such that are hashes.
            let value = if value.is_multiple_of(3) { format!("a value that is long {value}") } else { format!("{value}") };
            noted.push(record, value.as_bytes()).unwrap();
        }
        noted.flush().unwrap();
        noted.out
    }

    #[test]
    fn what_is_read_in_parts_is_written_as_what_is_read_at_once() {
        let records = 5 * PLACES_MAX as u32 + 7;
        let mut keys = KeyList::new(KeyType::U64);
        (0..u64::from(records)).for_each(|key| _ = keys.push(&crate::Key::U64(key * 3)));
        let mut of_parts = Places::new(std::io::Cursor::new(noted(records)), records as usize).unwrap();
        let mut at_once = Places::new(std::io::Cursor::new(noted(records)), 1).unwrap();
        assert!(of_parts.parts > 1 && at_once.parts == 1);
        let mut both = [&mut of_parts, &mut at_once].map(|places| {
            let mut entries = Vec::new();
            places
                .for_each_value(|group| {
                    put_all(group, &keys, &mut entries);
                    Ok(())
                })
                .unwrap();
            entries
        });
        assert_eq!(both[0].len(), both[1].len());
        assert!(std::mem::take(&mut both[0]) == both[1], "the same values in the same order");
    }
}
