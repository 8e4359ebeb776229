//! Columns that are kept compressed on the disk tier, for when they have left memory.

use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::SegmentSpec;
use forebay_metrics::table;
use forebay_placement::{FormCandidate, FormCosts, FormDiskRoom};
use forebay_table::{pack, unpack};
use forebay_types::{Cell, Error, ErrorKind, Owner, Result, SEGMENT_BYTES, SegmentId};

use super::Forms;
use super::clock::Clock;
use super::queue::Job;
use super::thread::Threads;

/// Bytes that say how long a column is before it was compressed.
const LENGTH_BYTES: usize = 4;

impl Forms {
    /// Brings a column back from disk, if it is there, and sooner so than decoded anew; false where it is not.
    pub(super) async fn bring_back(
        &self,
        decoder: &Threads,
        job: &Job,
        (cell, id): (Cell, SegmentId),
        (costs, column): (FormCosts, FormCandidate),
    ) -> Result<bool> {
        let (store, packed) = (&self.origin.store, id.packed());
        if store.held(packed).disk_bytes == 0 {
            return Ok(false);
        }
        let known = *self.disk.lock();
        if !known.is_sooner(costs, &column) {
            self.disk.lock().passed();
            return Ok(false);
        }
        let began = forebay_runtime::now();
        let Some(bytes) = store.read_all_from_disk(packed).await? else {
            // Of what is there in part nothing is of use.
            store.free(packed);
            return Ok(false);
        };
        let read = (bytes.len() as u64, forebay_runtime::now().saturating_duration_since(began).as_secs_f64());
        match decoder.have(move || unpacked(&bytes)).await {
            Ok((raw, took)) => {
                assert!(raw.len() as u64 <= SEGMENT_BYTES, "a column of {} bytes came back", raw.len());
                self.disk.lock().came_back(read, (raw.len() as u64, took.as_secs_f64()));
                self.keep_form(job, cell, id, &raw).await?;
                // After a restart these are the first columns that there are, and they are not worth nothing.
                self.room.made(costs, &column);
                table::WORKER_BROUGHT_BACK_BYTES.only().add(raw.len() as u64);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                tracing::warn!(key = %job.version.key, row_group = cell.row_group, %error, "a column on disk can't be read: it is dropped");
                store.free(packed);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The same for columns that are decoded together: all of them, or none, since to decode one takes as long.
    pub(super) async fn bring_all_back(
        &self,
        decoder: &Threads,
        job: &Job,
        columns: &[(Cell, SegmentId)],
        decoding: (FormCosts, FormCandidate),
    ) -> Result<bool> {
        let store = &self.origin.store;
        if columns.iter().any(|(_, id)| store.held(id.packed()).disk_bytes == 0) {
            return Ok(false);
        }
        for column in columns {
            let is_here = store.pin_whole(column.1).is_some();
            if !is_here && !self.bring_back(decoder, job, *column, decoding).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps a column that was made, on disk too where that pays. It is only a copy: what can't be written is not there.
    pub(super) async fn keep_made(
        &self,
        decoder: &Threads,
        job: &Job,
        (cell, id): (Cell, SegmentId),
        bytes: Vec<u8>,
        (costs, column): (FormCosts, FormCandidate),
    ) -> Result<()> {
        self.keep_form(job, cell, id, &bytes).await?;
        self.room.made(costs, &column);
        table::WORKER_DECODED_BYTES.only().add(bytes.len() as u64);
        let (store, packed) = (&self.origin.store, id.packed());
        assert_ne!(packed, id, "a column and its copy are two segments");
        if !store.has_disk() || store.held(packed).disk_bytes > 0 {
            return Ok(());
        }
        let usage = store.usage().disk;
        let room = FormDiskRoom { capacity_bytes: usage.capacity_bytes, form_bytes: usage.bytes_of(Owner::Form) };
        let known = *self.disk.lock();
        if !known.pays(costs, &column, room) {
            self.disk.lock().passed();
            return Ok(());
        }
        let whole = bytes.len() as u64;
        let Ok(bytes) = decoder.have(move || Ok(compressed(&bytes))).await else { return Ok(()) };
        let known = self.disk.lock().packed(whole, bytes.len() as u64);
        if bytes.len() as u64 > SEGMENT_BYTES || !known.pays(costs, &column, room) {
            return Ok(());
        }
        let spec = SegmentSpec { id: packed, bytes: bytes.len() as u32, owner: Owner::Form, keep: false };
        match store.write_to_disk(spec, bytes.clone()).await {
            Ok(()) => table::WORKER_PACKED_BYTES.only().add(bytes.len() as u64),
            Err(error) => tracing::debug!(key = %job.version.key, %error, "a column is not kept on disk"),
        }
        Ok(())
    }
}

/// A column as it is kept on disk.
fn compressed(column: &[u8]) -> Bytes {
    let packed = pack(column);
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + packed.len());
    bytes.extend_from_slice(&(column.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&packed);
    bytes.into()
}

/// The column, and how long that took.
fn unpacked(bytes: &[u8]) -> Result<(Bytes, Duration)> {
    let clock = Clock::start();
    let (length, packed) =
        bytes.split_first_chunk::<LENGTH_BYTES>().ok_or_else(|| Error::corrupt("a compressed column without a length"))?;
    let length = u32::from_le_bytes(*length);
    if u64::from(length) > SEGMENT_BYTES {
        return Err(Error::corrupt(format!("a compressed column of {length} bytes")));
    }
    Ok((unpack(packed, length as usize)?, clock.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_comes_back_and_what_is_none_does_not() {
        let column: Vec<u8> = (0..200_000u32).map(|at| (at / 100) as u8).collect();
        let kept = compressed(&column);
        assert!(kept.len() * 10 < column.len());
        assert_eq!(unpacked(&kept).unwrap().0, column);
        let longer = [&u32::MAX.to_le_bytes()[..], &kept[LENGTH_BYTES..]].concat();
        for wrong in [&kept[..2], &kept[..kept.len() / 2], &longer[..]] {
            assert_eq!(unpacked(wrong).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
