//! The mounts, each with its door to shared storage.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_metrics::table;
use forebay_protocol::{AheadNeed, ClusterView, MountShare, ReadCounters, StorageCounters, Warning};
use forebay_shared_storage::{Storage, StorageSettings};
use forebay_types::{Error, Key, Mount, MountId, MountOptions, PlanTurn, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::admission::{Admission, Priority, Waiting};
use crate::signals::ReadSums;

/// Plans of a mount that the coordinator is told of one by one.
const PLANS_OF_MOUNT: usize = 16;
/// A worker that is cut off, or was given no share yet, takes one of so many parts of a bound at most.
const CUT_OFF_PARTS_MIN: u64 = 20;

/// The mounts of the view, each with its door to shared storage.
pub(crate) struct Mounts {
    doors: ArcSwap<HashMap<MountId, Arc<MountDoor>>>,
    settings: StorageSettings,
    /// Bytes that may wait for each.
    queue_bytes: u64,
    /// Told when something begins to be read, or to wait for that.
    begins: Arc<Notify>,
}

/// One mount: its options and, from the first use on, its shared storage.
pub(crate) struct MountDoor {
    pub(crate) mount: Mount,
    pub(crate) admission: Arc<Admission>,
    /// What was read of it, through doors with other options before this one, too.
    pub(crate) reads: Arc<ReadSums>,
    settings: StorageSettings,
    begins: Arc<Notify>,
    state: Mutex<DoorState>,
}

struct DoorState {
    storage: Option<Storage>,
    share: MountShare,
    /// The need that the coordinator was told last.
    told: Need,
    /// Of doors of this mount that changed options have closed.
    before: StorageCounters,
}

/// What went through doors of the mount with other options.
#[derive(Default)]
struct Before {
    storage: StorageCounters,
    reads: Arc<ReadSums>,
}

impl MountDoor {
    fn new(mount: Mount, of: &Mounts, share: MountShare, before: Before) -> Self {
        let (settings, begins) = (of.settings.clone(), Arc::clone(&of.begins));
        let admission = Arc::new(Admission::new(of.queue_bytes).telling(Arc::clone(&begins)));
        admission.set_bound(share.bytes_per_sec);
        let state = Mutex::new(DoorState { storage: None, share, told: Need::default(), before: before.storage });
        Self { mount, admission, reads: before.reads, settings, begins, state }
    }

    /// `Retry`, with when to ask again, where so much waits for shared storage already that one more request of this priority had better
    /// come later, if there `is_need` of one.
    pub(crate) fn check_queue(&self, priority: Priority, is_need: impl FnOnce() -> bool) -> Result<()> {
        let Some(after) = self.admission.full_for(priority).filter(|_| is_need()) else { return Ok(()) };
        table::WORKER_SHED.with([priority.class_name()]).add(1);
        let name = &self.mount.name;
        Err(Error::retry(format!(
            "/{name}: too much waits for its shared storage at this worker (storage-queue): ask another one, or again later"
        ))
        .after(after))
    }

    /// The door of the mount with other options. Where these change only the bound, what is under way goes on through it: it
    /// keeps to the new bound from now on.
    fn changed(&self, mount: Mount, of: &Mounts, workers: usize) -> Self {
        let state = self.state.lock();
        let share = first_share(&mount, workers, Some(state.share));
        if !is_same_but_for_the_bound(&self.mount, &mount) {
            drop(state);
            let before = Before { storage: self.counters(), reads: Arc::clone(&self.reads) };
            return Self::new(mount, of, share, before);
        }
        self.admission.set_bound(share.bytes_per_sec);
        if let Some(storage) = &state.storage {
            storage.set_share(share.bytes_per_sec, share.burst_bytes);
        }
        let state = DoorState { storage: state.storage.clone(), share, told: state.told.clone(), before: state.before };
        let (admission, settings, begins) = (Arc::clone(&self.admission), self.settings.clone(), Arc::clone(&self.begins));
        let reads = Arc::clone(&self.reads);
        Self { mount, admission, reads, settings, begins, state: Mutex::new(state) }
    }

    /// Shared storage; opened at the first call. An error is not remembered: credentials may come later.
    pub(crate) fn storage(&self) -> Result<Storage> {
        let mut state = self.state.lock();
        if let Some(storage) = &state.storage {
            return Ok(storage.clone());
        }
        let storage = Storage::open(&self.mount, self.settings.clone())?;
        storage.set_share(state.share.bytes_per_sec, state.share.burst_bytes);
        storage.tell_of_reads(Arc::clone(&self.begins));
        state.storage = Some(storage.clone());
        Ok(storage)
    }

    /// `Denied` on a read-only mount.
    pub(crate) fn check_writable(&self, key: &Key) -> Result<()> {
        if self.mount.options.read_only {
            let name = &self.mount.name;
            return Err(Error::denied(format!(
                "/{name}/{key}: mount {name} is read-only: write to another mount, or change its options with `forebay mount set {name}`"
            )));
        }
        Ok(())
    }

    fn set_share(&self, share: MountShare) {
        let mut state = self.state.lock();
        if state.share != share {
            state.share = share;
            self.admission.set_bound(share.bytes_per_sec);
            if let Some(storage) = &state.storage {
                storage.set_share(share.bytes_per_sec, share.burst_bytes);
            }
        }
    }

    /// Its share of the bound, in bytes a second.
    #[cfg(test)]
    pub(crate) fn share(&self) -> Option<u64> {
        self.state.lock().share.bytes_per_sec
    }

    fn counters(&self) -> StorageCounters {
        let state = self.state.lock();
        state.before + state.storage.as_ref().map(Storage::counters).unwrap_or_default()
    }

    fn tell_need(&self) -> Option<Need> {
        self.mount.options.bandwidth?;
        let mut state = self.state.lock();
        state.told = self.need(&state);
        Some(state.told.clone())
    }

    /// What is read and awaited, and what is not let in yet.
    fn need(&self, state: &DoorState) -> Need {
        let Some(storage) = &state.storage else { return Need::default() };
        let Waiting { mut demand, mut ahead, mut background, coming } = self.admission.waiting();
        demand = demand.saturating_add(storage.demand_bytes_per_sec());
        background = background.saturating_add(storage.background_bytes_per_sec());
        let comes = storage.ahead_bytes_per_sec();
        match coming {
            // Who waits for some of it must not wait for what others have demand for.
            None => demand = demand.saturating_add(comes),
            Some(turn) if comes > 0 => *ahead.entry(turn).or_default() += comes,
            Some(_) => {}
        }
        Need { demand, ahead: of_first_plans(ahead), background }
    }

    /// Whether its share is too small, about right or more than is of use, and was not when the need was told last.
    fn need_changed(&self) -> bool {
        let state = self.state.lock();
        let Some(share) = state.share.bytes_per_sec else { return false };
        let fits = |need: &Need| {
            let planned = need.ahead.iter().fold(need.demand, |sum, (_, bytes)| sum.saturating_add(*bytes));
            let all = planned.saturating_add(need.background);
            // Another first plan may have its turn before those of other workers.
            let first = need.ahead.first().filter(|_| planned > share).map(|(turn, _)| *turn);
            (first, need.demand > share, planned > share, all > share, all < share / 4)
        };
        fits(&self.need(&state)) != fits(&state.told)
    }

    /// Whether nothing is read or waits for that, or no bound is shared.
    fn is_still(&self) -> bool {
        let state = self.state.lock();
        let none_waits = || {
            let Waiting { demand, ahead, background, .. } = self.admission.waiting();
            demand == 0 && ahead.is_empty() && background == 0
        };
        state.share.bytes_per_sec.is_none() || (state.storage.as_ref().is_none_or(Storage::is_still) && none_waits())
    }
}

/// What would be read in a second were there no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) demand: u64,
    /// By plan, the first one first.
    pub(crate) ahead: Vec<(PlanTurn, u64)>,
    pub(crate) background: u64,
}

