//! Which cells are wished for, and the line of those to be made.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use forebay_protocol::ROW_COLUMNS_MAX;
use forebay_types::{Cell, ObjectVersion, OperationId, SegmentId};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::bounded::bounded;

/// Cells that readers have asked for, remembered at most; those asked for longest ago are forgotten first.
const WISHES_MAX: usize = 128_000;
/// Cells that stand in line at most; what is asked for beyond that is asked for again.
const LINE_MAX: usize = 8_192;
/// Objects whose cells are known, so that they go with them.
const OBJECTS_MAX: usize = 16_384;
/// Row groups of which is known what is asked for together.
const ROW_GROUPS_MAX: usize = 16_384;
/// What counts half after this time without being asked for.
const WINDOW: Duration = Duration::from_secs(60);
/// Operations before a cell is looked at: what was read once may never be read again.
const OPERATIONS_MIN: f64 = 1.5;
/// How long a cell that could not be made, or would not have paid, is left alone.
const PAUSE: Duration = Duration::from_secs(20);
/// The same for one whose bytes are not what they are taken for. They stay so; but it may be due to a column that it was tried
/// with, and that is not asked for any more.
const LONG_PAUSE: Duration = Duration::from_secs(600);

/// What is asked for in the table form, and the line of what is to be made.
pub(super) struct Wishes {
    state: Mutex<State>,
    wake: Notify,
}

struct State {
    wishes: LruCache<SegmentId, Wish>,
    line: VecDeque<Job>,
    /// By the id of the object's first segment. Of a large object there may be millions.
    made: LruCache<SegmentId, BTreeSet<SegmentId>>,
    /// The columns that the last operation has asked for, the first [`ROW_COLUMNS_MAX`] of them, by the object's first segment and
    /// the row group.
    together: LruCache<(SegmentId, u32), (OperationId, BTreeSet<u32>)>,
}

struct Wish {
    last: OperationId,
    operations: f64,
    at: Instant,
    quiet_until: Instant,
    in_line: bool,
}

/// A cell to make.
pub(super) struct Job {
    pub(super) version: ObjectVersion,
    pub(super) cell: Cell,
    pub(super) id: SegmentId,
    /// The coordinator wants a replica here; told when it is there, or can't be.
    pub(super) ordered: Option<oneshot::Sender<()>>,
}

/// How a job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Made,
    /// It would not pay, or not all that it takes is here.
    NotNow,
    /// The bytes are not what they are taken for.
    Never,
}

impl Default for Wishes {
    fn default() -> Self {
        let state = State {
            wishes: bounded(WISHES_MAX),
            line: VecDeque::new(),
            made: bounded(OBJECTS_MAX),
            together: bounded(ROW_GROUPS_MAX),
        };
        Self { state: Mutex::new(state), wake: Notify::new() }
    }
}

impl State {
    fn made_of(&mut self, version: &ObjectVersion, segments: &[SegmentId]) {
        let object = version.form().map_or_else(|| version.clone(), |(version, _)| version);
        self.made.get_or_insert_mut(SegmentId::of(&object, 0), BTreeSet::new).extend(segments);
    }
}

impl Wishes {
    /// An operation has asked for a cell, that is here or not.
    pub(super) fn asked(&self, operation: OperationId, version: &ObjectVersion, cell: Cell) {
        let mut state = self.state.lock();
        let row_group = (SegmentId::of(version, 0), cell.row_group);
        let (by, columns) = state.together.get_or_insert_mut(row_group, || (operation, BTreeSet::new()));
        if *by != operation {
            *by = operation;
            columns.clear();
        }
        // Nothing of what is asked for needs to exist.
        if columns.len() < ROW_COLUMNS_MAX {
            columns.insert(cell.column);
        }
    }

