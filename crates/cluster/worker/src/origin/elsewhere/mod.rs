//! Pages that other workers have at hand: they are asked before shared storage is.
//!
//! Owns: this worker's questions for pages (whom, in which order, so many at a time and for so long), who is not asked for a while since it
//! did not answer, and which homes have heard that a version is gone.
//!
//! Never does: keep pages, ask shared storage, or answer what others ask. What it hears of who has what is remembered by `cluster`.
//!
//! Start with [`Elsewhere::ask`].

mod gaps;
mod silence;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_metrics::table;
use forebay_placement::{Asking, by_part};
use forebay_protocol::DataRequest;
use forebay_runtime::simulated;
use forebay_types::{Key, MountId, ObjectVersion, PageRun, PageSet, RouteKey, SEGMENT_BYTES, WorkerId};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub(super) use gaps::{Part, with_gaps};
use silence::Silences;

use crate::bounded::bounded;
use crate::cluster::{Cluster, Shared};
use crate::segment::Segment;

/// Workers that are thought of before the home is.
const NEAR_MAX: usize = 2;
/// How long one of them may take, and after how long no further one is asked: shared storage gives the pages too.
const WITHIN: Duration = Duration::from_millis(400);
/// How long one of them waits for pages that are on their way to it. Of those who are asked again no further one is after so long.
pub(super) const COMES_WITHIN: Duration = Duration::from_millis(200);
/// Questions under way; what is missed beyond that goes to shared storage.
const ASKING_MAX: usize = 64;
/// So long after it has joined, a worker asks those who were the homes of its keys before.
const NEW_FOR: Duration = Duration::from_secs(600);
/// So long the home of a key is not told again that a version is gone: it would ask the store each time that somebody reads one that never was.
const TOLD_FOR: Duration = Duration::from_secs(1);
/// Keys of which that is remembered.
const TOLD_MAX: usize = 1_024;

/// Pages that a worker gave: whole ones, but for the segment's last.
pub(crate) type Given = (PageRun, Bytes);

/// Asking other workers for pages. They give what they have and never ask anybody themselves, so that a question ends where it
/// goes.
pub(crate) struct Elsewhere {
    cluster: Arc<Cluster>,
    asking: Semaphore,
    silences: Mutex<Silences>,
    /// Keys whose homes have heard that a version is gone, and when.
    told: Mutex<LruCache<(MountId, Key), Instant>>,
    began: Instant,
}

