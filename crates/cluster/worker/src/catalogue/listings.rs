//! Listings as shared storage gave them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_protocol::ListPage;
use forebay_types::{Error, Key, MountId, ObjectInfo, Validate};
use lru::LruCache;
use parking_lot::Mutex;

/// Entries (objects and common prefixes) of all cached listings at most; a longer listing is passed through page by page.
pub(super) const ENTRIES_MAX: usize = 200_000;
/// Listings at most.
const LISTINGS_MAX: usize = 4096;

/// Listings as shared storage gave them, each grown page by page as somebody reads on.
pub(crate) struct Listings(Mutex<LruCache<Listed, Arc<Kept>>>);

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Listed {
    pub(super) mount: MountId,
    pub(super) prefix: Key,
    pub(super) folders: bool,
}

pub(super) struct Kept {
    /// Before the first request was sent.
    asked: Instant,
    pub(super) grown: tokio::sync::Mutex<Grown>,
    /// Entries of `grown`, for those who don't hold its lock.
    pub(super) entries: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Grown {
    pub(super) entries: Vec<Entry>,
    complete: bool,
    pub(super) next: Option<Key>,
    pub(super) failed: Option<(Instant, Error)>,
}

pub(super) enum Entry {
    Object(ObjectInfo),
    Folder(Key),
}

impl Entry {
    fn key(&self) -> &Key {
        match self {
            Self::Object(info) => &info.version.key,
            Self::Folder(key) => key,
        }
    }
}

impl Default for Listings {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(LISTINGS_MAX.try_into().expect("not 0"))))
    }
}

impl Listings {
    /// The listing that stands under `rule`; a new one when `begin` says so and the rule lets one be kept.
    pub(super) fn find(&self, place: &Listed, rule: Validate, begin: bool) -> Option<Arc<Kept>> {
        if !rule.accepts(Duration::ZERO) {
            return None;
        }
        let mut listings = self.0.lock();
        if let Some(kept) = listings.get(place).filter(|kept| rule.accepts(kept.asked.elapsed())) {
            return Some(Arc::clone(kept));
        }
        begin.then(|| {
            let kept = Arc::new(Kept { asked: forebay_runtime::now(), grown: Default::default(), entries: Default::default() });
            listings.put(place.clone(), Arc::clone(&kept));
            kept
        })
    }

    pub(super) fn forget(&self, place: &Listed, kept: &Arc<Kept>) {
        let mut listings = self.0.lock();
        if listings.peek(place).is_some_and(|there| Arc::ptr_eq(there, kept)) {
            listings.pop(place);
        }
    }

    /// Forgets the listings that were used longest ago until the rest is within bounds.
    pub(super) fn shrink(&self) {
        let mut listings = self.0.lock();
        let entries = |kept: &Arc<Kept>| kept.entries.load(Relaxed);
        let mut all: usize = listings.iter().map(|(_, kept)| entries(kept)).sum();
        while all > ENTRIES_MAX
            && listings.len() > 1
            && let Some((_, kept)) = listings.pop_lru()
        {
            all -= entries(&kept);
        }
        debug_assert!(all <= ENTRIES_MAX || listings.len() == 1, "one listing may be over, and is passed through then");
    }

    /// Forgets the listings that `key` is in or would be in.
    pub(crate) fn forget_with(&self, mount: MountId, key: &Key) {
        self.remove(|place| place.mount == mount && key.as_str().starts_with(place.prefix.as_str()));
    }

    /// Forgets the listings that show anything below `prefix`.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        let prefix = prefix.as_str();
        self.remove(|place| {
            place.mount == mount && (place.prefix.as_str().starts_with(prefix) || prefix.starts_with(place.prefix.as_str()))
        });
    }

    /// Forgets a mount that was removed.
    pub(crate) fn forget_mount(&self, mount: MountId) {
        self.remove(|place| place.mount == mount);
    }

    fn remove(&self, which: impl Fn(&Listed) -> bool) {
        let mut listings = self.0.lock();
        let places: Vec<Listed> = listings.iter().map(|(place, _)| place).filter(|place| which(place)).cloned().collect();
        places.iter().for_each(|place| {
            listings.pop(place);
        });
    }
}

impl Grown {
    pub(super) fn extend(&mut self, page: ListPage) {
        assert!(!self.complete, "nothing comes after the end");
        let begin = self.entries.len();
        self.entries.extend(page.objects.into_iter().map(Entry::Object));
        self.entries.extend(page.folders.into_iter().map(Entry::Folder));
        self.entries[begin..].sort_by(|a, b| a.key().cmp(b.key()));
        self.complete = page.next.is_none();
        self.next = page.next;
    }

    /// Whether what follows `after` is in here, or next to come.
    pub(super) fn reaches(&self, after: Option<&Key>) -> bool {
        let Some(after) = after else { return true };
        self.complete || self.next.as_ref().is_some_and(|next| after <= next)
    }

    /// The page behind `after`, if all of it is here.
    pub(super) fn page(&self, after: Option<&Key>, limit: usize) -> Option<ListPage> {
        if !self.reaches(after) {
            return None;
        }
        let begin = after.map_or(0, |after| self.entries.partition_point(|entry| entry.key() <= after));
        let end = (begin + limit).min(self.entries.len());
        if !self.complete && end - begin < limit {
            return None;
        }
        let mut page = ListPage::default();
        for entry in &self.entries[begin..end] {
            match entry {
                Entry::Object(info) => page.objects.push(info.clone()),
                Entry::Folder(key) => page.folders.push(key.clone()),
            }
        }
        if end < self.entries.len() || !self.complete {
            page.next = self.entries[begin..end].last().map(|entry| entry.key().clone());
        }
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "nothing comes after the end")]
    fn a_page_behind_the_last_one_is_caught() {
        let mut grown = Grown::default();
        (0..2).for_each(|_| grown.extend(ListPage::default()));
    }
}
