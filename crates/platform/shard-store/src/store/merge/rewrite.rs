//! A shard made anew, in another folder and in parts of a bounded size: what is in memory at a time is one of them.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_shard::{Builder, ColdWriter, Key, Record};
use forebay_types::{Error, Result, ResultExt};

use super::records::for_each_record;
use crate::columns::Columns;
use crate::folder::{ColdEntry, FileEntry, Manifest, Names, PartWriter, ShardFiles, explain};
use crate::store::build::values;
use crate::store::{Store, View};

/// What a store that is only read has at some time: its files, and the updates on top of them. It stays as it is whatever comes later, and
/// shares its memory with the store.
pub struct Standing {
    view: Arc<View>,
    columns: Columns,
    keeps_cold: bool,
}

impl Store {
    /// What it has now. `Invalid` for flat text; for a store that was opened to be read only.
    pub fn standing(&self) -> Result<Standing> {
        let seen = self.seen.as_ref().ok_or_else(|| Error::internal("a store that is changed merges by itself"))?;
        let keeps_cold = seen.lock().keeps_cold();
        Ok(Standing { view: self.view.load_full(), columns: self.records()?.clone(), keeps_cold })
    }
}

impl Standing {
    /// Whether nothing was changed beside the files.
    pub fn is_unchanged(&self) -> bool {
        self.view.runs.is_empty()
    }

    /// About the bytes of its records, no fewer than there will be.
    pub fn input_bytes(&self) -> u64 {
        let files: u64 = self.view.shards.iter().map(|mapped| mapped.shard.info().input_bytes).sum();
        files + self.view.logged().1 as u64
    }
}

/// Writes a shard of the records that there are into an empty folder: compressed shards of about `part_bytes` of input each, with no
/// layers, in the order of their keys.
pub(crate) fn rewrite(standing: &Standing, to: &Path, size: f64, part_bytes: u64) -> Result<()> {
    assert!(part_bytes > 0, "a part has something in it");
    let Standing { view, columns, keeps_cold } = standing;
    let attributes = columns.attributes().count();
    let names = Names::after(0);
    let mut parts = Parts { columns, part_bytes, builder: Builder::new(columns.schema())?, files: Vec::new() };
    let mut writer = PartWriter::new(to, &names);
    let mut cold = if *keeps_cold { Some(Cold::begin(to, &names, columns, standing.input_bytes())?) } else { None };
    for_each_record(
        view,
        attributes,
        |place| columns.attribute_type(place),
        |key, record| {
            if let Some(cold) = &mut cold {
                cold.writer.push(key, &values(record, attributes))?;
            }
            parts.push(key, record, &mut writer)
        },
    )?;
    parts.finish_part(&mut writer)?;
    let cold = cold.map(Cold::finish).transpose()?.flatten();
    let (columns, shards) = (Some(columns.clone()), parts.files);
    Manifest { columns, size, shards, log_from: 1, next_file: names.last(), cold }.write(to)
}

/// Compressed shards on their way.
struct Parts<'c> {
    columns: &'c Columns,
    part_bytes: u64,
    builder: Builder,
    files: Vec<ShardFiles>,
}

impl Parts<'_> {
    fn push(&mut self, key: &Key, record: &Record, writer: &mut PartWriter<'_>) -> Result<()> {
        if self.builder.input_bytes() >= self.part_bytes {
            self.finish_part(writer)?;
        }
        let values = values(record, self.columns.attributes().count());
        self.builder.push_encoded(key, &values).context(|| format!("record {key}"))
    }

    /// Compresses the records so far; where there are none at all, a shard of none.
    fn finish_part(&mut self, writer: &mut PartWriter<'_>) -> Result<()> {
        if self.builder.is_empty() && !self.files.is_empty() {
            return Ok(());
        }
        let builder = std::mem::replace(&mut self.builder, Builder::new(self.columns.schema())?);
        self.files.push(writer.shard(&builder.finish_base()?)?);
        Ok(())
    }
}

/// A cold file on its way.
struct Cold {
    name: String,
    path: PathBuf,
    writer: ColdWriter<BufWriter<File>>,
}

impl Cold {
    fn begin(to: &Path, names: &Names, columns: &Columns, input_bytes: u64) -> Result<Self> {
        let name = names.next("cold");
        let path = to.join(&name);
        let out = BufWriter::new(File::create_new(&path).map_err(|error| explain(error, &path))?);
        let noted = (0..columns.attributes().count()).map(|attribute| nameless(&to.join(format!("noted-{attribute}"))));
        let noted = noted.collect::<Result<_>>()?;
        let writer = ColdWriter::new(columns.schema(), input_bytes, out, noted);
        Ok(Self { name, path, writer })
    }

    /// What it came to be; none where a record is too large to be read from such a file.
    fn finish(self) -> Result<Option<ColdEntry>> {
        let Self { name, path, writer } = self;
        let read = |noted: BufWriter<File>| {
            let mut noted = noted.into_inner().map_err(|error| explain(error.into_error(), &path))?;
            noted.rewind().context(|| path.display())?;
            Ok(noted)
        };
        let Some((mut out, tail_bytes)) = writer.finish(read)? else {
            std::fs::remove_file(&path).context(|| path.display())?;
            return Ok(None);
        };
        out.flush().and_then(|()| out.get_ref().sync_all()).map_err(|error| explain(error, &path))?;
        let bytes = out.get_ref().metadata().context(|| path.display())?.len();
        Ok(Some(ColdEntry { entry: FileEntry { file: name, bytes }, tail_bytes }))
    }
}

/// A file that goes away with whoever has it open.
fn nameless(path: &Path) -> Result<BufWriter<File>> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(|error| explain(error, path))?;
    std::fs::remove_file(path).context(|| path.display())?;
    Ok(BufWriter::new(file))
}