impl Elsewhere {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        let (asking, silences, told) = (Semaphore::new(ASKING_MAX), Mutex::default(), Mutex::new(bounded(TOLD_MAX)));
        Self { cluster, asking, silences, told, began: forebay_runtime::now() }
    }

    /// What other workers have of `run`, verified. Nobody is asked but who has the segment by the routing table, by rendezvous
    /// hashing or by its own word; where all of that says that it would be here, this costs nothing.
    pub(crate) async fn ask(&self, segment: &Segment, run: PageRun) -> Heard {
        let (whereabouts, mut heard) = (&self.cluster.whereabouts, Heard::default());
        if simulated::happens("peers-not-asked") {
            return heard;
        }
        let asked = self.candidates(segment, run);
        if asked.is_left()
            && !whereabouts.is_nowhere(segment.id)
            && let Ok(_asking) = self.asking.try_acquire()
            && !self.ask_in_order(segment, run, asked, WITHIN, &mut heard).await
        {
            whereabouts.nowhere(segment.id);
        }
        heard
    }

    /// The same of these workers, who have said that they want some of it, for what was not `heard` of before.
    pub(crate) async fn ask_these(&self, segment: &Segment, run: PageRun, workers: Vec<WorkerId>, heard: &mut Heard) {
        heard.coming.clear();
        let asked = workers.into_iter().filter(|worker| *worker != self.cluster.id && self.is_well(*worker));
        let asked = Asking::new(asked, None);
        if let Ok(_asking) = self.asking.try_acquire() {
            self.ask_in_order(segment, run, asked, COMES_WITHIN, heard).await;
        }
    }

    /// Asks these, and whom they name, until all pages are found, or it has taken so long. Whether anybody has any of the segment, or will.
    async fn ask_in_order(
        &self,
        segment: &Segment,
        run: PageRun,
        mut asking: Asking,
        patience: Duration,
        heard: &mut Heard,
    ) -> bool {
        let (whereabouts, began) = (&self.cluster.whereabouts, forebay_runtime::now());
        let mut is_held = false;
        while began.elapsed() < patience {
            let missing = heard.found.pages.missing(run);
            let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return true };
            let Some(worker) = asking.turn() else { break };
            assert!(worker != self.cluster.id, "{worker} asks itself");
            let wanted = PageRun::new(first.start, last.end());
            let Some(shared) = self.ask_one(worker, segment, wanted).await else { continue };
            let gives = !shared.runs.is_empty();
            is_held |= shared.holds || shared.coming || gives;
            if gives || shared.coming {
                whereabouts.note(segment.id, wanted, worker);
            } else if shared.holds {
                whereabouts.has_none(segment.id, wanted, worker);
            } else {
                whereabouts.forget(segment.id, worker);
            }
            if shared.coming {
                heard.coming.push(worker);
            }
            let may_be_asked = |other: &WorkerId| *other != self.cluster.id && self.is_well(*other);
            asking.named(shared.others.iter().copied().filter(may_be_asked));
            if gives {
                heard.found.add(segment, given(segment, shared));
            }
        }
        // Who was not asked may have some.
        is_held || asking.is_left() || began.elapsed() >= patience
    }

    /// A version is not the current one any more: the home of its key, which says what is, hears of it before anybody asks there again.
    pub(super) async fn outdated(&self, version: &ObjectVersion) {
        let name = (version.mount, version.key.clone());
        let is_told = self.told.lock().peek(&name).is_some_and(|told| told.elapsed() < TOLD_FOR);
        if is_told {
            return;
        }
        let homes = self.cluster.other_homes(RouteKey::of(version.mount, &version.key, 0));
        debug_assert!(homes.iter().all(|home| home.id != self.cluster.id), "others hear of it, and nobody tells himself");
        let changed = DataRequest::Changed { mount: version.mount, key: version.key.clone(), info: None };
        self.cluster.peers.tell(&homes, &changed).await;
        // Only now: who sees it meanwhile waits until they have heard, too.
        self.told.lock().put(name, forebay_runtime::now());
    }

    async fn ask_one(&self, worker: WorkerId, segment: &Segment, run: PageRun) -> Option<Shared> {
        let (info, began) = (self.cluster.worker(worker)?, forebay_runtime::now());
        let asked = self.cluster.peers.missed(&info, self.cluster.id, segment.id, run);
        match forebay_runtime::deadline::within(WITHIN, asked).await {
            Ok(Ok(shared)) => {
                self.silences.lock().answered(worker);
                Some(shared)
            }
            Ok(Err(error)) => {
                tracing::debug!(segment = %segment.id, %worker, %error, "peer gave no pages");
                self.silences.lock().failed(worker, forebay_runtime::now());
                None
            }
            Err(_) => {
                tracing::debug!(segment = %segment.id, %worker, "peer was too slow to give pages");
                self.silences.lock().was_slow(worker, began, forebay_runtime::now());
                None
            }
        }
    }

    /// Whom to ask, in this order: who has said to want pages about there, then whom the routing table names, else the home of the key, which
    /// was another one's before a worker joined, and at last who else has said to want some of the segment.
    fn candidates(&self, segment: &Segment, run: PageRun) -> Asking {
        let route = RouteKey::of(segment.version.mount, &segment.version.key, (segment.start / SEGMENT_BYTES) as u32);
        let (routes, whereabouts) = (self.cluster.routes(), &self.cluster.whereabouts);
        let homes: Vec<WorkerId> = match routes.holders(route) {
            Some(line) => by_part(line),
            None => self.cluster.other_home(route, self.began.elapsed() < NEW_FOR).into_iter().collect(),
        };
        let may_be_asked = |worker: &WorkerId| *worker != self.cluster.id && self.is_well(*worker);
        let home = homes.iter().copied().find(may_be_asked);
        let near = whereabouts.near(segment.id, run).into_iter().take(NEAR_MAX);
        Asking::new(near.chain(homes).chain(whereabouts.of(segment.id)).filter(may_be_asked), home)
    }

    fn is_well(&self, worker: WorkerId) -> bool {
        self.silences.lock().is_well(worker, forebay_runtime::now())
    }
}

