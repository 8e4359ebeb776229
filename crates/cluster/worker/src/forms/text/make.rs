//! Columns of a chunk, in one reading of its lines.

use std::sync::Arc;

use bytes::Bytes;
use forebay_placement::FormCandidate;
use forebay_types::{
    Cell, Error, ErrorKind, FormId, ObjectVersion, Result, SegmentId, TEXT_CHUNK_BYTES, TextForm, TextLines, text_chunk,
};

use super::decode::{Rows, decode, schema_with};
use super::lines::rows;
use crate::forms::Forms;
use crate::forms::costs::Kind;
use crate::forms::queue::{Job, Outcome};
use crate::forms::thread::Threads;
use crate::origin::MountDoor;

/// How far the last row of a chunk may go on in the next one: most go no further than the first of these.
const BEYOND: [u64; 2] = [16 << 10, TEXT_CHUNK_BYTES];

impl Forms {
    /// The columns that are made with a job's own, of those that are asked for together and are not here, ascending.
    pub(in crate::forms) fn wanted_columns(&self, job: &Job) -> Vec<(Cell, SegmentId)> {
        let together = self.wishes.together(&job.version, job.cell).into_iter();
        let cells = together.filter_map(|column| {
            let cell = Cell { column, ..job.cell };
            Some((cell, SegmentId::of(&job.version, cell.index()?)))
        });
        cells.filter(|(_, id)| *id == job.id || self.origin.store.pin_whole(*id).is_none()).collect()
    }

    /// Makes columns of a chunk of a text file in one reading of its lines, if that pays.
    pub(in crate::forms) async fn make_columns(
        &self,
        decoder: &Threads,
        job: &Job,
        door: &Arc<MountDoor>,
        (version, form): (&ObjectVersion, FormId),
        columns: &[(Cell, SegmentId)],
    ) -> Result<Outcome> {
        let form = self.known.get(form).ok_or_else(|| Error::not_found("nobody has said what its lines are"))?;
        let chunk = text_chunk(job.cell.row_group, version.size);
        let chunk = chunk.ok_or_else(|| Error::invalid("the file has no such chunk"))?;
        let numbers: Vec<_> = columns.iter().map(|(cell, _)| cell.column as usize).collect();
        let schema = match schema_with(&form, &numbers) {
            Ok(schema) => schema,
            Err(error) => return Ok(never(job, &error)),
        };
        let kind = match form.lines {
            TextLines::Csv(_) => Kind::Csv,
            TextLines::Json => Kind::Json,
        };
        let raw_bytes = chunk.end - chunk.start;
        let candidate = |decoded_bytes| FormCandidate { raw_bytes, decoded_bytes, operations: self.wishes.operations_of(job) };
        // A value is about as long in either form.
        let estimate = (raw_bytes * numbers.len() as u64).div_ceil(schema.fields().len() as u64);
        if !self.pays((self.costs.now(kind), candidate(estimate)), &[]) {
            self.costs.doubt(kind);
            return Ok(Outcome::NotNow);
        }
        // Of the time that the chunk's lines take each column has its share.
        let of_each = |decoded_bytes| FormCandidate { raw_bytes: raw_bytes / numbers.len() as u64, ..candidate(decoded_bytes) };
        if self.bring_all_back(decoder, job, columns, (self.costs.now(kind), of_each(estimate / numbers.len() as u64))).await? {
            return Ok(Outcome::Made);
        }
        let Some(raw) = self.gather_rows(door, version, &form, job.cell.row_group).await? else {
            return Ok(never(job, &Error::invalid("a row is longer than a chunk")));
        };
        self.wait_for_readers().await;
        let work = Rows { form, schema, columns: numbers.clone(), first: chunk.start == 0, raw };
        let made = match decoder.have(move || decode(&work)).await {
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid) => return Ok(never(job, &error)),
            made => made?,
        };
        let costs = self.costs.measured(kind, made.read, (made.bytes(), made.took));
        if !self.pays((costs, candidate(made.bytes() as u64)), &[]) {
            return Ok(Outcome::NotNow);
        }
        for (column, bytes) in columns.iter().zip(made.cells) {
            let decoding = (costs, of_each(bytes.len() as u64));
            self.keep_made(decoder, job, *column, bytes, decoding).await?;
        }
        Ok(Outcome::Made)
    }

    /// The bytes of a chunk's rows; none when its last one is too long.
    async fn gather_rows(
        &self,
        door: &Arc<MountDoor>,
        version: &ObjectVersion,
        form: &TextForm,
        chunk: u32,
    ) -> Result<Option<Bytes>> {
        let Some(chunk) = text_chunk(chunk, version.size) else { return Ok(None) };
        for beyond in BEYOND {
            let range = chunk.start.saturating_sub(1)..(chunk.end + beyond).min(version.size);
            let window = self.gather(door, version, range).await?;
            if let Some(found) = rows(&window, &chunk, version.size, form.line_end()) {
                return Ok(Some(window.slice(found)));
            }
        }
        Ok(None)
    }
}

fn never(job: &Job, error: &Error) -> Outcome {
    let (chunk, column) = (job.cell.row_group, job.cell.column);
    tracing::debug!(key = %job.version.key, chunk, column, %error, "columns of text stay raw");
    Outcome::Never
}
