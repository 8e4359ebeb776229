//! A shortcut for views of text, checked many at a time: what it can't vouch for is left to a look at each value.

#![allow(unsafe_code, reason = "arrays of views that were checked here need no second, slower check")]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

/// Bytes that fit into a view.
const INLINE: usize = 12;

/// By the length of an inline value, the bits of its view that have to be zero: those behind the value and, of text, the
/// highest of each byte, which is set in bytes that are not ASCII.
const fn zeros(is_text: bool) -> [u128; INLINE + 1] {
    let mut zeros = [0; INLINE + 1];
    let mut length = 0;
    while length <= INLINE {
        let mut at = 0;
        while at < INLINE {
            let bits = if at >= length { 0xff } else { 0x80 * is_text as u128 };
            zeros[length] |= bits << (32 + at * 8);
            at += 1;
        }
        length += 1;
    }
    zeros
}

const TEXT: [u128; INLINE + 1] = zeros(true);
const BINARY: [u128; INLINE + 1] = zeros(false);

/// The array of a column of views if what they say is right and, of text, all of it is ASCII: that is seen at the speed of
/// memory. None for everything else, which may be right too: the caller checks it value by value.
pub(super) fn plain_views(
    kind: &DataType,
    rows: usize,
    views: &Buffer,
    data: Option<&Buffer>,
    nulls: Option<&NullBuffer>,
) -> Option<ArrayRef> {
    let is_text = *kind == DataType::Utf8View;
    let is_whole = views.len() == rows.checked_mul(16)? && views.as_ptr().cast::<u128>().is_aligned();
    let fits = nulls.is_none_or(|nulls| nulls.len() == rows);
    if !is_whole || !fits || !(is_text || *kind == DataType::BinaryView) {
        return None;
    }
    let views = ScalarBuffer::<u128>::from(views.clone());
    if !are_right(&views, data.map_or(&[], |data| data.as_slice()), is_text) {
        return None;
    }
    let buffers: Vec<Buffer> = data.cloned().into_iter().collect();
    // SAFETY: as many views as rows and as nulls (checked above); each is inline with zeros behind its bytes, or lies within
    // buffer 0 and has its prefix (`are_right`); of text all bytes are ASCII, and so any part of them is UTF-8.
    Some(unsafe {
        match is_text {
            true => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls.cloned())) as Arc<dyn Array>,
            false => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls.cloned())),
        }
    })
}

fn are_right(views: &[u128], data: &[u8], is_text: bool) -> bool {
    if is_text && !data.is_ascii() {
        return false;
    }
    let zeros = if is_text { &TEXT } else { &BINARY };
    let (mut set, mut right) = (0, true);
    // No early end: nearly all columns are right to their end, and the loop is tighter so.
    for view in views {
        if let Some(zeros) = zeros.get(*view as u32 as usize) { set |= view & zeros } else { right &= is_right(*view, data) }
    }
    right && set == 0
}

/// Whether a view that points at its value points at one that is there, and has its prefix.
fn is_right(view: u128, data: &[u8]) -> bool {
    let (length, prefix) = (view as u32 as usize, (view >> 32) as u32);
    let (buffer, offset) = ((view >> 64) as u32, (view >> 96) as usize);
    let value = data.get(offset..).and_then(|value| value.get(..length));
    buffer == 0 && value.is_some_and(|value| value[..4] == prefix.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::StringViewBuilder;

    fn of(array: &StringViewArray) -> Option<ArrayRef> {
        let data = array.data_buffers().first();
        plain_views(&DataType::Utf8View, array.len(), array.views().inner(), data, array.nulls())
    }

    fn built(values: &[Option<&str>]) -> StringViewArray {
        let mut builder = StringViewBuilder::new();
        values.iter().for_each(|value| builder.append_option(*value));
        builder.finish()
    }

    #[test]
    fn ascii_comes_back() {
        let array =
            built(&[Some(""), Some("twelve bytes"), None, Some("a value of more than twelve"), Some("another, longer one")]);
        assert_eq!(of(&array).unwrap().as_any().downcast_ref::<StringViewArray>().unwrap(), &array);
        assert!(of(&built(&[Some("ü")])).is_none() && of(&built(&[Some("a long one with ü in it")])).is_none(), "the slow way");
    }

    #[test]
    fn views_that_are_wrong_are_seen() {
        let array = built(&[Some("a value of more than twelve"), Some("short")]);
        let data = &array.data_buffers()[0];
        for (at, bit) in [(0, 2), (0, 31), (0, 40), (0, 64), (0, 96), (0, 127), (1, 2), (1, 39), (1, 72), (1, 127)] {
            let mut views = array.views().to_vec();
            views[at] ^= 1 << bit;
            let views = Buffer::from_vec(views);
            assert!(plain_views(&DataType::Utf8View, 2, &views, Some(data), None).is_none(), "bit {bit} of view {at}");
        }
        let views = array.views().inner();
        assert!(plain_views(&DataType::Utf8View, 3, views, Some(data), None).is_none(), "too few");
        assert!(plain_views(&DataType::Utf8View, 2, views, None, None).is_none(), "no data");
    }
}
