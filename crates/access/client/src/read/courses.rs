//! Plans that are fetched ahead of their readers, and how far these are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_scheduling::{PlannedRange, Window};
use forebay_types::{Key, MountId, ObjectVersion, OperationId, SegmentId, Standing, WorkerId};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Versions, and which ranges of each, in the order in which they are read.
pub type Planned = Vec<(ObjectVersion, Vec<Range<u64>>)>;

/// A plan and how far its reader is.
pub(crate) struct Course {
    pub(crate) operation: OperationId,
    pub(crate) standing: Standing,
    pub(crate) versions: Vec<ObjectVersion>,
    by_key: HashMap<(MountId, Key), Vec<usize>>,
    pub(crate) window: Mutex<Window>,
    pub(crate) moved: Notify,
}

impl Course {
    /// The course of a plan, which is read in this order; ranges that are not within their version are left out.
    pub(crate) fn new(operation: OperationId, standing: Standing, plan: Planned, window_bytes: u64) -> Self {
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
        let window = Mutex::new(Window::new(ranges, window_bytes));
        Self { operation, standing, versions, by_key, window, moved: Notify::new() }
    }
}

/// The plans that are fetched ahead of their readers, by operation.
#[derive(Default)]
pub(crate) struct Courses {
    any: AtomicUsize,
    courses: Mutex<HashMap<OperationId, Plans>>,
}

/// The plans of one operation.
#[derive(Default)]
struct Plans {
    courses: Vec<Arc<Course>>,
    /// Where segments are brought, and read.
    places: HashMap<SegmentId, WorkerId>,
}

impl Courses {
    pub(crate) fn add(&self, course: &Arc<Course>) {
        self.courses.lock().entry(course.operation).or_default().courses.push(Arc::clone(course));
        self.any.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn remove(&self, course: &Arc<Course>) {
        let mut courses = self.courses.lock();
        if let Some(plans) = courses.get_mut(&course.operation) {
            let of_operation = &mut plans.courses;
            let before = of_operation.len();
            of_operation.retain(|other| !Arc::ptr_eq(other, course));
            let gone = before - of_operation.len();
            let any = self.any.fetch_sub(gone, Ordering::Release);
            assert!(any >= gone, "{gone} courses go of {any}");
            if of_operation.is_empty() {
                courses.remove(&course.operation);
            }
        }
    }

    /// Where an operation's plans bring a segment: where they brought what came before of it, as long as that place `stands`, else where
    /// `choose` says. Its reads go there.
    pub(crate) fn settle(
        &self,
        operation: OperationId,
        segment: SegmentId,
        stands: impl FnOnce(WorkerId) -> bool,
        choose: impl FnOnce() -> Option<WorkerId>,
    ) -> Option<WorkerId> {
        let mut courses = self.courses.lock();
        let Some(plans) = courses.get_mut(&operation) else { return choose() };
        if let Some(place) = plans.places.get(&segment).copied().filter(|place| stands(*place)) {
            return Some(place);
        }
        let chosen = choose()?;
        debug_assert!(!plans.courses.is_empty(), "an operation that has places has a course");
        plans.places.insert(segment, chosen);
        Some(chosen)
    }

    /// Where a segment was brought for an operation.
    pub(super) fn place_of(&self, operation: OperationId, segment: SegmentId) -> Option<WorkerId> {
        if self.any.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.courses.lock().get(&operation)?.places.get(&segment).copied()
    }

    /// A reader asks for this range: its operation's windows move.
    pub(super) fn reading(&self, operation: OperationId, version: &ObjectVersion, range: &Range<u64>) {
        if self.any.load(Ordering::Acquire) == 0 {
            return;
        }
        let courses = self.courses.lock().get(&operation).map(|plans| plans.courses.clone());
        let Some(courses) = courses else { return };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_stays_where_it_was_brought_while_it_is_read_there_and_a_plan_is_there() {
        let courses = Courses::default();
        let (operation, segment) = (OperationId(7), SegmentId(1));
        let course = Arc::new(Course::new(operation, Standing::default(), Vec::new(), 1));
        let settle = |stands: bool, at: u64| courses.settle(operation, segment, |_| stands, || Some(WorkerId(at)));
        assert_eq!((settle(true, 1), courses.place_of(operation, segment)), (Some(WorkerId(1)), None), "no plan brings it");
        courses.add(&course);
        assert_eq!((settle(true, 1), settle(true, 2)), (Some(WorkerId(1)), Some(WorkerId(1))));
        assert_eq!(courses.place_of(operation, segment), Some(WorkerId(1)));
        assert_eq!(settle(false, 2), Some(WorkerId(2)), "it is not read there any more");
        assert_eq!((courses.place_of(operation, segment), courses.place_of(OperationId(8), segment)), (Some(WorkerId(2)), None));
        courses.remove(&course);
        assert_eq!(courses.place_of(operation, segment), None);
    }
}
