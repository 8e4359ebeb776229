//! The versions of objects that shared storage told of.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_types::{Attributes, ErrorKind, Key, MountId, ObjectInfo, ObjectVersion, Result, Validate};
use lru::LruCache;
use parking_lot::Mutex;

use crate::single_flight::SingleFlight;

/// Entries at most.
const ENTRIES_MAX: usize = 100_000;
/// Bytes of memory at most, about.
const BYTES_MAX: usize = 32 << 20;
/// Bytes of an entry beside its texts, about.
const ENTRY_BYTES: usize = 200;
/// Versions at most that wait to be told of as outdated, and how long they do: queries that have opened them are over by then as a rule.
const OUTDATED_MAX: usize = 20_000;
const OUTDATED_FOR: Duration = Duration::from_secs(600);
/// So long nobody waits for an answer of the store: what was asked before something changed is told by then.
const GONE_FOR: Duration = Duration::from_secs(600);

type Name = (MountId, Key);

/// The versions of objects that shared storage told of, with the time when it was asked.
#[derive(Default)]
pub(crate) struct Versions {
    known: Mutex<Known>,
    /// Names that shared storage is being asked about.
    asking: SingleFlight<Name, Answered>,
}

struct Known {
    entries: LruCache<Name, Entry>,
    bytes: usize,
    /// What has changed or is not there, and when that was asked or heard of, the longest ago first.
    gone: VecDeque<(Instant, Name)>,
    /// Versions that others have the place of, or nothing has, and since when, the longest ago first.
    outdated: VecDeque<(Instant, ObjectVersion)>,
    /// What was asked before these times counts for nothing: the mount was refreshed.
    barriers: HashMap<MountId, Instant>,
}

struct Entry {
    /// None after a change: an answer that is older than it must not bring the old version back.
    info: Option<ObjectInfo>,
    /// What was said of that version beside; none when only a listing told of it.
    attributes: Option<Arc<Attributes>>,
    /// When the request was sent, so that nothing newer than this is claimed.
    asked: Instant,
}

impl Entry {
    fn gone(asked: Instant) -> Self {
        Self { info: None, attributes: None, asked }
    }

    fn is_of(&self, version: &ObjectVersion) -> bool {
        self.info.as_ref().is_some_and(|info| info.version == *version)
    }

    fn bytes(&self, name: &Name) -> usize {
        ENTRY_BYTES
            + 2 * name.1.as_str().len()
            + self.info.as_ref().map_or(0, |info| info.version.tag.as_str().len())
            + self.attributes.as_ref().map_or(0, |attributes| attributes.bytes())
    }
}

impl Default for Known {
    fn default() -> Self {
        let (entries, gone, outdated) = (LruCache::unbounded(), VecDeque::new(), VecDeque::new());
        Self { entries, bytes: 0, gone, outdated, barriers: HashMap::new() }
    }
}

/// What shared storage answered last.
struct Answered {
    asked: Instant,
    done: Instant,
    result: Result<ObjectInfo>,
}

impl Versions {
    /// The version that stands under `rule`.
    pub(crate) fn fresh(&self, mount: MountId, key: &Key, rule: Validate) -> Option<ObjectInfo> {
        let mut known = self.known.lock();
        let entry = known.entries.get(&(mount, key.clone()))?;
        entry.info.clone().filter(|_| rule.accepts(entry.asked.elapsed()))
    }

    /// The last version that was seen, however long ago.
    pub(crate) fn last_seen(&self, mount: MountId, key: &Key) -> Option<ObjectInfo> {
        self.known.lock().entries.get(&(mount, key.clone())).and_then(|entry| entry.info.clone())
    }

    /// Shared storage said this when it was asked at `asked`. What is known from later stays.
    pub(crate) fn learn(&self, info: &ObjectInfo, asked: Instant) {
        self.learn_with(info, None, asked);
    }

    /// The same, with what it said beside.
    pub(crate) fn learn_with(&self, info: &ObjectInfo, attributes: Option<Attributes>, asked: Instant) {
        let name = (info.version.mount, info.version.key.clone());
        let mut known = self.known.lock();
        // What was said of this version before holds as long as it is the version.
        let before =
            known.entries.peek(&name).filter(|entry| entry.is_of(&info.version)).and_then(|entry| entry.attributes.clone());
        let attributes = match (attributes.map(Arc::new), before) {
            (Some(new), Some(old)) if old.complete && !new.complete => Some(old),
            (new, old) => new.or(old),
        };
        known.put(name, Entry { info: Some(info.clone()), attributes, asked });
    }

