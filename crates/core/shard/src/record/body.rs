//! A whole record in one piece: for each attribute its length plus one, or 0 for null; then the bytes of all values.

use super::{Record, varint};

/// Appends `record`, which has all attributes.
pub(crate) fn write(record: &Record, out: &mut Vec<u8>) {
    record.write(out);
}

/// Reads the record at the beginning of `body`.
#[inline]
pub(crate) fn read(body: &[u8], attributes: usize, columns: Option<&[usize]>, out: &mut Record) {
    out.clear();
    match columns {
        None => {
            let (mut at, mut end) = (0, 0_u32);
            for index in 0..attributes {
                let (length, next) = varint::read(body, at);
                at = next;
                out.nulls |= u128::from(length == 0) << index;
                end = end.saturating_add((length as u32).saturating_sub(1));
                out.ends.push(end);
            }
            match body.get(at..at.saturating_add(end as usize)) {
                Some(bytes) => out.bytes.extend_from_slice(bytes),
                // Damage that checksums did not see: no value is longer than nothing.
                None => out.ends.fill(0),
            }
        }
        Some(columns) => {
            let mut places = [(0u64, 0u64); crate::model::schema::ATTRIBUTES_MAX];
            let (mut at, mut end) = (0, 0_u64);
            for place in &mut places[..attributes] {
                let (length, next) = varint::read(body, at);
                at = next;
                *place = (length, end);
                end = end.saturating_add(length.saturating_sub(1));
            }
            for column in columns {
                let (length, from) = places[*column];
                let from = at.saturating_add(from as usize);
                let to = from.saturating_add(length.saturating_sub(1) as usize);
                out.bytes.extend_from_slice(body.get(from..to).unwrap_or_default());
                out.end_value(length == 0);
            }
        }
    }
}