impl Need {
    /// What is said of a mount's plans.
    pub(crate) fn told_of(&self, mount: MountId) -> impl Iterator<Item = AheadNeed> {
        self.ahead.iter().map(move |(turn, bytes_per_sec)| AheadNeed { mount, turn: *turn, bytes_per_sec: *bytes_per_sec })
    }
}

/// The first plans, the last of which stands for all behind it.
fn of_first_plans(ahead: BTreeMap<PlanTurn, u64>) -> Vec<(PlanTurn, u64)> {
    let mut plans = ahead.into_iter();
    let mut first: Vec<_> = plans.by_ref().take(PLANS_OF_MOUNT).collect();
    if let Some((_, bytes)) = first.last_mut() {
        *bytes = plans.fold(*bytes, |sum, (_, more)| sum.saturating_add(more));
    }
    first
}

impl Mounts {
    pub(crate) fn new(settings: StorageSettings, queue_bytes: u64) -> Self {
        Self { doors: ArcSwap::default(), settings, queue_bytes, begins: Arc::default() }
    }

    /// The mount's door, where the view has it.
    pub(crate) fn find(&self, id: MountId) -> Option<Arc<MountDoor>> {
        self.doors.load().get(&id).cloned()
    }

    /// All doors, in order of their mounts' ids.
    pub(crate) fn all(&self) -> Vec<Arc<MountDoor>> {
        let mut doors: Vec<_> = self.doors.load().values().cloned().collect();
        doors.sort_by_key(|door| door.mount.id);
        doors
    }

