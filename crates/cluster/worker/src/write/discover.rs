//! Objects that change past Forebay, on mounts that are looked through for them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use forebay_placement::holder;
use forebay_protocol::DataRequest;
use forebay_types::{Key, MountId, ObjectInfo, ObjectVersion, Result, RouteKey};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::{FRESH_MAX, Writes};
use crate::origin::MountDoor;

/// Objects of a mount that are remembered from one look to the next, at most.
const SEEN_MAX: usize = 1_000_000;
/// Changed objects of which peers are told one by one; of more they hear in one word.
const TOLD_MAX: usize = 256;
/// Entries of one request.
const PAGE_ENTRIES: usize = 1000;
/// Time between two looks at least.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// One task for each mount with `discover` whose listing home this worker is.
#[derive(Default)]
pub(crate) struct Discoveries(Mutex<HashMap<MountId, Looking>>);

struct Looking {
    period: Duration,
    task: JoinHandle<()>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Discoveries {
    /// Begins and ends tasks as the view in force wants it.
    pub(crate) fn follow(&self, writes: &Arc<Writes>) {
        let workers: Vec<_> = writes.cluster.view().workers.iter().map(|worker| worker.id).collect();
        let due = |door: &Arc<MountDoor>| {
            let home = holder(RouteKey::of_listing(door.mount.id), &workers) == Some(writes.cluster.id);
            Some((door.mount.id, door.mount.options.discover.filter(|_| home)?.max(PERIOD_MIN)))
        };
        let due: HashMap<_, _> = writes.origin.mounts.all().iter().filter_map(due).collect();
        let mut looking = self.0.lock();
        looking.retain(|mount, now| due.get(mount) == Some(&now.period));
        for (mount, period) in due {
            let writes = Arc::clone(writes);
            looking
                .entry(mount)
                .or_insert_with(|| Looking { period, task: forebay_runtime::spawn(look_on(writes, mount, period)) });
        }
    }

    /// Ends all tasks.
    pub(crate) fn stop(&self) {
        self.0.lock().clear();
    }
}

async fn look_on(writes: Arc<Writes>, mount: MountId, period: Duration) {
    let mut seen = Seen::default();
    let mut ticks = forebay_runtime::time::interval(period);
    ticks.set_missed_tick_behavior(forebay_runtime::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // The door of now: options may have changed since the last look.
        let Some(door) = writes.origin.mounts.find(mount) else { continue };
        if let Err(error) = look(&writes, &door, &mut seen).await {
            tracing::warn!(mount = %door.mount.name, %error, "could not look for new objects");
        }
    }
}

/// What a look found, by hashes: 16 bytes an object.
#[derive(Default)]
struct Seen {
    hasher: RandomState,
    objects: HashMap<u64, u64>,
    looks: u64,
    overflow: bool,
}

/// One complete listing of a mount, compared with the last one.
async fn look(writes: &Writes, door: &MountDoor, seen: &mut Seen) -> Result<()> {
    let (mount, name) = (door.mount.id, &door.mount.name);
    let (storage, everything) = (door.storage()?, Key::new("")?);
    let began = forebay_runtime::now();
    let mut objects = HashMap::new();
    let mut changed: Vec<ObjectInfo> = Vec::new();
    let mut new: Vec<ObjectVersion> = Vec::new();
    let (mut new_count, mut changed_count, mut overflow) = (0u64, 0u64, false);
    let mut after = None;
    loop {
        let page = writes.catalogue.list_page(&storage, &everything, false, after.as_ref(), PAGE_ENTRIES).await?;
        for info in page.objects {
            let (key, version) = (seen.hasher.hash_one(&info.version.key), seen.hasher.hash_one(&info.version));
            match seen.objects.get(&key) {
                Some(last) if *last == version => {}
                Some(_) => {
                    changed_count += 1;
                    if changed.len() <= TOLD_MAX {
                        changed.push(info);
                    }
                }
                None => {
                    new_count += 1;
                    if new.len() < FRESH_MAX {
                        new.push(info.version);
                    }
                }
            }
            if objects.len() < SEEN_MAX {
                objects.insert(key, version);
            } else {
                overflow = true;
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(objects.len() <= SEEN_MAX, "what is remembered is bounded");
    let gone_count = seen.objects.keys().filter(|key| !objects.contains_key(key)).count() as u64;
    let comparable = seen.looks > 0 && !overflow && !seen.overflow;
    (seen.objects, seen.overflow, seen.looks) = (objects, overflow, seen.looks + 1);
    writes.catalogue.forget_older(mount, began);
    if !comparable {
        // The first look, or more objects than are remembered: any listing may be old.
        writes.catalogue.forget_listings(mount);
        tracing::debug!(mount = %name, objects = seen.objects.len(), "looked for objects");
        return Ok(());
    }
    if new_count + changed_count + gone_count == 0 {
        return Ok(());
    }
    tracing::info!(mount = %name, new = new_count, changed = changed_count, gone = gone_count, "objects discovered");
    writes.signals.meters.discovered.add(new_count + changed_count);
    new.iter().chain(changed.iter().map(|info| &info.version)).for_each(|version| writes.fresh.add(version));
    changed.iter().for_each(|info| writes.origin.forget_kept(mount, &info.version.key, Some(&info.version.tag)));
    writes.catalogue.forget_listings(mount);
    let peers = writes.cluster.others();
    if gone_count > 0 || changed.len() > TOLD_MAX {
        writes.cluster.peers.tell(&peers, &DataRequest::Refresh { mount, prefix: everything }).await;
    } else {
        for info in changed {
            let key = info.version.key.clone();
            writes.cluster.peers.tell(&peers, &DataRequest::Changed { mount, key, info: Some(info) }).await;
        }
    }
    Ok(())
}