    /// The columns of the cell's row group that the last operation has asked for, this one among them.
    pub(super) fn together(&self, version: &ObjectVersion, cell: Cell) -> BTreeSet<u32> {
        let state = self.state.lock();
        let known = state.together.peek(&(SegmentId::of(version, 0), cell.row_group));
        let columns = known.map(|(_, columns)| columns).filter(|columns| columns.contains(&cell.column));
        columns.cloned().unwrap_or_else(|| BTreeSet::from([cell.column]))
    }

    /// An operation has asked for a cell that is not here.
    pub(super) fn wish(&self, operation: OperationId, version: &ObjectVersion, cell: Cell, id: SegmentId) {
        let now = forebay_runtime::now();
        let mut locked = self.state.lock();
        let state = &mut *locked;
        let fresh = || Wish { last: operation, operations: 0.0, at: now, quiet_until: now, in_line: false };
        let is_new = !state.wishes.contains(&id);
        let room = state.line.len() < LINE_MAX;
        let wish = state.wishes.get_or_insert_mut(id, fresh);
        if is_new || wish.last != operation {
            let windows = now.duration_since(wish.at).as_secs_f64() / WINDOW.as_secs_f64();
            wish.operations = wish.operations * 0.5f64.powf(windows) + 1.0;
            (wish.last, wish.at) = (operation, now);
        }
        if room && !wish.in_line && wish.operations >= OPERATIONS_MIN && now >= wish.quiet_until {
            wish.in_line = true;
            // Of a wish that was forgotten meanwhile the cell may stand in line still.
            if state.line.iter().any(|job| job.id == id && job.ordered.is_none()) {
                return;
            }
            state.line.push_back(Job { version: version.clone(), cell, id, ordered: None });
            drop(locked);
            self.wake.notify_one();
        }
    }

    /// Makes a cell that the coordinator wants here; ready when it is there, or can't be.
    pub(super) async fn order(&self, version: ObjectVersion, cell: Cell, id: SegmentId) {
        let (done, made) = oneshot::channel();
        self.state.lock().line.push_back(Job { version, cell, id, ordered: Some(done) });
        self.wake.notify_one();
        // An error means that the worker stops.
        let _ = made.await;
    }

    pub(super) async fn next(&self) -> Job {
        loop {
            if let Some(job) = self.state.lock().line.pop_front() {
                return job;
            }
            self.wake.notified().await;
        }
    }

    /// Whether a cell is left alone: it was tried lately, maybe with others.
    pub(super) fn is_quiet(&self, id: SegmentId) -> bool {
        self.state.lock().wishes.peek(&id).is_some_and(|wish| forebay_runtime::now() < wish.quiet_until)
    }

    /// Operations that have asked for a job's cell lately.
    pub(super) fn operations_of(&self, job: &Job) -> f64 {
        match job.ordered {
            Some(_) => f64::INFINITY,
            None => self.state.lock().wishes.peek(&job.id).map_or(0.0, |wish| wish.operations),
        }
    }

    /// A job has ended, and with it these cells, its own among them.
    pub(super) fn ended(&self, job: Job, outcome: Outcome, cells: &[SegmentId]) {
        let pause = match outcome {
            Outcome::Made => Duration::ZERO,
            Outcome::NotNow => PAUSE,
            Outcome::Never => LONG_PAUSE,
        };
        {
            let mut state = self.state.lock();
            let quiet_until = forebay_runtime::now() + pause;
            for cell in cells {
                if let Some(wish) = state.wishes.peek_mut(cell) {
                    let is_made = outcome == Outcome::Made;
                    wish.quiet_until = if is_made { quiet_until } else { wish.quiet_until.max(quiet_until) };
                }
            }
            if let Some(wish) = state.wishes.peek_mut(&job.id) {
                wish.in_line = false;
            }
            if outcome == Outcome::Made {
                state.made_of(&job.version, cells);
            }
        }
        if let Some(ordered) = job.ordered {
            // The order may have been given up.
            let _ = ordered.send(());
        }
    }

    /// Segments that are here because of a version, and go with it.
    pub(super) fn made_of(&self, version: &ObjectVersion, segments: &[SegmentId]) {
        self.state.lock().made_of(version, segments);
    }

