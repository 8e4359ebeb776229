//! What a query takes the lines of a CSV or JSON file for, and the names of the columns that are decoded under it.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Cell, Error, FormId, ObjectVersion, Result, RouteKey, SegmentId, digest};

/// Bytes of a chunk of a text file: what stands for a row group there. A chunk's rows are those whose first byte lies in it.
pub const TEXT_CHUNK_BYTES: u64 = 4 << 20;

/// Bytes that the schema of a [`TextForm`] may have; files of more columns stay raw.
const SCHEMA_BYTES_MAX: usize = 32 << 10;

/// What a query takes the lines of a text file for. Other options or another schema make other columns of the same bytes, so
/// that it is part of the key of what is decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TextForm {
    /// How a line is cut into values.
    pub lines: TextLines,
    /// The file's columns: a schema's bytes as in docs/specs/table.md.
    pub schema: Vec<u8>,
}

/// How a line is cut into values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextLines {
    /// Values in the order of the columns.
    Csv(CsvLines),
    /// An object of JSON.
    Json,
}

/// What a reader of CSV is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CsvLines {
    /// The file's first line is none of its rows.
    pub header: bool,
    /// Between two values.
    pub delimiter: u8,
    /// Around a value.
    pub quote: u8,
    /// Before a quote that belongs to a quoted value; it may be doubled all the same.
    pub escape: Option<u8>,
    /// Lines that begin with it are left out.
    pub comment: Option<u8>,
    /// Ends a line; line feeds and carriage returns without it.
    pub terminator: Option<u8>,
    /// Lines may have too few values.
    pub truncated_rows: bool,
}

impl TextForm {
    /// Its id.
    pub fn id(&self) -> FormId {
        let lines: Vec<u8> = match &self.lines {
            TextLines::Csv(csv) => {
                let mut lines = vec![1, csv.header.into(), csv.delimiter, csv.quote, csv.truncated_rows.into()];
                let choices = [csv.escape, csv.comment, csv.terminator];
                lines.extend(choices.iter().flat_map(|byte| byte.map_or([0, 0], |byte| [1, byte])));
                lines
            }
            TextLines::Json => vec![2],
        };
        FormId(digest(&[&lines, &self.schema]))
    }

    /// The byte that ends a line for who cuts a file at its lines.
    pub fn line_end(&self) -> u8 {
        match &self.lines {
            TextLines::Csv(csv) => csv.terminator.unwrap_or(b'\n'),
            TextLines::Json => b'\n',
        }
    }

    /// Whether it is one that columns can be decoded with, as far as its size tells.
    /// `Invalid` when its schema is too long.
    pub fn check(&self) -> Result<()> {
        if self.schema.len() > SCHEMA_BYTES_MAX {
            return Err(Error::invalid(format!("a schema of {} bytes: {SCHEMA_BYTES_MAX} at most", self.schema.len())));
        }
        Ok(())
    }
}

/// The bytes of a chunk of a file of `size` bytes; none past its end.
pub fn text_chunk(chunk: u32, size: u64) -> Option<Range<u64>> {
    let start = u64::from(chunk) * TEXT_CHUNK_BYTES;
    (start < size).then(|| start..(start + TEXT_CHUNK_BYTES).min(size))
}

/// What cells are made of: a version, and of a text file also what its lines are taken for.
#[derive(Clone, Debug)]
pub struct CellSource {
    version: ObjectVersion,
    form: Option<Arc<TextForm>>,
    named: ObjectVersion,
}

impl CellSource {
    /// Cells of a Parquet file.
    pub fn parquet(version: ObjectVersion) -> Self {
        Self { named: version.clone(), version, form: None }
    }

    /// Cells of a text file.
    pub fn text(version: ObjectVersion, form: Arc<TextForm>) -> Self {
        Self { named: version.in_form(form.id()), version, form: Some(form) }
    }

    /// The object's version.
    pub fn version(&self) -> &ObjectVersion {
        &self.version
    }

