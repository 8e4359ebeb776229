use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use forebay_shard::{FlatText, LayerId};
use forebay_types::{Error, Result, ResultExt};

use super::Store;
use super::build::{Temporary, write_part};
use super::open::map_part;
use super::tune::{in_parallel, layer_of};
use crate::folder::{Manifest, ShardFiles, map};
use crate::question::{Condition, Literal, Test};

impl Store {
    /// Builds a shard of flat text from a file, at most 1 GiB: substrings are searched, there are no records.
    pub fn build_text(path: &Path, file: &Path, size: f64) -> Result<()> {
        let text = std::fs::read(file).context(|| file.display())?;
        let mut temporary = Temporary::create(path)?;
        let mut manifest = Manifest { size, log_from: 1, ..Manifest::default() };
        let built = forebay_shard::build_flat(&text, size).context(|| file.display())?;
        let mut files =
            ShardFiles { base: write_part(temporary.path(), manifest.name("base"), &built.base)?, layers: Vec::new() };
        for (id, bytes) in &built.layers {
            files.layers.push(write_part(temporary.path(), manifest.name("layer") + &format!("-{id}"), bytes)?);
        }
        manifest.shards.push(files);
        manifest.write(temporary.path())?;
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

    fn text<'a>(&self, view: &'a super::View) -> Result<&'a Arc<FlatText>> {
        view.text.as_ref().ok_or_else(|| Error::invalid(format!("{} holds records, not flat text", self.path.display())))
    }

    /// Sets how much of flat text's samples are stored.
    pub(super) fn tune_text(&self, text: &FlatText, size: f64, threads: usize, manifest: &mut Manifest) -> Result<()> {
        let wanted: BTreeSet<LayerId> = text.dial(size, false).into_iter().collect();
        let there: BTreeSet<LayerId> = text.layers().iter().map(|layer| layer.id).collect();
        let files = &mut manifest.shards.first_mut().ok_or_else(|| Error::internal("flat text without a base"))?.layers;
        for &id in there.difference(&wanted) {
            text.remove_layer(id);
            files.retain(|entry| layer_of(entry) != Some(id));
        }
        let missing: Vec<LayerId> = wanted.difference(&there).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let builder = text.layer_builder(&missing)?;
        in_parallel(&builder.steps(), threads, |step| {
            builder.run(step);
            Ok(())
        })?;
        for (id, bytes) in builder.finish()? {
            let entry = write_part(&self.path, manifest.name("layer") + &format!("-{id}"), &bytes)?;
            text.add_layer(map(&self.path.join(&entry.file))?)?;
            manifest.shards[0].layers.push(entry);
        }
        Ok(())
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
