//! Reading what may be damaged, from the front.

use crate::model::key::{Key, KeyType};
use crate::record::varint;

/// What is left of bytes that are read from the front; nothing past their end.
pub(super) struct Cursor<'b>(pub(super) &'b [u8]);

impl<'b> Cursor<'b> {
    pub(super) fn number(&mut self) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        let (number, end) = varint::read(self.0, 0);
        self.0 = &self.0[end..];
        Some(number)
    }

    pub(super) fn bytes(&mut self, count: u64) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A key that follows another one in order: numbers as their distance, bytes by what both begin with.
    pub(super) fn key(&mut self, key_type: KeyType, before: Option<&Key>) -> Option<Key> {
        match (key_type, before) {
            (KeyType::U64, None) => self.number_of_eight().map(Key::U64),
            (KeyType::U64, Some(Key::U64(before))) => before.checked_add(self.number_of_eight()?).map(Key::U64),
            (KeyType::Bytes, before) => {
                let before: &[u8] = if let Some(Key::Bytes(before)) = before { before } else { &[] };
                let shared = before.get(..usize::try_from(self.number()?).ok()?)?;
                let length = self.number()?;
                Some(Key::Bytes([shared, self.bytes(length)?].concat()))
            }
            (KeyType::U64, Some(Key::Bytes(_))) => None,
        }
    }

    /// Varints have 56 bits and a little; the distance of two keys has all 64 of them, as two halves.
    fn number_of_eight(&mut self) -> Option<u64> {
        let low = self.number()?;
        match low & 1 {
            0 => Some(low >> 1),
            _ => self.number()?.checked_mul(1 << 32).map(|high| high | low >> 1),
        }
    }
}

/// Appends a key behind another one.
pub(super) fn put_key(key: &Key, before: Option<&Key>, out: &mut Vec<u8>) {
    match (key, before) {
        (Key::U64(key), before) => {
            let before = if let Some(Key::U64(before)) = before { *before } else { 0 };
            let distance = key - before;
            if distance < 1 << 32 {
                varint::write(distance << 1, out);
            } else {
                varint::write((distance & 0xffff_ffff) << 1 | 1, out);
                varint::write(distance >> 32, out);
            }
        }
        (Key::Bytes(key), before) => {
            let before: &[u8] = if let Some(Key::Bytes(before)) = before { before } else { &[] };
            let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
            varint::write(shared as u64, out);
            varint::write((key.len() - shared) as u64, out);
            out.extend_from_slice(&key[shared..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_whatever_lies_between_them() {
        let numbers = [0, 1, 7, 1 << 31, 1 << 32, (1 << 40) + 3, u64::MAX - 1, u64::MAX].map(Key::U64).to_vec();
        let texts = ["", "a", "ab", "abc", "b", "ba"].map(Key::from).to_vec();
        for (key_type, keys) in [(KeyType::U64, numbers), (KeyType::Bytes, texts)] {
            let mut bytes = Vec::new();
            let mut before = None;
            for key in &keys {
                put_key(key, before, &mut bytes);
                before = Some(key);
            }
            let (mut cursor, mut before) = (Cursor(&bytes), None);
            for key in &keys {
                let read = cursor.key(key_type, before.as_ref()).unwrap();
                assert_eq!(read, *key);
                before = Some(read);
            }
            assert!(cursor.0.is_empty());
            for cut in 0..bytes.len() {
                let (mut cursor, mut before) = (Cursor(&bytes[..cut]), None);
                while let Some(key) = cursor.key(key_type, before.as_ref()) {
                    before = Some(key);
                }
            }
        }
    }
}
