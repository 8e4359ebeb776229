use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::SegmentSpec;
use forebay_placement::{FormCandidate, FormCosts, FormRoom, form_pays};
use forebay_types::{Cell, Error, HotForm, ObjectVersion, Owner, PageRun, Result, SEGMENT_BYTES};
use metrics::counter;
use parquet::basic::Type;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use super::decode::{Column, decoded_bytes};
use super::queue::Job;
use super::thread::Decoder;
use crate::mounts::MountDoor;
use crate::serving::Serving;

/// Bytes of a footer at most; larger ones belong to files of more columns than anyone decodes.
const FOOTER_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are put into the store before other tasks of the thread get their turn.
const CHUNK_BYTES: usize = 256 << 10;
/// How long a column waits for readers to be done before it is decoded anyway.
const BEHIND_READERS: Duration = Duration::from_millis(20);

impl Serving {
    /// Makes what stands in line, one after the other.
    pub(super) async fn make_forms(self: Arc<Self>) {
        let decoder = match Decoder::start() {
            Ok(decoder) => decoder,
            Err(error) => {
                tracing::warn!(%error, "no thread for decoding: files stay in their raw form");
                return;
            }
        };
        loop {
            let job = self.forms.next().await;
            let made = match self.make_form(&decoder, &job).await {
                Ok(made) => made,
                Err(error) => {
                    let (row_group, column) = (job.cell.row_group, job.cell.column);
                    tracing::debug!(key = %job.version.key, row_group, column, %error, "column not decoded");
                    false
                }
            };
            self.forms.ended(job, made);
        }
    }

    /// Whether the cell is there now; false when it would not pay.
    async fn make_form(&self, decoder: &Decoder, job: &Job) -> Result<bool> {
        if self.store.pin_whole(job.id).is_some() {
            return Ok(true);
        }
        let version = &job.version;
        let door = self.mount(version.mount).await?;
        if door.mount.options.hot_form != HotForm::Table {
            return Ok(false);
        }
        let footer = self.footer(&door, version).await?;
        let (chunk, estimate, of) = place(&footer, job.cell, version)?;
        let candidate = |decoded_bytes| FormCandidate {
            raw_bytes: chunk.end - chunk.start,
            decoded_bytes,
            operations: if job.ordered.is_some() { f64::INFINITY } else { self.forms.operations(job.id) },
        };
        let room = || {
            let dram = self.store.usage().dram;
            let of_forms = dram.by_owner.iter().find(|(owner, _)| *owner == Owner::Form);
            FormRoom { capacity_bytes: dram.capacity_bytes, form_bytes: of_forms.map_or(0, |(_, bytes)| *bytes) }
        };
        if estimate > SEGMENT_BYTES {
            return Ok(false);
        }
        // A row group is read decoded once all of the columns are that a query needs of it.
        let mut others = Vec::new();
        for column in self.forms.together(version, job.cell) {
            if column != job.cell.column {
                let (chunk, estimate, of) = place(&footer, Cell { column, ..job.cell }, version)?;
                let other = FormCandidate { raw_bytes: chunk.end - chunk.start, ..candidate(estimate) };
                others.push((self.forms.costs.now(of), other));
            }
        }
        let pays = |costs: FormCosts, decoded_bytes| form_pays((costs, candidate(decoded_bytes)), &others, room());
        if !pays(self.forms.costs.now(of), estimate) {
            self.forms.costs.doubt(of);
            return Ok(false);
        }
        let raw = self.gather(&door, version, chunk.clone()).await?;
        self.wait_for_readers().await;
        let (row_group, column) = (job.cell.row_group as usize, job.cell.column as usize);
        let work = Column { footer, row_group, column, start: chunk.start, raw };
        let made = decoder.decode(work).await?;
        let costs = self.forms.costs.measured(of, made.read, (made.bytes.len(), made.took));
        if !pays(costs, made.bytes.len() as u64) {
            return Ok(false);
        }
        self.keep_form(job, &made.bytes).await?;
        counter!("forebay_worker_decoded_bytes").increment(made.bytes.len() as u64);
        Ok(true)
    }

    async fn keep_form(&self, job: &Job, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        let run = PageRun::covering(0..len).ok_or_else(|| Error::internal("a decoded column has no bytes"))?;
        let spec = SegmentSpec { id: job.id, bytes: bytes.len() as u32, owner: Owner::Form, keep: false };
        let mut fill = self.store.begin_fill(spec, run)?;
        for (at, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
            fill.write((at * CHUNK_BYTES) as u64, chunk)?;
            tokio::task::yield_now().await;
        }
        fill.finish()?;
        if let Some(index) = job.cell.index() {
            self.counts.learn(job.id, &job.version, index);
        }
        Ok(())
    }

    /// Lets readers that are being answered go first.
    async fn wait_for_readers(&self) {
        let quiet = async {
            while self.queue.load(std::sync::atomic::Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // After that it is its turn: it runs at low priority anyway.
        let _ = tokio::time::timeout(BEHIND_READERS, quiet).await;
    }

    async fn footer(&self, door: &Arc<MountDoor>, version: &ObjectVersion) -> Result<Arc<ParquetMetaData>> {
        if let Some(footer) = self.forms.footers.get(version) {
            return Ok(footer);
        }
        let corrupt = |what: &dyn std::fmt::Display| Error::corrupt(format!("{}: {what}", version.key));
        let tail_at = version.size.checked_sub(FOOTER_SIZE as u64).ok_or_else(|| corrupt(&"too short for Parquet"))?;
        let tail = self.gather(door, version, tail_at..version.size).await?;
        let tail: &[u8; FOOTER_SIZE] = tail.as_ref().try_into().map_err(|_| corrupt(&"its last bytes are not all there"))?;
        let tail = FooterTail::try_new(tail).map_err(|error| corrupt(&error))?;
        let len = tail.metadata_length() as u64;
        let start = tail_at.checked_sub(len).filter(|_| !tail.is_encrypted_footer() && len <= FOOTER_BYTES_MAX);
        let start = start.ok_or_else(|| corrupt(&"its footer is encrypted or out of place"))?;
        let bytes: Bytes = self.gather(door, version, start..tail_at).await?;
        let footer = ParquetMetaDataReader::decode_metadata(&bytes).map_err(|error| corrupt(&error))?;
        let footer = Arc::new(footer);
        self.forms.footers.put(version, &footer);
        Ok(footer)
    }
}

/// Where a column of a row group is in the file, about how many bytes it has decoded, and its physical type.
fn place(footer: &ParquetMetaData, cell: Cell, version: &ObjectVersion) -> Result<(Range<u64>, u64, Type)> {
    let (row_group, column) = (cell.row_group as usize, cell.column as usize);
    let wrong = || Error::invalid(format!("{}: it has no column {column} in row group {row_group}", version.key));
    let group = footer.row_groups().get(row_group).ok_or_else(wrong)?;
    let chunk = group.columns().get(column).ok_or_else(wrong)?;
    let start = chunk.dictionary_page_offset().filter(|at| *at > 0).unwrap_or_else(|| chunk.data_page_offset());
    let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    let range = range.map(|(start, len)| start..start.saturating_add(len));
    let range = range.filter(|range| range.start < range.end && range.end <= version.size);
    let range = range.ok_or_else(|| Error::corrupt(format!("{}: column {column} lies outside of it", version.key)))?;
    Ok((range, decoded_bytes(chunk), chunk.column_type()))
}
