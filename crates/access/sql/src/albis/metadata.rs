//! Opens the metadata of table files with one request where it is small, and keeps it by version for all queries.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::common::HashMap;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadata, FileMetadataCache};
use forebay_table::{FOOTER_BYTES, Footer, Table, Verified};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::error::external;
use crate::location::shown;

/// Bytes read from a file's end in the first request: the footer, and the metadata of some ten row groups with it.
const TAIL_BYTES: u64 = 64 << 10;
/// Memory that decoded metadata takes for a byte of it in the file, about.
const MEMORY_FACTOR: usize = 4;

/// Opens tables; what was opened is kept by version, for all queries of an engine.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    cache: Option<Arc<FileMetadataCache>>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tables")
    }
}

/// One version of a file, opened.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) table: Table,
    /// Which of its cells have verified, in any query of the engine.
    pub(super) verified: Arc<Verified>,
}

/// It as the engine's cache holds it.
struct Known {
    opened: Opened,
    bytes: usize,
}

impl FileMetadata for Known {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        self.bytes * MEMORY_FACTOR + self.opened.verified.bytes()
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::new()
    }
}

impl Tables {
    pub(crate) fn cached(cache: Arc<FileMetadataCache>) -> Self {
        Self { cache: Some(cache) }
    }

    /// The metadata of one version of a file, if it was opened before.
    pub(super) fn known(&self, meta: &ObjectMeta) -> Option<Opened> {
        let known = self.cache.as_ref()?.get(&meta.location)?;
        if !known.is_valid_for(meta) || known.meta.e_tag != meta.e_tag {
            return None;
        }
        let known = known.file_metadata.as_any().downcast_ref::<Known>()?;
        Some(known.opened.clone())
    }

    /// The metadata of one version of a file: from its end, in one request where it is small.
    pub(crate) async fn open(&self, store: &Arc<dyn ObjectStore>, meta: &ObjectMeta) -> Result<Opened> {
        if let Some(known) = self.known(meta) {
            return Ok(known);
        }
        let bad = |error: forebay_types::Error| external(error.context(format!("'{}'", shown(meta.location.as_ref()))));
        Footer::range(meta.size).map_err(bad)?;
        let start = meta.size.saturating_sub(TAIL_BYTES);
        let tail = store.get_range(&meta.location, start..meta.size).await?;
        let footer = Footer::parse(meta.size, &tail).map_err(bad)?;
        let range = footer.metadata();
        let block = match range.start.checked_sub(start) {
            Some(at) => tail.slice(at as usize..tail.len() - FOOTER_BYTES as usize),
            None => store.get_range(&meta.location, range.clone()).await?,
        };
        let table = Table::parse(&footer, &block).map_err(bad)?;
        let opened = Opened { verified: Arc::new(Verified::none_of(&table)), table };
        if let Some(cache) = &self.cache {
            let known = Known { opened: opened.clone(), bytes: block.len() };
            cache.put(&meta.location, CachedFileMetadataEntry::new(meta.clone(), Arc::new(known)));
        }
        Ok(opened)
    }
}