    /// The cells that were made of the object whose first segment this is; they are forgotten here.
    pub(super) fn take_cells(&self, first: SegmentId) -> BTreeSet<SegmentId> {
        self.state.lock().made.pop(&first).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::{Key, MountId, VersionTag};
    use futures::FutureExt;

    #[test]
    fn columns_of_the_last_operation_belong_together() {
        let forms = Wishes::default();
        let version = ObjectVersion { mount: MountId(1), key: Key::new("a").unwrap(), tag: VersionTag::etag("\"t\""), size: 9 };
        let cell = |column| Cell { row_group: 3, column };
        assert_eq!(forms.together(&version, cell(1)), BTreeSet::from([1]), "nothing is known");
        for (operation, column) in [(1, 0), (1, 1), (2, 1), (2, 5)] {
            forms.asked(OperationId(operation), &version, cell(column));
        }
        assert_eq!(forms.together(&version, cell(5)), BTreeSet::from([1, 5]));
        assert_eq!(forms.together(&version, cell(0)), BTreeSet::from([0]), "asked for by another one");
        assert_eq!(forms.together(&version, Cell { row_group: 4, column: 1 }), BTreeSet::from([1]));
    }

    #[test]
    fn an_operation_that_asks_for_every_column_is_remembered_by_so_many() {
        let forms = Wishes::default();
        let version = ObjectVersion { mount: MountId(1), key: Key::new("a").unwrap(), tag: VersionTag::etag("\"t\""), size: 9 };
        let cell = |column| Cell { row_group: 3, column };
        (0..5_000).for_each(|column| forms.asked(OperationId(1), &version, cell(column)));
        assert_eq!(forms.together(&version, cell(0)).len(), ROW_COLUMNS_MAX);
        assert_eq!(forms.together(&version, cell(4_999)), BTreeSet::from([4_999]), "for itself");
        forms.asked(OperationId(2), &version, cell(4_999));
        forms.asked(OperationId(2), &version, cell(1));
        assert_eq!(forms.together(&version, cell(1)), BTreeSet::from([1, 4_999]), "the next one is known from its first on");
    }

    #[test]
    fn what_two_operations_ask_for_stands_in_line_once() {
        let forms = Wishes::default();
        let tag = VersionTag::etag("\"t\"");
        let version = ObjectVersion { mount: MountId(1), key: Key::new("a.parquet").unwrap(), tag, size: 9 };
        let (cell, id) = (Cell { row_group: 0, column: 1 }, SegmentId(7));
        for _ in 0..3 {
            forms.wish(OperationId(1), &version, cell, id);
        }
        assert!(forms.next().now_or_never().is_none(), "one operation, however often it asks");
        forms.wish(OperationId(2), &version, cell, id);
        forms.wish(OperationId(3), &version, cell, id);
        let job = forms.next().now_or_never().expect("it is popular");
        assert!(forms.next().now_or_never().is_none(), "once");
        forms.ended(job, Outcome::NotNow, &[id]);
        forms.wish(OperationId(4), &version, cell, id);
        assert!(forms.next().now_or_never().is_none(), "left alone for a while");
    }

    #[test]
    fn a_cell_whose_wish_was_forgotten_stands_in_line_once_all_the_same() {
        let forms = Wishes::default();
        let tag = VersionTag::etag("\"t\"");
        let version = ObjectVersion { mount: MountId(1), key: Key::new("a.parquet").unwrap(), tag, size: 9 };
        let (cell, id) = (Cell { row_group: 0, column: 1 }, SegmentId(7));
        let wish = |operation, id| forms.wish(OperationId(operation), &version, cell, id);
        [1, 2].into_iter().for_each(|operation| wish(operation, id));
        (0..WISHES_MAX as u128).for_each(|other| wish(3, SegmentId(100 + other)));
        [4, 5].into_iter().for_each(|operation| wish(operation, id));
        assert!(forms.next().now_or_never().is_some(), "it is popular");
        assert!(forms.next().now_or_never().is_none(), "once");
    }
}
