//! What reading rows of decoded columns has taken this process, and reading the file's own bytes in their place.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::time::Duration;

use forebay_placement::FarReading;
use forebay_types::CellSource;
use lru::LruCache;
use parking_lot::Mutex;

/// Columns of tables of which it is remembered; those read longest ago are forgotten first.
const KNOWN_MAX: usize = 4096;

/// By the columns that are read together of files of one folder: these are alike, and take as long.
pub(crate) struct Paces(Mutex<LruCache<u64, FarReading>>);

impl Default for Paces {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(NonZeroUsize::new(KNOWN_MAX).expect("not 0"))))
    }
}

impl Paces {
    pub(super) fn of(&self, source: &CellSource, columns: &[u32]) -> FarReading {
        self.0.lock().get(&table(source, columns)).copied().unwrap_or_default()
    }

    /// The engine's own reader has made rows of so many bytes of a file.
    pub(crate) fn read(&self, source: &CellSource, columns: &[u32], bytes: u64, took: Duration) {
        self.0.lock().get_or_insert_mut(table(source, columns), FarReading::default).read(bytes, took.as_secs_f64());
    }

    /// An answer of so many bytes was opened.
    pub(crate) fn opened(&self, source: &CellSource, columns: &[u32], bytes: u64, took: Duration) {
        self.0.lock().get_or_insert_mut(table(source, columns), FarReading::default).opened(bytes, took.as_secs_f64());
    }

    /// Nobody was asked, because of what is remembered.
    pub(super) fn passed(&self, source: &CellSource, columns: &[u32]) {
        self.0.lock().get_or_insert_mut(table(source, columns), FarReading::default).passed();
    }
}

fn table(source: &CellSource, columns: &[u32]) -> u64 {
    let version = source.version();
    let folder = version.key.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut hasher = DefaultHasher::new();
    (version.mount, folder, source.form(), columns).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use forebay_types::{Key, MountId, ObjectVersion, VersionTag};

    use super::*;

    #[test]
    fn files_of_a_folder_are_alike_and_other_columns_are_not() {
        let of = |key: &str| {
            let (key, tag) = (Key::new(key).unwrap(), VersionTag::etag("\"t\""));
            CellSource::parquet(ObjectVersion { mount: MountId(1), key, tag, size: 9 })
        };
        let paces = Paces::default();
        paces.read(&of("t/a"), &[0, 1], 1 << 20, Duration::from_millis(5));
        assert_ne!(paces.of(&of("t/b"), &[0, 1]), FarReading::default());
        for (key, columns) in [("t/a", [0, 2]), ("u/a", [0, 1]), ("a", [0, 1])] {
            assert_eq!(paces.of(&of(key), &columns), FarReading::default(), "{key}");
        }
    }
}
