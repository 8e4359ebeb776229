//! Listings.

use std::sync::atomic::Ordering::Relaxed;

use forebay_protocol::ListPage;
use forebay_shared_storage::Storage;
use forebay_types::{ErrorKind, Key, MountId, Result};

use super::Catalogue;
use super::listings::{ENTRIES_MAX, Listed};

/// Entries of one answer at most.
const LIMIT_MAX: u32 = 10_000;
/// Entries that are asked of shared storage at once when a listing is kept.
const PAGE_ENTRIES: usize = 1000;

impl Catalogue {
    /// One page of a listing, as fresh as the mount's rule wants it.
    pub(crate) async fn list(
        &self,
        mount: MountId,
        prefix: &Key,
        folders: bool,
        after: Option<&Key>,
        limit: u32,
    ) -> Result<ListPage> {
        let door = self.origin.mount(mount).await?;
        let storage = door.storage()?;
        let (rule, limit) = (self.rule(&door), limit.clamp(1, LIMIT_MAX) as usize);
        let place = Listed { mount, prefix: prefix.clone(), folders };
        let Some(kept) = self.listings.find(&place, rule, after.is_none()) else {
            return self.list_page(&storage, prefix, folders, after, limit).await;
        };
        let came = forebay_runtime::now();
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
                    // But not where it is that its caller's time is over.
                    if error.kind() == ErrorKind::Retry && !forebay_runtime::deadline::is_over() {
                        grown.failed = Some((forebay_runtime::now(), error.clone()));
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
    ) -> Result<ListPage> {
        let asked = forebay_runtime::now();
        let page = storage.list(prefix, folders, after, limit).await?;
        page.objects.iter().for_each(|info| self.versions.learn(info, asked));
        Ok(page)
    }
}