    /// What a text file's lines are taken for.
    pub fn form(&self) -> Option<&Arc<TextForm>> {
        self.form.as_ref()
    }

    /// The version under which its cells are named, placed and counted.
    pub fn named(&self) -> &ObjectVersion {
        &self.named
    }

    /// The id of a cell, and where it is routed; none for a cell that has no [`Cell::index`], or is no column.
    pub fn place(&self, cell: Cell) -> Option<(SegmentId, RouteKey)> {
        if cell.is_rows() { None } else { self.segment(cell) }
    }

    /// The id of what says which columns of a row group or chunk are asked for together, [`Cell::rows`], and where all of them are routed.
    pub fn rows(&self, row_group: u32) -> Option<(SegmentId, RouteKey)> {
        self.segment(Cell::rows(row_group))
    }

    fn segment(&self, cell: Cell) -> Option<(SegmentId, RouteKey)> {
        let index = cell.index()?;
        debug_assert_eq!(Cell::of_index(index), Some(cell), "no two cells have one index");
        Some((SegmentId::of(&self.named, index), RouteKey::of(self.version.mount, &self.version.key, index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, MountId, VersionTag};

    fn csv() -> CsvLines {
        CsvLines {
            header: true,
            delimiter: b',',
            quote: b'"',
            escape: None,
            comment: None,
            terminator: None,
            truncated_rows: false,
        }
    }

    #[test]
    fn every_option_makes_another_form() {
        let of = |lines| TextForm { lines, schema: vec![1, 2] };
        let forms = [
            of(TextLines::Json),
            TextForm { schema: vec![1, 3], ..of(TextLines::Json) },
            of(TextLines::Csv(csv())),
            of(TextLines::Csv(CsvLines { header: false, ..csv() })),
            of(TextLines::Csv(CsvLines { delimiter: b';', ..csv() })),
            of(TextLines::Csv(CsvLines { quote: b'\'', ..csv() })),
            of(TextLines::Csv(CsvLines { escape: Some(b'\\'), ..csv() })),
            of(TextLines::Csv(CsvLines { comment: Some(b'\\'), ..csv() })),
            of(TextLines::Csv(CsvLines { terminator: Some(b'\\'), ..csv() })),
            of(TextLines::Csv(CsvLines { truncated_rows: true, ..csv() })),
        ];
        let ids: std::collections::BTreeSet<_> = forms.iter().map(TextForm::id).collect();
        assert_eq!(ids.len(), forms.len());
    }

    #[test]
    fn a_form_has_cells_of_its_own_and_the_version_comes_back() {
        let tag = VersionTag::etag("\"t\"");
        let version = ObjectVersion { mount: MountId(1), key: Key::new("a.csv").unwrap(), tag, size: 9 };
        let form = Arc::new(TextForm { lines: TextLines::Csv(csv()), schema: Vec::new() });
        let cell = Cell { row_group: 0, column: 1 };
        let (text, parquet) = (CellSource::text(version.clone(), Arc::clone(&form)), CellSource::parquet(version.clone()));
        assert_ne!(text.place(cell).unwrap().0, parquet.place(cell).unwrap().0);
        assert_eq!((parquet.place(Cell::rows(0)), parquet.rows(0).is_some()), (None, true), "no column");
        assert_eq!(text.named().form(), Some((version.clone(), form.id())));
        assert_eq!((version.form(), parquet.named()), (None, &version));
    }

    #[test]
    fn chunks_end_with_the_file() {
        assert_eq!(text_chunk(0, 10), Some(0..10));
        assert_eq!(text_chunk(1, TEXT_CHUNK_BYTES + 10), Some(TEXT_CHUNK_BYTES..TEXT_CHUNK_BYTES + 10));
        assert_eq!((text_chunk(1, TEXT_CHUNK_BYTES), text_chunk(u32::MAX, 7), text_chunk(0, 0)), (None, None, None));
    }
}
