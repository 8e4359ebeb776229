//! Footers and statistics of files, shared by all queries of an engine and keyed by ETag, so that no version answers for another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::TableReference;
use datafusion::datasource::physical_plan::parquet::metadata::CachedParquetMetaData;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{CacheManagerConfig, CachedFileMetadata, CachedFileMetadataEntry};
use datafusion::execution::cache::default_cache::DefaultCache;
use datafusion::execution::cache::{Cache, CacheEntryInfo, CacheKey, CacheValue, TableScopedPath};
use object_store::ObjectMeta;
use object_store::path::Path;

use crate::scans::with_nan;
use crate::settings::LISTING_BYTES_MAX;
use crate::stores::Seen;

/// Memory for Parquet footers, over all queries of an engine.
const FOOTER_BYTES_MAX: usize = 256 << 20;
/// Memory for files' statistics, over all queries of an engine.
const STATISTICS_BYTES_MAX: usize = 64 << 20;

/// What is known of one version of one file, under whatever key the engine asks for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Versioned<K> {
    key: K,
    tag: Option<String>,
}

/// A key of the engine's caches that names a file.
pub(crate) trait FileKey: CacheKey + 'static {
    fn path(&self) -> &Path;
}

impl FileKey for Path {
    fn path(&self) -> &Path {
        self
    }
}

impl FileKey for TableScopedPath {
    fn path(&self) -> &Path {
        &self.path
    }
}

/// A value of the engine's caches that was made from a file.
pub(crate) trait FileValue: CacheValue + 'static {
    fn meta(&self) -> &ObjectMeta;

    /// The value as it is kept.
    fn kept(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

impl FileValue for CachedFileMetadataEntry {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Readers count on a footer that holds of NaN, which each would have to make otherwise.
    fn kept(self) -> Self {
        let read = self.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>();
        match read.map(|read| with_nan(Arc::clone(read.parquet_metadata()))) {
            Some(Ok(read)) => Self { file_metadata: Arc::new(CachedParquetMetaData::new(read)), ..self },
            _ => self,
        }
    }
}

impl FileValue for CachedFileMetadata {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
}

impl<K: CacheKey> CacheKey for Versioned<K> {
    fn size(&self) -> usize {
        self.key.size() + self.tag.as_ref().map_or(0, String::len)
    }

    fn table_ref(&self) -> Option<&TableReference> {
        self.key.table_ref()
    }
}

/// The footers and statistics that all queries of an engine share.
///
/// The engine's own caches take a file for unchanged when size and modification time agree, which two versions written
/// within the clock's resolution may do. Here the ETag is part of the key: each query finds what belongs to the version
/// that it has seen, and an old version never answers for a new one.
#[derive(Clone)]
pub(crate) struct FileCaches {
    footers: Arc<DefaultCache<Versioned<Path>, CachedFileMetadataEntry>>,
    statistics: Arc<DefaultCache<Versioned<TableScopedPath>, CachedFileMetadata>>,
}

impl FileCaches {
    pub(crate) fn new() -> Self {
        Self {
            footers: Arc::new(DefaultCache::new(FOOTER_BYTES_MAX)),
            statistics: Arc::new(DefaultCache::new(STATISTICS_BYTES_MAX)),
        }
    }

    /// The caches as one query uses them; its listings are its own.
    pub(crate) fn of_query(&self, seen: &Arc<Seen>) -> CacheManagerConfig {
        let footers = QueryCache { shared: Arc::clone(&self.footers), seen: Arc::clone(seen) };
        let statistics = QueryCache { shared: Arc::clone(&self.statistics), seen: Arc::clone(seen) };
        CacheManagerConfig {
            file_metadata_cache: Some(Arc::new(footers)),
            metadata_cache_limit: FOOTER_BYTES_MAX,
            file_statistics_cache: Some(Arc::new(statistics)),
            file_statistics_cache_limit: STATISTICS_BYTES_MAX,
            list_files_cache: None,
            list_files_cache_limit: LISTING_BYTES_MAX,
            ..Default::default()
        }
    }
}

/// A shared cache as one query sees it: through the versions that the query reads.
struct QueryCache<K: FileKey, V: FileValue> {
    shared: Arc<DefaultCache<Versioned<K>, V>>,
    seen: Arc<Seen>,
}

impl<K: FileKey, V: FileValue> QueryCache<K, V> {
    fn versioned(&self, key: &K) -> Option<Versioned<K>> {
        let meta = self.seen.version(key.path())?;
        Some(Versioned { key: key.clone(), tag: meta.e_tag })
    }
}

impl<K: FileKey, V: FileValue> Cache<K, V> for QueryCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.shared.get(&self.versioned(key)?)
    }

    fn put(&self, key: &K, value: V) -> Option<V> {
        // A plan that came from elsewhere does not name versions; what it reads is what this query is pinned to.
        let tag = value.meta().e_tag.clone().or_else(|| self.seen.version(key.path())?.e_tag);
        self.shared.put(&Versioned { key: key.clone(), tag }, value.kept())
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.shared.remove(&self.versioned(key)?)
    }

    fn contains_key(&self, key: &K) -> bool {
        self.versioned(key).is_some_and(|key| self.shared.contains_key(&key))
    }

    forebay_types::handed_on! {
        [shared]
        fn len(&self) -> usize;
        fn cache_limit(&self) -> usize;
        fn cache_ttl(&self) -> Option<Duration>;
        fn drop_table_entries(&self, table: &TableReference) -> Result<()>;
        fn clear(&self);
        fn update_cache_limit(&self, limit: usize);
        fn update_cache_ttl(&self, ttl: Option<Duration>);
    }

    fn name(&self) -> String {
        "versioned".to_string()
    }

    fn list_entries(&self) -> datafusion::common::HashMap<K, CacheEntryInfo<V>> {
        let entries: HashMap<_, _> = self.shared.list_entries().into_iter().collect();
        entries.into_iter().map(|(key, entry)| (key.key, entry)).collect()
    }
}