    /// What is known of a version beside it.
    pub(crate) fn attributes(&self, version: &ObjectVersion) -> Option<Arc<Attributes>> {
        let mut known = self.known.lock();
        let entry = known.entries.get(&(version.mount, version.key.clone()))?;
        entry.attributes.clone().filter(|_| entry.is_of(version))
    }

    /// The version that stands under `rule`, if what is known of it beside goes as far as this.
    pub(crate) fn at_hand(
        &self,
        mount: MountId,
        key: &Key,
        rule: Validate,
        complete: bool,
    ) -> Option<(ObjectInfo, Arc<Attributes>)> {
        let mut known = self.known.lock();
        let entry = known.entries.get(&(mount, key.clone()))?;
        let attributes = entry.attributes.as_ref().filter(|attributes| attributes.complete || !complete)?;
        let info = entry.info.as_ref().filter(|_| rule.accepts(entry.asked.elapsed()))?;
        Some((info.clone(), Arc::clone(attributes)))
    }

    /// Whether what is known of an object's last version goes as far as this.
    pub(crate) fn has_attributes(&self, mount: MountId, key: &Key, complete: bool) -> bool {
        let known = self.known.lock();
        let entry = known.entries.peek(&(mount, key.clone()));
        entry.and_then(|entry| entry.attributes.as_ref()).is_some_and(|attributes| attributes.complete || !complete)
    }

    /// The object has changed or is gone: what is known is old, and so is what is being asked now.
    pub(crate) fn unlearn(&self, mount: MountId, key: &Key) {
        self.known.lock().put((mount, key.clone()), Entry::gone(forebay_runtime::now()));
    }

    /// Versions that have not been the current ones for a while, each once; not all of them where there are many.
    pub(crate) fn take_outdated(&self, now: Instant) -> Vec<ObjectVersion> {
        let outdated = &mut self.known.lock().outdated;
        let past = outdated.partition_point(|(since, _)| now.saturating_duration_since(*since) >= OUTDATED_FOR);
        outdated.drain(..past).map(|(_, version)| version).collect()
    }

    /// This version is not the current one any more.
    pub(crate) fn forget_version(&self, version: &ObjectVersion) {
        let mut known = self.known.lock();
        let name = (version.mount, version.key.clone());
        let is_it = |entry: &Entry| entry.info.as_ref().is_some_and(|info| info.version.tag == version.tag);
        if known.entries.peek(&name).is_some_and(is_it) {
            known.put(name, Entry::gone(forebay_runtime::now()));
        }
    }

    /// Whether the object has changed, as far as is known, since shared storage was asked at `asked`.
    fn is_outdated(&self, mount: MountId, key: &Key, asked: Instant) -> bool {
        let known = self.known.lock();
        known.barriers.get(&mount).is_some_and(|barrier| asked < *barrier)
            || known.entries.peek(&(mount, key.clone())).is_some_and(|entry| entry.info.is_none() && asked < entry.asked)
    }

