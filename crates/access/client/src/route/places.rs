//! Where operations read that were told by who schedules data and tasks together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_types::{OperationId, PageRun, SegmentId, WorkerId};
use parking_lot::RwLock;

/// Pages of segments, and which worker is asked for them.
pub(crate) type Of = HashMap<SegmentId, Vec<(PageRun, WorkerId)>>;
/// The same, shared by who may end it.
pub(crate) type Kept = Arc<Of>;

/// Where operations read that were told.
#[derive(Default)]
pub(crate) struct Places {
    any: AtomicUsize,
    kept: RwLock<HashMap<OperationId, Vec<Kept>>>,
}

impl Places {
    pub(crate) fn add(&self, operation: OperationId, places: &Kept) {
        self.kept.write().entry(operation).or_default().push(Arc::clone(places));
        self.any.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn remove(&self, operation: OperationId, places: &Kept) {
        let mut kept = self.kept.write();
        if let Some(of_operation) = kept.get_mut(&operation) {
            let before = of_operation.len();
            of_operation.retain(|other| !Arc::ptr_eq(other, places));
            let gone = before - of_operation.len();
            let any = self.any.fetch_sub(gone, Ordering::Release);
            assert!(any >= gone, "{gone} places go of {any}");
            if of_operation.is_empty() {
                kept.remove(&operation);
            }
        }
    }

    pub(crate) fn of(&self, operation: OperationId, segment: SegmentId, page: u32) -> Option<WorkerId> {
        if self.any.load(Ordering::Acquire) == 0 {
            return None;
        }
        let kept = self.kept.read();
        let within = |of: &Kept| of.get(&segment)?.iter().find(|(run, _)| run.pages().contains(&page)).map(|(_, worker)| *worker);
        kept.get(&operation)?.iter().rev().find_map(within)
    }
}
