//! Footers that were read.

use std::num::NonZeroUsize;
use std::sync::Arc;

use forebay_types::ObjectVersion;
use lru::LruCache;
use parking_lot::Mutex;
use parquet::file::metadata::ParquetMetaData;

/// Footers remembered; the columns of a file come one after the other.
const FOOTERS_MAX: usize = 16;

/// The footers of the files whose columns are being decoded.
pub(crate) struct Footers(Mutex<LruCache<ObjectVersion, Arc<ParquetMetaData>>>);

impl Default for Footers {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(NonZeroUsize::new(FOOTERS_MAX).expect("not 0"))))
    }
}

impl Footers {
    pub(in crate::forms) fn get(&self, version: &ObjectVersion) -> Option<Arc<ParquetMetaData>> {
        self.0.lock().get(version).cloned()
    }

    pub(in crate::forms) fn put(&self, version: &ObjectVersion, footer: &Arc<ParquetMetaData>) {
        self.0.lock().put(version.clone(), Arc::clone(footer));
    }
}
