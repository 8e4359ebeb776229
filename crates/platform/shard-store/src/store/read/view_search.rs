//! One search over all that a view has: compressed shards, suffix arrays, and the latest updates.

use std::collections::BTreeSet;

use forebay_shard::{Key, Query};
use forebay_types::Result;

use crate::store::{Mapped, View};
use crate::update::Matcher;
use crate::waited::go_on;

/// Hits that an update hides are passed over in pages, the first of them of at least so many keys, each twice as long as the
/// one before: so there are few, however many hits are hidden.
const PAGE_KEYS_MIN: usize = 64;

/// A search that asks each source for its first hits, and keeps those that nothing newer speaks of.
pub(super) struct ViewSearch<'v> {
    view: &'v View,
    query: &'v Query,
    matcher: Matcher,
}

impl<'v> ViewSearch<'v> {
    pub(super) fn new(view: &'v View, query: &'v Query) -> Result<Self> {
        Ok(Self { view, query, matcher: Matcher::new(query)? })
    }

    /// The keys above `after`, at most `limit`. The first of them all are among the first of each source.
    pub(super) fn keys(&self, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let most = limit.unwrap_or(usize::MAX);
        let mut found = BTreeSet::new();
        self.updates(after, most, &mut found);
        self.suffixes(after, most, &mut found)?;
        for (place, mapped) in self.view.shards.iter().enumerate() {
            // Where there are enough below all of its keys, none of its own is among the first.
            let first = mapped.keys()?.map(|(first, _)| first);
            let is_behind = |last: &Key| first.is_none_or(|first| last < first);
            if most > 0 && found.iter().nth(most - 1).is_some_and(is_behind) {
                continue;
            }
            self.shard(place, mapped, after, limit, &mut found)?;
        }
        debug_assert!(after.is_none_or(|after| found.first().is_none_or(|first| first > after)));
        Ok(found.into_iter().take(most).collect())
    }

    fn updates(&self, after: Option<&Key>, most: usize, found: &mut BTreeSet<Key>) {
        for (place, run) in self.view.runs.iter().enumerate() {
            let hits = run.iter_above(after).filter(|(key, update)| {
                update.values.is_some_and(|values| self.matcher.matches(values)) && self.view.is_newest(place, key, update.number)
            });
            found.extend(hits.take(most).map(|(key, _)| key.clone()));
        }
    }

    fn suffixes(&self, after: Option<&Key>, most: usize, found: &mut BTreeSet<Key>) -> Result<()> {
        for (place, store) in self.view.suffixes.iter().enumerate() {
            let keys = store.search(self.query)?;
            let above = keys.partition_point(|key| after.is_some_and(|after| *key <= after));
            let shown = keys[above..].iter().filter(|key| !self.view.hides_in_suffixes(place, key));
            found.extend(shown.take(most).map(|key| (*key).clone()));
        }
        Ok(())
    }

    fn shard(
        &self,
        place: usize,
        mapped: &Mapped,
        after: Option<&Key>,
        limit: Option<usize>,
        found: &mut BTreeSet<Key>,
    ) -> Result<()> {
        let mut page_keys = limit.map(|limit| limit.max(PAGE_KEYS_MIN));
        let (mut after, mut wanted) = (after.cloned(), limit.unwrap_or(usize::MAX));
        while wanted > 0 {
            let page = mapped.shard.search_while(self.query, page_keys, after.as_ref(), &go_on)?;
            for key in page.keys.iter() {
                if wanted > 0 && !self.view.hides_in_shard(place, &key)? {
                    found.insert(key);
                    wanted -= 1;
                }
            }
            after = match page.next {
                Some(next) => Some(next),
                None => return Ok(()),
            };
            page_keys = page_keys.map(|keys| keys.saturating_mul(2));
        }
        Ok(())
    }
}