/// What other workers have said of pages that are missed.
#[derive(Default)]
pub(crate) struct Heard {
    found: Found,
    /// Those to whom some are on their way still.
    coming: Vec<WorkerId>,
}

impl Heard {
    /// Who may be asked again for pages that are on their way to it.
    pub(super) fn coming(&self) -> impl Iterator<Item = WorkerId> {
        self.coming.iter().copied()
    }

    /// Whether a page was given.
    pub(super) fn has(&self, page: u32) -> bool {
        self.found.pages.contains(page)
    }

    /// The pages that were given, in order.
    pub(super) fn given(self) -> Vec<Given> {
        self.found.in_order()
    }
}

/// Pages that workers have given, none of them twice.
#[derive(Default)]
struct Found {
    pages: PageSet,
    given: Vec<Given>,
}

impl Found {
    fn add(&mut self, segment: &Segment, given: Vec<Given>) {
        for (run, bytes) in given {
            let begins = segment.bytes_of(run).start;
            for part in self.pages.missing(run) {
                let of = segment.bytes_of(part);
                self.given.push((part, bytes.slice((of.start - begins) as usize..(of.end - begins) as usize)));
                self.pages.insert(part);
            }
        }
    }

    fn in_order(mut self) -> Vec<Given> {
        self.given.sort_by_key(|(run, _)| run.start);
        self.given
    }
}

/// The bytes of the runs that were given: the last page of a segment may be short.
fn given(segment: &Segment, shared: Shared) -> Vec<Given> {
    let mut at = 0;
    let runs = shared.runs.into_iter().map(|run| {
        let bytes = segment.bytes_of(run);
        let from = at;
        at += run.bytes().end as usize - run.bytes().start as usize;
        (run, shared.pages.slice(from..from + (bytes.end - bytes.start) as usize))
    });
    let given: Vec<Given> = runs.collect();
    assert_eq!(at, shared.pages.len(), "pages that were compared belong to runs, all of them");
    table::WORKER_COPIED_BYTES.only().add(given.iter().map(|(_, bytes)| bytes.len() as u64).sum());
    given
}

#[cfg(test)]
mod tests {
    use forebay_types::{Key, MountId, ObjectVersion, PAGE_BYTES, VersionTag};

    use super::*;

    #[test]
    fn what_several_workers_have_is_put_together_and_no_page_twice() {
        let (mount, key, tag) = (MountId(1), Key::new("a").unwrap(), VersionTag::etag("\"t\""));
        let version = ObjectVersion { mount, key, tag, size: 9 * PAGE_BYTES + 100 };
        let segment = Segment::holding(&version, 0).unwrap();
        // Each byte is its page's number.
        let of = |start, end| {
            let run = PageRun::new(start, end);
            let bytes: Vec<u8> = segment.bytes_of(run).map(|at| (at / PAGE_BYTES) as u8).collect();
            (run, Bytes::from(bytes))
        };
        let mut found = Found::default();
        found.add(&segment, vec![of(6, 10)]);
        assert_eq!(found.pages.missing(PageRun::new(0, 10)), [PageRun::new(0, 6)]);
        found.add(&segment, vec![of(0, 2), of(4, 8)]);
        assert_eq!(found.in_order(), [of(0, 2), of(4, 6), of(6, 10)]);
    }
}
