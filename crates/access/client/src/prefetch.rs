use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use forebay_protocol::DataRequest;
use forebay_scheduling::{PlannedRange, Window};
use forebay_types::{Key, MountId, ObjectVersion, OperationId, RouteKey, WorkerId, split_range};
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::ask::Failure;
use crate::client::Client;
use crate::core::Core;

/// Messages of one prefetch under way at once.
const MESSAGES_AT_ONCE: usize = 8;
/// Bytes and ranges of one message: what can be cancelled, and what a worker may coalesce.
const MESSAGE_BYTES: u64 = 8 << 20;
const MESSAGE_RANGES: usize = 256;

impl Client {
    /// Fetches what a plan is about to read, in this order, a bounded number of bytes ahead of the reads of the same
    /// operation: each [`Client::read`] with it moves the window. Dropping the answer cancels what is under way. What
    /// can't be prefetched is read on demand, so there is no error here.
    pub fn prefetch(&self, operation: OperationId, plan: Vec<(ObjectVersion, Vec<Range<u64>>)>) -> Prefetch {
        let mut versions = Vec::with_capacity(plan.len());
        let mut ranges = Vec::new();
        for (version_ix, (version, wanted)) in plan.into_iter().enumerate() {
            let within = wanted.into_iter().filter(|range| range.start < range.end && range.end <= version.size);
            ranges.extend(within.map(|range| PlannedRange { version_ix, start: range.start, len: range.end - range.start }));
            versions.push(version);
        }
        let mut by_key: HashMap<_, Vec<_>> = HashMap::new();
        for (ix, version) in versions.iter().enumerate() {
            by_key.entry((version.mount, version.key.clone())).or_default().push(ix);
        }
        let window = Mutex::new(Window::new(ranges, self.core.settings.prefetch_bytes));
        let course = Arc::new(Course { operation, versions, by_key, window, moved: Notify::new() });
        self.core.prefetches.add(&course);
        let task = tokio::spawn(drive(Arc::downgrade(&self.core), Arc::clone(&course)));
        Prefetch { core: Arc::downgrade(&self.core), course, _task: AbortOnDropHandle::new(task) }
    }
}

/// A prefetch under way; dropping it cancels it.
pub struct Prefetch {
    core: Weak<Core>,
    course: Arc<Course>,
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
        if let Some(core) = self.core.upgrade() {
            core.prefetches.remove(&self.course);
        }
    }
}

impl std::fmt::Debug for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prefetch").field("operation", &self.course.operation).finish_non_exhaustive()
    }
}

/// A plan and how far its reader is.
struct Course {
    operation: OperationId,
    versions: Vec<ObjectVersion>,
    by_key: HashMap<(MountId, Key), Vec<usize>>,
    window: Mutex<Window>,
    moved: Notify,
}

/// Ranges of one version that one worker is asked for.
struct Message {
    version_ix: usize,
    worker: Option<WorkerId>,
    ranges: Vec<(u64, u32)>,
}

/// The prefetches under way, by operation.
#[derive(Default)]
pub(crate) struct Prefetches {
    any: AtomicUsize,
    courses: Mutex<HashMap<OperationId, Vec<Arc<Course>>>>,
}

impl Prefetches {
    fn add(&self, course: &Arc<Course>) {
        self.courses.lock().entry(course.operation).or_default().push(Arc::clone(course));
        self.any.fetch_add(1, Ordering::Release);
    }

    fn remove(&self, course: &Arc<Course>) {
        let mut courses = self.courses.lock();
        if let Some(of_operation) = courses.get_mut(&course.operation) {
            let before = of_operation.len();
            of_operation.retain(|other| !Arc::ptr_eq(other, course));
            self.any.fetch_sub(before - of_operation.len(), Ordering::Release);
            if of_operation.is_empty() {
                courses.remove(&course.operation);
            }
        }
    }

    /// A reader asks for this range: its operation's windows move.
    pub(crate) fn reading(&self, operation: OperationId, version: &ObjectVersion, range: &Range<u64>) {
        if self.any.load(Ordering::Acquire) == 0 {
            return;
        }
        let Some(courses) = self.courses.lock().get(&operation).cloned() else { return };
        for course in courses {
            let Some(candidates) = course.by_key.get(&(version.mount, version.key.clone())) else { continue };
            let mut window = course.window.lock();
            for ix in candidates.iter().filter(|ix| course.versions[**ix] == *version) {
                window.read(*ix, range.clone());
            }
            drop(window);
            course.moved.notify_one();
        }
    }
}

/// Hands out what the window gives, to the workers that will be read from, until the plan is through.
async fn drive(core: Weak<Core>, course: Arc<Course>) {
    let mut under_way = FuturesUnordered::new();
    let mut waiting = std::collections::VecDeque::new();
    loop {
        while under_way.len() < MESSAGES_AT_ONCE {
            if waiting.is_empty() {
                let Some(core) = core.upgrade() else { return };
                waiting.extend(core.next_messages(&course));
            }
            let Some(message) = waiting.pop_front() else { break };
            let (core, course) = (core.clone(), Arc::clone(&course));
            under_way.push(async move {
                let Some(core) = core.upgrade() else { return };
                core.prefetch_message(&course, message).await;
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

impl Core {
    /// What the window gives now, up to a message's bytes, in plan order.
    fn next_messages(&self, course: &Course) -> Vec<Message> {
        let known = self.view.known();
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
                let worker = self.main_holder(route, &known);
                let range = (part.object_range().start, part.len);
                match messages.last_mut() {
                    Some(last) if last.version_ix == version_ix && last.worker == worker => last.ranges.push(range),
                    _ => messages.push(Message { version_ix, worker, ranges: vec![range] }),
                }
            }
        }
        messages
    }

    async fn prefetch_message(&self, course: &Course, message: Message) {
        let version = &course.versions[message.version_ix];
        let known = self.view.known_arc();
        let Some(info) = message.worker.and_then(|worker| known.worker(worker)) else { return };
        let (operation, ranges) = (course.operation, message.ranges);
        let request = DataRequest::Prefetch { operation, version: version.clone(), ranges, keep: false, urgent: false };
        let outcome = match self.connections.link(info).await {
            Ok(link) => self.ask_to_fetch(&link, &request).await.map_err(Failure::into_error),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            // What matters is seen by the read that comes.
            debug!(worker = %info.id, key = %version.key, %error, "not prefetched");
        }
    }
}
