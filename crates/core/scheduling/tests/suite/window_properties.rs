//! The window against a byte map (in cells of 64 KiB) that knows what was planned, handed out and read.

use std::collections::BTreeSet;
use std::ops::Range;

use forebay_scheduling::{PlannedRange, UNIT_BYTES_MAX, Window};
use forebay_types::SEGMENT_BYTES;
use proptest::prelude::*;

const CELL: u64 = 64 << 10;
/// Cells around the border of two segments.
const SPACE: Range<u64> = 900..1200;

type Cells = BTreeSet<(usize, u64)>;

#[derive(Clone, Debug)]
enum Step {
    Next(usize),
    Read(usize, u64, u64),
}

fn cells(range: &PlannedRange) -> impl Iterator<Item = (usize, u64)> + use<> {
    let version_ix = range.version_ix;
    assert!(range.start.is_multiple_of(CELL) && range.len.is_multiple_of(CELL) && range.len > 0);
    (range.start / CELL..(range.start + range.len) / CELL).map(move |cell| (version_ix, cell))
}

fn plans() -> impl Strategy<Value = Vec<PlannedRange>> {
    let range = (0usize..3, SPACE, 0u64..150).prop_map(|(version_ix, start, len)| PlannedRange {
        version_ix,
        start: start * CELL,
        len: len * CELL,
    });
    prop::collection::vec(range, 0..12)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1usize..4).prop_map(Step::Next),
        (0usize..3, SPACE, 0u64..80).prop_map(|(version_ix, start, len)| Step::Read(version_ix, start, len)),
    ];
    prop::collection::vec(step, 0..60)
}

/// Hands out once and checks it against the map; whether there was something.
fn next(window: &mut Window, bytes_max: u64, planned: &Cells, read: &Cells, handed: &mut Cells) -> Result<bool, TestCaseError> {
    let (before, finished) = (window.outstanding(), window.is_finished());
    let Some(unit) = window.next() else {
        prop_assert!(before >= bytes_max || finished, "nothing handed out at {before} of {bytes_max} bytes");
        return Ok(false);
    };
    prop_assert!(before < bytes_max && !finished);
    prop_assert!(unit.len <= UNIT_BYTES_MAX);
    prop_assert_eq!(unit.start / SEGMENT_BYTES, (unit.start + unit.len - 1) / SEGMENT_BYTES);
    prop_assert_eq!(window.outstanding(), before + unit.len);
    for cell in cells(&unit) {
        prop_assert!(planned.contains(&cell), "{cell:?} was not planned");
        prop_assert!(!read.contains(&cell), "{cell:?} was read before");
        prop_assert!(handed.insert(cell), "{cell:?} was handed out twice");
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_plan_and_any_reads(plan in plans(), steps in steps(), bytes_max in 1u64..400) {
        let bytes_max = bytes_max * CELL;
        let planned: Cells = plan.iter().filter(|range| range.len > 0).flat_map(cells).collect();
        let mut window = Window::new(plan, bytes_max);
        let (mut handed, mut read) = (Cells::new(), Cells::new());
        for step in steps {
            match step {
                Step::Next(times) => for _ in 0..times {
                    next(&mut window, bytes_max, &planned, &read, &mut handed)?;
                },
                Step::Read(version_ix, start, len) => {
                    let before = window.outstanding();
                    window.read(version_ix, start * CELL..(start + len) * CELL);
                    read.extend((start..start + len).map(|cell| (version_ix, cell)));
                    prop_assert!(window.outstanding() <= before);
                }
            }
            // Never more than what is really handed out and unread; less where it was passed or written off.
            prop_assert!(window.outstanding() <= handed.difference(&read).count() as u64 * CELL);
        }
        // The rest is read in any order: the window ends, and holds nothing back.
        for cell in planned.difference(&read.clone()) {
            window.read(cell.0, cell.1 * CELL..(cell.1 + 1) * CELL);
            read.insert(*cell);
            while next(&mut window, bytes_max, &planned, &read, &mut handed)? {}
        }
        prop_assert!(window.is_finished());
        prop_assert_eq!(window.outstanding(), 0);
    }

    #[test]
    fn a_reader_that_keeps_to_the_plan_finds_everything_prefetched(plan in plans(), bytes_max in 1u64..400, step in 1u64..100) {
        let bytes_max = bytes_max * CELL;
        // Each version once, ascending: no range lies before an earlier one.
        let mut plan = plan;
        plan.retain(|range| range.len > 0);
        plan.sort();
        plan.dedup_by(|next, range| next.version_ix == range.version_ix && next.start < range.start + range.len);
        let planned: Cells = plan.iter().flat_map(cells).collect();
        let mut window = Window::new(plan.clone(), bytes_max);
        let (mut handed, mut read) = (Cells::new(), Cells::new());
        for range in &plan {
            let mut at = range.start;
            while at < range.start + range.len {
                while next(&mut window, bytes_max, &planned, &read, &mut handed)? {}
                let end = (at + step.min(bytes_max / CELL) * CELL).min(range.start + range.len);
                let part = PlannedRange { version_ix: range.version_ix, start: at, len: end - at };
                prop_assert!(cells(&part).all(|cell| handed.contains(&cell)), "{part:?} was not handed out");
                window.read(range.version_ix, at..end);
                read.extend(cells(&part));
                at = end;
                // Exactly the bytes handed out and unread: no rule but the first applies to such a reader.
                prop_assert_eq!(window.outstanding(), handed.difference(&read).count() as u64 * CELL);
            }
        }
        prop_assert_eq!(handed, planned);
    }
}
