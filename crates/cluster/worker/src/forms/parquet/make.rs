//! One column of a row group.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_placement::{FormCandidate, FormCosts};
use forebay_table::check_parquet_footer;
use forebay_types::{Cell, Error, ObjectVersion, Result, SEGMENT_BYTES};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use super::decode::{Column, decode, decoded_bytes};
use crate::forms::Forms;
use crate::forms::costs::Kind;
use crate::forms::queue::{Job, Outcome};
use crate::forms::thread::Threads;
use crate::origin::MountDoor;

/// Bytes of a footer at most; larger ones belong to files of more columns than anyone decodes.
const FOOTER_BYTES_MAX: u64 = 64 << 20;

impl Forms {
    /// Makes a column of a row group of a Parquet file, if that pays.
    pub(in crate::forms) async fn make_column(&self, decoder: &Threads, job: &Job, door: &Arc<MountDoor>) -> Result<Outcome> {
        let version = &job.version;
        let footer = self.footer(door, version).await?;
        let (chunk, estimate, of) = place(&footer, job.cell, version)?;
        let candidate = |decoded_bytes| FormCandidate {
            raw_bytes: chunk.end - chunk.start,
            decoded_bytes,
            operations: self.wishes.operations_of(job),
        };
        if estimate > SEGMENT_BYTES {
            return Ok(Outcome::NotNow);
        }
        // A row group is read decoded once all of the columns are that a query needs of it.
        let mut others = Vec::new();
        for column in self.wishes.together(version, job.cell) {
            if column != job.cell.column {
                let (chunk, estimate, of) = place(&footer, Cell { column, ..job.cell }, version)?;
                let other = FormCandidate { raw_bytes: chunk.end - chunk.start, ..candidate(estimate) };
                others.push((self.costs.now(of), other));
            }
        }
        let pays = |costs: FormCosts, decoded_bytes| self.pays((costs, candidate(decoded_bytes)), &others);
        if !pays(self.costs.now(of), estimate) {
            self.costs.doubt(of);
            return Ok(Outcome::NotNow);
        }
        let own = (job.cell, job.id);
        if self.bring_back(decoder, job, own, (self.costs.now(of), candidate(estimate))).await? {
            return Ok(Outcome::Made);
        }
        let raw = self.gather(door, version, chunk.clone()).await?;
        self.wait_for_readers().await;
        let (row_group, column) = (job.cell.row_group as usize, job.cell.column as usize);
        let work = Column { footer, row_group, column, start: chunk.start, raw };
        let made = decoder.have(move || decode(&work)).await?;
        let costs = self.costs.measured(of, made.read, (made.bytes(), made.took));
        let made_bytes = made.bytes() as u64;
        if !pays(costs, made_bytes) {
            return Ok(Outcome::NotNow);
        }
        for cell in made.cells {
            self.keep_made(decoder, job, own, cell, (costs, candidate(made_bytes))).await?;
        }
        Ok(Outcome::Made)
    }

    async fn footer(&self, door: &Arc<MountDoor>, version: &ObjectVersion) -> Result<Arc<ParquetMetaData>> {
        if let Some(footer) = self.footers.get(version) {
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
        check_parquet_footer(&bytes).map_err(|fault| corrupt(&Error::from(fault)))?;
        let footer = ParquetMetaDataReader::decode_metadata(&bytes).map_err(|error| corrupt(&error))?;
        let footer = Arc::new(footer);
        self.footers.put(version, &footer);
        Ok(footer)
    }
}

/// Where a column of a row group is in the file, about how many bytes it has decoded, and what it costs.
fn place(footer: &ParquetMetaData, cell: Cell, version: &ObjectVersion) -> Result<(Range<u64>, u64, Kind)> {
    let (row_group, column) = (cell.row_group as usize, cell.column as usize);
    let wrong = || Error::invalid(format!("{}: it has no column {column} in row group {row_group}", version.key));
    let group = footer.row_groups().get(row_group).ok_or_else(wrong)?;
    let chunk = group.columns().get(column).ok_or_else(wrong)?;
    let start = chunk.dictionary_page_offset().filter(|at| *at > 0).unwrap_or_else(|| chunk.data_page_offset());
    let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    let range = range.map(|(start, len)| start..start.saturating_add(len));
    let range = range.filter(|range| range.start < range.end && range.end <= version.size);
    let range = range.ok_or_else(|| Error::corrupt(format!("{}: column {column} lies outside of it", version.key)))?;
    Ok((range, decoded_bytes(chunk), Kind::Parquet(chunk.column_type())))
}
