//! The one gate from bytes to Arrow's arrays: all that buffers say is checked here before anything trusts it.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, NullArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use forebay_types::{Error, Result};

use super::plain_views::plain_views;
use super::primitive::primitive;
use crate::schema::{Kind, Leaf};

/// A column's buffers as Arrow has them.
pub(crate) enum Parts {
    Nothing,
    Bit(Buffer),
    Fixed(Buffer),
    Bytes { offsets: Buffer, data: Buffer },
    View { views: Buffer, data: Option<Buffer> },
    List { offsets: Buffer, validity: Option<Buffer>, items: Buffer, count: usize },
}

impl Parts {
    /// Those of a column of this kind, which has no others below it; its validity is the first slot.
    pub fn plain(kind: Kind, slots: &[Bytes]) -> Self {
        let slot = |index: usize| slots.get(index).map(|bytes| Buffer::from(bytes.clone())).unwrap_or_default();
        match kind {
            Kind::Nothing => Self::Nothing,
            Kind::Bit => Self::Bit(slot(1)),
            Kind::Fixed(_) => Self::Fixed(slot(1)),
            Kind::Bytes { .. } => Self::Bytes { offsets: slot(1), data: slot(2) },
            Kind::View => Self::View { views: slot(1), data: Some(slot(2)).filter(|data| !data.is_empty()) },
            Kind::List { .. } | Kind::Nested { .. } => unreachable!("they have others below them"),
        }
    }
}

/// A leaf's array. Everything that the buffers say is checked, and what lies at odd addresses is copied.
pub(crate) fn array(leaf: &Leaf, rows: usize, validity: Option<Buffer>, parts: Parts) -> Result<ArrayRef> {
    let bad = |what: &dyn std::fmt::Display| Error::corrupt(format!("column `{}`: {what}", leaf.path()));
    let nulls = validity.map(|bits| nulls(bits, rows).ok_or_else(|| bad(&"its validity is too short"))).transpose()?.flatten();
    let buffers = match parts {
        Parts::Nothing => return Ok(Arc::new(NullArray::new(rows))),
        Parts::Bit(bits) if bits.len() < rows.div_ceil(8) => return Err(bad(&"its bits are too few")),
        Parts::Bit(bits) => return Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(bits, 0, rows), nulls))),
        Parts::Fixed(values) => match primitive(leaf.data_type(), rows, &values, nulls.as_ref()) {
            Some(array) => return Ok(array),
            None => vec![values],
        },
        Parts::Bytes { offsets, data } => vec![offsets, data],
        Parts::View { views, data } => match plain_views(leaf.data_type(), rows, &views, data.as_ref(), nulls.as_ref()) {
            Some(array) => return Ok(array),
            None => std::iter::once(views).chain(data).collect(),
        },
        Parts::List { offsets, validity, items, count } => {
            let (DataType::List(item) | DataType::LargeList(item)) = leaf.data_type() else { return Err(bad(&"it is no list")) };
            let child = ArrayData::builder(item.data_type().clone()).len(count).null_bit_buffer(validity).add_buffer(items);
            let child = child.align_buffers(true).build().map_err(|error| bad(&error))?;
            let list =
                ArrayData::builder(leaf.data_type().clone()).len(rows).nulls(nulls).add_buffer(offsets).add_child_data(child);
            return list.align_buffers(true).build().map(make_array).map_err(|error| bad(&error));
        }
    };
    debug_assert!(!matches!(leaf.kind(), Kind::Nothing | Kind::Bit));
    let data = ArrayData::builder(leaf.data_type().clone()).len(rows).nulls(nulls).buffers(buffers).align_buffers(true);
    data.build().map(make_array).map_err(|error| bad(&error))
}

/// The nulls in a bitmap, if there are any; nothing for one that is too short.
#[expect(clippy::option_option, reason = "too short is not the same as none")]
fn nulls(bits: Buffer, rows: usize) -> Option<Option<NullBuffer>> {
    if bits.len() < rows.div_ceil(8) {
        return None;
    }
    let nulls = NullBuffer::new(BooleanBuffer::new(bits, 0, rows));
    Some(Some(nulls).filter(|nulls| nulls.null_count() > 0))
}
