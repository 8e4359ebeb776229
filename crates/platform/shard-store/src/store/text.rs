//! Flat text: built from a file, searched for substrings, extracted from anywhere.

use std::path::Path;
use std::sync::Arc;

use forebay_shard::FlatText;
use forebay_types::{Error, Result, ResultExt};

use super::Store;
use super::build::Temporary;
use crate::folder::{Manifest, Names, PartWriter, ShardFiles, map_part};
use crate::literal::Literal;
use crate::question::{Condition, Test};

/// What is extracted is put together in memory, at two steps along psi a byte at most.
const EXTRACT_BYTES_MAX: usize = 64 << 20;

impl Store {
    /// Builds a shard of flat text from a file, at most 1 GiB: substrings are searched, there are no records.
    pub fn build_text(path: &Path, file: &Path, size: f64) -> Result<()> {
        let text = std::fs::read(file).context(|| file.display())?;
        let mut temporary = Temporary::create(path)?;
        let mut manifest = Manifest { size, log_from: 1, ..Manifest::default() };
        let built = forebay_shard::build_flat(&text, size).context(|| file.display())?;
        let names = Names::after(0);
        manifest.shards.push(PartWriter::new(&temporary.path, &names).shard(&built)?);
        manifest.next_file = names.last();
        manifest.write(&temporary.path)?;
        temporary.place(path)
    }

    /// Where in flat text a substring begins, in order, at most `limit` places.
    pub fn search_text(&self, condition: &Condition, limit: Option<usize>) -> Result<Vec<u32>> {
        let view = self.view.load();
        let mut found = self.text(&view)?.search(&substring(condition)?);
        found.truncate(limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    /// How often a substring occurs in flat text.
    pub fn count_text(&self, condition: &Condition) -> Result<u64> {
        Ok(self.text(&self.view.load())?.count(&substring(condition)?))
    }

    /// Bytes of flat text from an offset on: so many, or as many as there are.
    pub fn extract_text(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        if length > EXTRACT_BYTES_MAX {
            return Err(Error::invalid(format!("{length} bytes of text at a time: {EXTRACT_BYTES_MAX} at most; ask for pieces")));
        }
        Ok(self.text(&self.view.load())?.extract(offset, length))
    }

    fn text<'a>(&self, view: &'a super::View) -> Result<&'a Arc<FlatText>> {
        view.text.as_ref().ok_or_else(|| Error::invalid(format!("{} holds records, not flat text", self.path.display())))
    }
}

/// Maps the files of flat text.
pub(super) fn open_text(folder: &Path, files: &ShardFiles) -> Result<FlatText> {
    let base = folder.join(&files.base.file);
    let text = FlatText::open(map_part(folder, &files.base)?, []).context(|| base.display())?;
    for entry in &files.layers {
        text.add_layer(map_part(folder, entry)?).context(|| folder.join(&entry.file).display().to_string())?;
    }
    Ok(text)
}

/// The bytes of `text *= value`, the only test there is without columns.
fn substring(condition: &Condition) -> Result<Vec<u8>> {
    match condition {
        Condition::Column { column, test: Test::Contains(literal) } if column == "text" => match literal {
            Literal::Text(text) => Ok(text.clone().into_bytes()),
            Literal::Bytes(bytes) => Ok(bytes.clone()),
            other => Err(Error::invalid(format!("{other} is no text to look for"))),
        },
        _ => Err(Error::invalid("flat text has no columns: look for a substring, as in: text *= \"word\"")),
    }
}
