//! Counts what calls of functions have made for as long as it is there: each is within its bound, and a statement keeps thousands of them at
//! once.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayData, ArrayRef, make_array};
use datafusion::arrow::buffer::Buffer;
use datafusion::error::Result;

use super::argument::bytes_of;

/// Of the memory of queries, what one call may make; and the least and the most of it.
const CALLS: u64 = 4;
const CALL_BYTES: (u64, u64) = (64 << 20, 1 << 30);

/// What a call makes that is counted; less than this is what all functions make.
const COUNTED_BYTES: u64 = 1 << 20;

/// What calls of functions of a row may make: each of them for the rows of a batch, and four times that all whose results are still there.
/// Clones count together.
#[derive(Clone, Debug)]
pub struct CallMemory {
    most: u64,
    alive: Arc<AtomicU64>,
}

impl CallMemory {
    /// Beside so many bytes of memory for what queries hold.
    pub fn beside(memory_bytes: u64) -> Self {
        const { assert!(CALL_BYTES.0 >= COUNTED_BYTES, "what a call may make is counted") };
        Self { most: (memory_bytes / CALLS).clamp(CALL_BYTES.0, CALL_BYTES.1), alive: Arc::default() }
    }

    /// As much as there is, where functions are named and not called.
    pub fn unbounded() -> Self {
        Self { most: u64::MAX, alive: Arc::default() }
    }

    /// So many bytes for a call.
    #[cfg(test)]
    pub(super) fn of(most: u64) -> Self {
        Self { most, alive: Arc::default() }
    }

    /// Bytes that one call may make.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Bytes that all of them may have made.
    pub(crate) fn most_of_all(&self) -> u64 {
        self.most.saturating_mul(CALLS)
    }

    /// Counts what a call may make: none where that is little. An error, with what others have made, where there is no room for it.
    pub(super) fn take(&self, bytes: u64) -> Result<Option<Taken>, u64> {
        if bytes < COUNTED_BYTES {
            return Ok(None);
        }
        let mut taken = self.nothing();
        taken.grow(bytes, self)?;
        Ok(Some(taken))
    }

    /// Nothing yet.
    pub(super) fn nothing(&self) -> Taken {
        Taken { alive: Arc::clone(&self.alive), bytes: 0 }
    }
}

impl PartialEq for CallMemory {
    fn eq(&self, other: &Self) -> bool {
        self.most == other.most && Arc::ptr_eq(&self.alive, &other.alive)
    }
}

impl Eq for CallMemory {}

impl Hash for CallMemory {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.most.hash(state);
    }
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    alive: Arc<AtomicU64>,
    bytes: u64,
}

impl Taken {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is so much that it is counted for as long as it is there.
    pub(super) fn is_much(&self) -> bool {
        self.bytes >= COUNTED_BYTES
    }

    /// Counts more of the same call, however little. An error, with what all have made, where there is no room for it.
    pub(super) fn grow(&mut self, bytes: u64, memory: &CallMemory) -> Result<(), u64> {
        let before = self.alive.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
        if before.saturating_add(bytes) <= memory.most_of_all() {
            return Ok(());
        }
        self.shrink(bytes);
        Err(before)
    }

    /// Counts less: it was not made.
    pub(super) fn shrink(&mut self, bytes: u64) {
        self.alive.fetch_sub(bytes, Relaxed);
        self.bytes -= bytes;
    }

    /// The values, which are counted for as long as somebody has them, or a part of them.
    pub(super) fn of(mut self, values: &ArrayRef) -> Result<ArrayRef> {
        let made = bytes_of(values.as_ref()).min(self.bytes);
        self.shrink(self.bytes - made);
        Ok(make_array(held(values.to_data(), self)?))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let before = self.alive.fetch_sub(self.bytes, Relaxed);
        debug_assert!(before >= self.bytes, "{} bytes are given back of {before}", self.bytes);
    }
}

/// The largest piece of an array, which goes when all of it does.
struct Held {
    buffer: Buffer,
    _taken: Taken,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

fn held(data: ArrayData, taken: Taken) -> Result<ArrayData> {
    let most = largest(&data);
    let (mut buffers, mut children) = (data.buffers().to_vec(), data.child_data().to_vec());
    if let Some(buffer) = buffers.iter_mut().find(|buffer| buffer.len() == most) {
        *buffer = Buffer::from(Bytes::from_owner(Held { buffer: buffer.clone(), _taken: taken }));
    } else if let Some(child) = children.iter_mut().find(|child| largest(child) == most) {
        *child = held(child.clone(), taken)?;
    }
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}

fn largest(data: &ArrayData) -> usize {
    data.buffers().iter().map(Buffer::len).chain(data.child_data().iter().map(largest)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, ListArray, StringArray, StringViewArray};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_was_made_is_counted_until_the_last_part_of_it_is_gone() {
        let memory = CallMemory::beside(0);
        let alive = || memory.alive.load(Relaxed);
        let long = "x".repeat(100);
        let lists = (0..1000).map(|list| Some((0..list % 7).map(Some).collect::<Vec<Option<i64>>>()));
        let arrays: [ArrayRef; 4] = [
            Arc::new(StringArray::from(vec![long.as_str(); 1000])),
            Arc::new(StringViewArray::from(vec![long.as_str(); 1000])),
            Arc::new(Int64Array::from_iter_values(0..1000)),
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        ];
        for values in arrays {
            let counted = memory.take(64 * MIB).unwrap().unwrap().of(&values).unwrap();
            assert_eq!(&counted, &values);
            assert_eq!(alive(), bytes_of(values.as_ref()), "as much as it is");
            let part = counted.slice(10, 5);
            drop(counted);
            assert!(alive() > 0, "a part is still there: {:?}", part.data_type());
            drop(part);
            assert_eq!(alive(), 0);
        }
    }

    #[test]
    fn results_that_are_still_there_leave_no_room_for_more() {
        let memory = CallMemory::beside(0);
        assert!(memory.take(100).unwrap().is_none(), "it is little");
        let taken: Vec<Taken> = (0..4).map(|_| memory.take(64 * MIB).unwrap().unwrap()).collect();
        assert_eq!(memory.clone().take(MIB).unwrap_err(), 256 * MIB);
        drop(taken);
        assert!(memory.take(MIB).unwrap().is_some());
    }
}
