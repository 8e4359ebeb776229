//! Fetching ahead of the reader of a plan.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use forebay_protocol::{DataNotice, DataRequest, encode_for};
use forebay_transport::Connection;
use forebay_types::{OperationId, RouteKey, SegmentId, Standing, WorkerId, split_range};
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::{DEADLINE, Prefetches, fetch};
use crate::connect::{Failure, Link};
use crate::read::{Course, Courses, Planned};
use crate::route::Routes;

/// Messages of one prefetch under way at once.
const MESSAGES_AT_ONCE: usize = 8;
/// Bytes and ranges of one message: what can be cancelled, and what a worker may coalesce.
const MESSAGE_BYTES: u64 = 8 << 20;
const MESSAGE_RANGES: usize = 256;
/// How long what was brought is held for a reader that has stopped without a word.
const HOLD_MS: u32 = 60_000;

impl Prefetches {
    /// Fetches what a plan is about to read, in this order, so many bytes ahead at most.
    pub(crate) fn begin(&self, operation: OperationId, standing: Standing, plan: Planned, ahead_bytes: u64) -> Prefetch {
        let course = Arc::new(Course::new(operation, standing, plan, ahead_bytes.min(self.ahead_bytes)));
        self.courses.add(&course);
        let asked = Arc::new(Asked { operation, workers: Mutex::default() });
        let courses = Arc::downgrade(&self.courses);
        let driven = drive(Arc::downgrade(&self.routes), courses.clone(), Arc::clone(&course), Arc::clone(&asked));
        let task = forebay_runtime::spawn(driven);
        Prefetch { courses, course, _asked: asked, _task: AbortOnDropHandle::new(task) }
    }
}

/// A prefetch under way; dropping it cancels it.
pub struct Prefetch {
    courses: Weak<Courses>,
    course: Arc<Course>,
    _asked: Arc<Asked>,
    _task: AbortOnDropHandle<()>,
}

impl Prefetch {
    /// Bytes handed to workers that the reader has not read yet.
    pub fn outstanding(&self) -> u64 {
        self.course.window.lock().outstanding()
    }

    /// Whether all of the plan was handed out or read.
    pub fn is_finished(&self) -> bool {
        self.course.window.lock().is_finished()
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        if let Some(courses) = self.courses.upgrade() {
            courses.remove(&self.course);
        }
    }
}

/// The workers that hold what was brought until it is read, or this is dropped: by the prefetch, and by whoever brings something for it. What
/// came after that word would be held for nobody.
struct Asked {
    operation: OperationId,
    workers: Mutex<HashMap<WorkerId, Connection>>,
}

impl Asked {
    fn add(&self, link: &Link) {
        self.workers.lock().insert(link.worker, link.connection.clone());
    }
}

impl Drop for Asked {
    /// They need not any more. A word that gets lost costs them the room for a while.
    fn drop(&mut self) {
        let notice = DataNotice::Ended { operation: self.operation };
        for connection in self.workers.get_mut().values() {
            if let Err(error) = connection.notify(encode_for(connection.version(), &notice)) {
                debug!(%error, "a worker was not told that an operation has ended");
            }
        }
    }
}

impl std::fmt::Debug for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prefetch").field("operation", &self.course.operation).finish_non_exhaustive()
    }
}

/// Ranges of one version that one worker is asked for.
struct Message {
    version_ix: usize,
    worker: Option<WorkerId>,
    ranges: Vec<(u64, u32)>,
}

/// Hands out what the window gives, to the workers that will be read from, until the plan is through.
async fn drive(routes: Weak<Routes>, courses: Weak<Courses>, course: Arc<Course>, asked: Arc<Asked>) {
    let mut under_way = FuturesUnordered::new();
    let mut waiting = std::collections::VecDeque::new();
    loop {
        while under_way.len() < MESSAGES_AT_ONCE {
            if waiting.is_empty() {
                let (Some(routes), Some(courses)) = (routes.upgrade(), courses.upgrade()) else { return };
                waiting.extend(next_messages(&routes, &courses, &course));
            }
            let Some(message) = waiting.pop_front() else { break };
            let (routes, course, asked) = (routes.clone(), Arc::clone(&course), Arc::clone(&asked));
            under_way.push(async move {
                let Some(routes) = routes.upgrade() else { return };
                send(&routes, &course, &asked, message).await;
            });
        }
        if under_way.is_empty() && course.window.lock().is_finished() {
            return;
        }
        tokio::select! {
            Some(()) = under_way.next() => {}
            () = course.moved.notified() => {}
        }
    }
}

/// What the window gives now, up to a message's bytes, in plan order.
fn next_messages(routes: &Routes, courses: &Courses, course: &Course) -> Vec<Message> {
    let known = routes.view.known_arc();
    let mut messages: Vec<Message> = Vec::new();
    let (mut bytes, mut ranges) = (0, 0);
    let mut window = course.window.lock();
    while bytes < MESSAGE_BYTES && ranges < MESSAGE_RANGES {
        let Some(planned) = window.next() else { break };
        bytes += planned.len;
        let (version_ix, version) = (planned.version_ix, &course.versions[planned.version_ix]);
        for part in split_range(planned.start..planned.start + planned.len) {
            ranges += 1;
            let route = RouteKey::of(version.mount, &version.key, part.index);
            let stands = |place: WorkerId| !routes.failures.is_shunned(place) && routes.routed(route, &known).contains(&place);
            let choose = || routes.destination(route, &known);
            let worker = courses.settle(course.operation, SegmentId::of(version, part.index), stands, choose);
            let range = (part.object_range().start, part.len);
            match messages.last_mut() {
                Some(last) if last.version_ix == version_ix && last.worker == worker => last.ranges.push(range),
                _ => messages.push(Message { version_ix, worker, ranges: vec![range] }),
            }
        }
    }
    let asked = messages.iter().flat_map(|message| &message.ranges).map(|(_, len)| u64::from(*len));
    debug_assert_eq!(asked.sum::<u64>(), bytes, "what the window gave is asked for once");
    messages
}

async fn send(routes: &Routes, course: &Course, asked: &Asked, message: Message) {
    let version = &course.versions[message.version_ix];
    let known = routes.view.known_arc();
    let Some(info) = message.worker.and_then(|worker| known.worker(worker)) else { return };
    let (operation, standing, ranges, version) = (course.operation, course.standing, message.ranges, version.clone());
    let request = DataRequest::Prefetch { operation, version, ranges, keep: false, urgent: false, hold_ms: HOLD_MS, standing };
    let outcome = match routes.connections.link(info).await {
        Ok(link) => {
            asked.add(&link);
            fetch(&link, &request, DEADLINE).await.map_err(Failure::into_error)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        // What matters is seen by the read that comes.
        debug!(worker = %info.id, key = %course.versions[message.version_ix].key, %error, "not prefetched");
    }
}