    /// Takes over the mounts of a view. Doors of mounts that did not change stay open; the ids of those that are gone, or mean another
    /// one by now, are returned.
    pub(crate) fn set(&self, view: &ClusterView) -> Vec<MountId> {
        let old = self.doors.load_full();
        let doors = view.mounts.iter().map(|mount| {
            let door = match old.get(&mount.id) {
                Some(door) if door.mount == *mount => Arc::clone(door),
                Some(door) if door.mount.url == mount.url => Arc::new(door.changed(mount.clone(), self, view.workers.len())),
                _ => {
                    let share = first_share(mount, view.workers.len(), None);
                    Arc::new(MountDoor::new(mount.clone(), self, share, Before::default()))
                }
            };
            (mount.id, door)
        });
        let doors: HashMap<_, _> = doors.collect();
        // With an older copy of the metadata, a number may be another mount's by now.
        let is_other = |door: &MountDoor| doors.get(&door.mount.id).is_none_or(|now| now.mount.url != door.mount.url);
        let gone = old.values().filter(|door| is_other(door)).map(|door| door.mount.id).collect();
        self.doors.store(Arc::new(doors));
        gone
    }

    /// Applies the worker's shares of the bounds.
    pub(crate) fn set_shares(&self, shares: &[MountShare]) {
        let doors = self.doors.load();
        for share in shares {
            if let Some(door) = doors.get(&share.mount) {
                door.set_share(*share);
            }
        }
    }

    /// Takes no more of each bound than an equal part of so many workers: nothing is heard of the coordinator, and one that begins anew takes
    /// it that each of them has its part.
    pub(crate) fn keep_parts(&self, workers: usize) {
        self.take_at_most(workers as u64);
    }

    /// Takes at most 5 % of each bound, and no more than all of so many workers may: the coordinator is out of reach, and may give the rest to
    /// others by now.
    pub(crate) fn shrink_shares(&self, workers: usize) {
        self.take_at_most(CUT_OFF_PARTS_MIN.max(workers as u64));
    }

    /// Keeps its shares, but for what is above one of so many parts of each bound.
    fn take_at_most(&self, parts: u64) {
        for door in self.all() {
            let Some(bound) = door.mount.options.bandwidth else { continue };
            let share = door.state.lock().share;
            let most = (bound.bytes_per_sec() / parts.max(1)).max(1);
            let kept = share.bytes_per_sec.map_or(most, |now| now.min(most));
            debug_assert!(share.bytes_per_sec.is_none_or(|now| kept <= now), "nobody takes more since nothing is heard");
            door.set_share(MountShare { bytes_per_sec: Some(kept), ..share });
        }
    }

    /// What each mount with a bound would give this worker, were there no bound, in bytes a second: to tell the coordinator.
    pub(crate) fn tell_needs(&self) -> Vec<(MountId, Need)> {
        self.all().iter().filter_map(|door| Some((door.mount.id, door.tell_need()?))).collect()
    }

    /// Whether a share fits so much worse or better than when it was told that the coordinator should hear it at once.
    pub(crate) fn need_changed(&self) -> bool {
        self.doors.load().values().any(|door| door.need_changed())
    }

    /// Whether nothing is read, or waits for that, of any mount with a bound.
    pub(crate) fn is_still(&self) -> bool {
        self.doors.load().values().all(|door| door.is_still())
    }

    /// Waits until something begins to be read or to wait for that; not at all where it has since this ended last.
    pub(crate) async fn begins(&self) {
        self.begins.notified().await;
    }

    /// Requests and bytes of each mount since the worker's start.
    pub(crate) fn counters(&self) -> Vec<(MountId, StorageCounters)> {
        self.all().iter().map(|door| (door.mount.id, door.counters())).collect()
    }

    /// What was read of each mount since the worker's start.
    pub(crate) fn reads(&self) -> Vec<(MountId, ReadCounters)> {
        self.all().iter().map(|door| (door.mount.id, door.reads.counters())).collect()
    }

    /// What is wrong with the shared storage of mounts; of so many of them at most.
    pub(crate) fn troubles(&self, most: usize) -> Vec<Warning> {
        let said = |door: &Arc<MountDoor>| {
            let trouble = door.state.lock().storage.as_ref()?.trouble()?;
            Some(Warning::of_mount(&door.mount.name, &trouble))
        };
        self.all().iter().filter_map(said).take(most).collect()
    }
}

fn is_same_but_for_the_bound(old: &Mount, new: &Mount) -> bool {
    let MountOptions { bandwidth, burst, .. } = new.options;
    let options = MountOptions { bandwidth, burst, ..old.options.clone() };
    Mount { options, ..old.clone() } == *new
}

/// The share until the coordinator gives one: the last one, at most an equal part of the bound, so that the workers together keep it. Who has
/// none takes as much as one that is cut off: others may hold all of it.
fn first_share(mount: &Mount, workers: usize, last: Option<MountShare>) -> MountShare {
    let parts = if last.is_some() { workers.max(1) as u64 } else { CUT_OFF_PARTS_MIN.max(workers as u64) };
    let equal = mount.options.bandwidth.map(|bound| (bound.bytes_per_sec() / parts).max(1));
    let bytes_per_sec = match (equal, last.and_then(|share| share.bytes_per_sec)) {
        (Some(equal), Some(last)) => Some(equal.min(last)),
        (equal, _) => equal,
    };
    MountShare { mount: mount.id, bytes_per_sec, burst_bytes: mount.options.burst.map_or(1 << 20, |burst| burst.0) }
}

#[cfg(test)]
mod tests;
