use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_shared_storage::{Listing, Storage};
use forebay_types::{Error, ErrorKind, Key, MountId, ObjectInfo, Result, Validate};
use lru::LruCache;
use parking_lot::Mutex;

use crate::serving::Serving;

/// Entries (objects and common prefixes) of all cached listings at most; a longer listing is passed through page by page.
const ENTRIES_MAX: usize = 200_000;
/// Listings at most.
const LISTINGS_MAX: usize = 4096;
/// Entries of one answer at most.
const LIMIT_MAX: u32 = 10_000;
/// Entries that are asked of shared storage at once when a listing is kept.
const PAGE_ENTRIES: usize = 1000;

/// Listings as shared storage gave them, each grown page by page as somebody reads on.
pub(crate) struct Listings(Mutex<LruCache<Place, Arc<Kept>>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    mount: MountId,
    prefix: Key,
    folders: bool,
}

struct Kept {
    /// Before the first request was sent.
    asked: Instant,
    grown: tokio::sync::Mutex<Grown>,
    /// Entries of `grown`, for those who don't hold its lock.
    entries: AtomicUsize,
}

#[derive(Default)]
struct Grown {
    entries: Vec<Entry>,
    complete: bool,
    next: Option<Key>,
    failed: Option<(Instant, Error)>,
}

enum Entry {
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

impl Serving {
    /// One page of a listing, as fresh as the mount's rule wants it.
    pub(crate) async fn list(
        &self,
        mount: MountId,
        prefix: &Key,
        folders: bool,
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Listing> {
        let door = self.mount(mount).await?;
        let storage = door.storage()?;
        let (rule, limit) = (self.rule(&door), limit.clamp(1, LIMIT_MAX) as usize);
        let place = Place { mount, prefix: prefix.clone(), folders };
        let Some(kept) = self.listings.find(&place, rule, after.is_none()) else {
            return self.list_page(&storage, prefix, folders, after, limit).await;
        };
        let came = Instant::now();
        let mut grown = kept.grown.lock().await;
        loop {
            if let Some(page) = grown.page(after, limit) {
                return Ok(page);
            }
            // A failure of now is everyone's, or each of many would wait for its own deadline in turn.
            if let Some((failed, error)) = &grown.failed
                && *failed >= came
            {
                return Err(error.clone());
            }
            let beyond = !grown.reaches(after);
            if beyond || grown.entries.len() >= ENTRIES_MAX {
                drop(grown);
                if !beyond {
                    self.listings.forget(&place, &kept);
                }
                return self.list_page(&storage, prefix, folders, after, limit).await;
            }
            match self.list_page(&storage, prefix, folders, grown.next.as_ref(), PAGE_ENTRIES).await {
                Ok(page) => {
                    grown.extend(page);
                    kept.entries.store(grown.entries.len(), Relaxed);
                    self.listings.shrink();
                }
                Err(error) => {
                    if error.kind() == ErrorKind::Retry {
                        grown.failed = Some((Instant::now(), error.clone()));
                    }
                    return Err(error);
                }
            }
        }
    }

    /// One page from shared storage; the versions in it are learned.
    pub(crate) async fn list_page(
        &self,
        storage: &Storage,
        prefix: &Key,
        folders: bool,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Listing> {
        let asked = Instant::now();
        let page = storage.list(prefix, folders, after, limit).await?;
        page.objects.iter().for_each(|info| self.versions.learn(info, asked));
        Ok(page)
    }
}

impl Listings {
    /// The listing that stands under `rule`; a new one when `begin` says so and the rule lets one be kept.
    fn find(&self, place: &Place, rule: Validate, begin: bool) -> Option<Arc<Kept>> {
        if !rule.accepts(Duration::ZERO) {
            return None;
        }
        let mut listings = self.0.lock();
        if let Some(kept) = listings.get(place).filter(|kept| rule.accepts(kept.asked.elapsed())) {
            return Some(Arc::clone(kept));
        }
        begin.then(|| {
            let kept = Arc::new(Kept { asked: Instant::now(), grown: Default::default(), entries: Default::default() });
            listings.put(place.clone(), Arc::clone(&kept));
            kept
        })
    }

    fn forget(&self, place: &Place, kept: &Arc<Kept>) {
        let mut listings = self.0.lock();
        if listings.peek(place).is_some_and(|there| Arc::ptr_eq(there, kept)) {
            listings.pop(place);
        }
    }

    /// Forgets the listings that were used longest ago until the rest is within bounds.
    fn shrink(&self) {
        let mut listings = self.0.lock();
        let entries = |kept: &Arc<Kept>| kept.entries.load(Relaxed);
        let mut all: usize = listings.iter().map(|(_, kept)| entries(kept)).sum();
        while all > ENTRIES_MAX
            && listings.len() > 1
            && let Some((_, kept)) = listings.pop_lru()
        {
            all -= entries(&kept);
        }
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

    fn remove(&self, which: impl Fn(&Place) -> bool) {
        let mut listings = self.0.lock();
        let places: Vec<Place> = listings.iter().map(|(place, _)| place).filter(|place| which(place)).cloned().collect();
        places.iter().for_each(|place| {
            listings.pop(place);
        });
    }
}

impl Grown {
    fn extend(&mut self, page: Listing) {
        let begin = self.entries.len();
        self.entries.extend(page.objects.into_iter().map(Entry::Object));
        self.entries.extend(page.folders.into_iter().map(Entry::Folder));
        self.entries[begin..].sort_by(|a, b| a.key().cmp(b.key()));
        self.complete = page.next.is_none();
        self.next = page.next;
    }

    /// Whether what follows `after` is in here, or next to come.
    fn reaches(&self, after: Option<&Key>) -> bool {
        let Some(after) = after else { return true };
        self.complete || self.next.as_ref().is_some_and(|next| after <= next)
    }

    /// The page behind `after`, if all of it is here.
    fn page(&self, after: Option<&Key>, limit: usize) -> Option<Listing> {
        if !self.reaches(after) {
            return None;
        }
        let begin = after.map_or(0, |after| self.entries.partition_point(|entry| entry.key() <= after));
        let end = (begin + limit).min(self.entries.len());
        if !self.complete && end - begin < limit {
            return None;
        }
        let mut page = Listing::default();
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