    /// Forgets all versions below `prefix`, those that are being asked for among them.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        let mut known = self.known.lock();
        known.barriers.insert(mount, forebay_runtime::now());
        let below = |name: &Name| name.0 == mount && name.1.as_str().starts_with(prefix.as_str());
        let names: Vec<Name> = known.entries.iter().map(|(name, _)| name).filter(|name| below(name)).cloned().collect();
        names.iter().for_each(|name| known.remove(name));
    }

    /// A complete listing of the mount was begun at `listed`: what was not in it is not there.
    pub(crate) fn forget_older(&self, mount: MountId, listed: Instant) {
        let mut known = self.known.lock();
        let old = |name: &Name, entry: &Entry| name.0 == mount && entry.asked < listed;
        let names: Vec<Name> =
            known.entries.iter().filter(|(name, entry)| old(name, entry)).map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| known.remove(name));
    }

    /// Forgets a mount that was removed.
    pub(crate) fn forget_mount(&self, mount: MountId) {
        let mut known = self.known.lock();
        known.barriers.remove(&mount);
        let names: Vec<Name> = known.entries.iter().map(|(name, _)| name).filter(|name| name.0 == mount).cloned().collect();
        names.iter().for_each(|name| known.remove(name));
    }

    /// The current version as `rule` wants it: the one that is known, or what `ask` gets from shared storage. `ask` runs
    /// for one of those who come at the same time; an answer that was asked for before a caller came is good enough for
    /// it only where the rule allows an age at all.
    pub(crate) async fn resolve(
        &self,
        mount: MountId,
        key: &Key,
        rule: Validate,
        ask: impl Future<Output = Result<ObjectInfo>> + Send,
    ) -> Result<ObjectInfo> {
        if let Some(info) = self.fresh(mount, key, rule) {
            return Ok(info);
        }
        let came = forebay_runtime::now();
        let asking = self.asking.join((mount, key.clone()));
        let mut last = asking.turn().await;
        if let Some(info) = self.fresh(mount, key, rule) {
            return Ok(info);
        }
        if let Some(answered) = &*last {
            let current = !self.is_outdated(mount, key, answered.asked)
                && match &answered.result {
                    // A failure of now is everyone's, or each of many would wait for its own deadline in turn.
                    Err(error) if error.kind() == ErrorKind::Retry => answered.done >= came,
                    _ if rule == Validate::Always => answered.asked >= came,
                    _ => answered.done >= came,
                };
            if current {
                return answered.result.clone();
            }
        }
        let asked = forebay_runtime::now();
        let result = ask.await;
        match &result {
            Ok(info) => self.learn(info, asked),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.known.lock().put((mount, key.clone()), Entry::gone(asked));
            }
            Err(_) => {}
        }
        // One for whose caller it has taken too long says nothing to those who wait on: the next of them asks.
        if result.is_ok() || !forebay_runtime::deadline::is_over() {
            *last = Some(Answered { asked, done: forebay_runtime::now(), result: result.clone() });
        }
        result
    }
}

impl Known {
    fn put(&mut self, name: Name, entry: Entry) {
        let older = |barrier: &Instant| entry.asked < *barrier;
        if self.barriers.get(&name.0).is_some_and(older)
            || self.entries.peek(&name).is_some_and(|known| known.asked > entry.asked)
        {
            return;
        }
        if entry.info.is_none() {
            self.gone.push_back((entry.asked, name.clone()));
            self.forget_gone(entry.asked);
        }
        self.bytes += entry.bytes(&name);
        if let Some((name, old)) = self.entries.push(name, entry) {
            self.give_back(&name, &old);
            if let Some(ObjectInfo { version, .. }) = old.info
                && self.outdated.len() < OUTDATED_MAX
                && self.entries.peek(&name).is_none_or(|now| !now.is_of(&version))
            {
                self.outdated.push_back((forebay_runtime::now(), version));
            }
        }
        while (self.entries.len() > ENTRIES_MAX || self.bytes > BYTES_MAX)
            && let Some((name, old)) = self.entries.pop_lru()
        {
            self.give_back(&name, &old);
        }
        assert!(self.bytes <= BYTES_MAX, "bytes are those of the entries");
    }

    /// What is gone for long needs no word of its own: nothing comes any more that was asked before. Where more is gone than is noted here, the
    /// rest stays until it gives way to what is known of others.
    fn forget_gone(&mut self, now: Instant) {
        let is_past = |(since, _): &(Instant, Name)| now.saturating_duration_since(*since) >= GONE_FOR;
        while self.gone.front().is_some_and(is_past)
            && let Some((since, name)) = self.gone.pop_front()
        {
            if self.entries.peek(&name).is_some_and(|entry| entry.info.is_none() && entry.asked == since) {
                self.remove(&name);
            }
        }
        while self.gone.len() > ENTRIES_MAX {
            self.gone.pop_front();
        }
    }

    fn remove(&mut self, name: &Name) {
        if let Some(old) = self.entries.pop(name) {
            self.give_back(name, &old);
        }
    }

    /// An entry is not there any more, or another one has its place.
    fn give_back(&mut self, name: &Name, old: &Entry) {
        let bytes = old.bytes(name);
        assert!(self.bytes >= bytes, "{bytes} bytes of {} are an entry's", self.bytes);
        self.bytes -= bytes;
        assert!(self.bytes == 0 || !self.entries.is_empty(), "{} bytes are no entry's", self.bytes);
    }
}

#[cfg(test)]
mod tests;
