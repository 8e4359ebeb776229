//! What room a worker has for replicas, a tier at a time.

use std::collections::BTreeMap;

use forebay_placement::{FormRoom, Storage};
use forebay_protocol::{WorkerInfo, WorkerReport};
use forebay_types::{Cell, WorkerId};

use super::segments::Tracked;

/// What a worker may hold of what is planned, and its tiers as garbage collection sees them: by what lies there as it is, and by
/// decoded columns, which are in DRAM only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Room {
    pub(super) raw: (u64, Storage),
    pub(super) decoded: (u64, Storage),
}

/// What a worker holds of what is planned, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mine {
    raw: u64,
    /// Of these, what the administrator keeps.
    kept: u64,
    decoded: u64,
}

/// What each worker holds of these segments, in one pass.
pub(super) fn held<'a>(
    segments: impl Iterator<Item = &'a Tracked>,
    kept_for: impl Fn(&Tracked) -> bool,
) -> BTreeMap<WorkerId, Mine> {
    let mut all: BTreeMap<WorkerId, Mine> = BTreeMap::new();
    for tracked in segments {
        let (is_decoded, is_kept) = (Cell::of_index(tracked.index).is_some(), kept_for(tracked));
        for (worker, replica) in tracked.replicas.iter() {
            let mine = all.entry(worker).or_default();
            let add = |sum: &mut u64| *sum = sum.saturating_add(replica.held_bytes);
            add(if is_decoded { &mut mine.decoded } else { &mut mine.raw });
            if is_kept && !is_decoded {
                add(&mut mine.kept);
            }
        }
    }
    all
}

/// The room of a worker that registered and reports, of which `share` may be taken by replicas: what is left of its lowest tier when
/// temporary nodes, decoded columns and what is kept without being planned have theirs. `mine` is what it holds of what is
/// planned. One that has not come back since the coordinator started keeps what it has, and is given nothing.
pub(super) fn room(known: Option<(&WorkerInfo, &WorkerReport)>, share: f64, mine: Mine) -> Room {
    let Some((info, report)) = known else {
        let nothing = Storage::default();
        return Room { raw: (mine.raw, nothing), decoded: (mine.decoded, nothing) };
    };
    // A tier that was switched off is in no report; before the first one there is only what it registered with.
    let has_reported = report.dram.0 > 0;
    let (dram, disk) = if has_reported { (report.dram.0, report.disk.0) } else { (info.dram_bytes, info.disk_bytes) };
    let is_disk = disk > 0;
    let (capacity, used) = if is_disk { (disk, report.disk.1) } else { (dram, report.dram.1) };
    let of = |(of_dram, of_disk): (u64, u64)| if is_disk { of_disk } else { of_dram };
    let kept = of(report.kept).saturating_sub(mine.kept);
    let raw = shared(capacity, share).saturating_sub(of(report.own)).saturating_sub(kept);
    // What it has weighed them to be worth; one of the version before says nothing of it.
    let for_forms = match report.form_room_bytes {
        0 => FormRoom::first_bytes(dram),
        told => told.min(dram),
    };
    let others = report.own.0.saturating_sub(report.form_bytes);
    let decoded = for_forms.min(shared(dram, share).saturating_sub(others));
    Room {
        raw: (raw, Storage { limit: capacity, used }),
        decoded: (decoded, Storage { limit: for_forms, used: report.form_bytes }),
    }
}

fn shared(bytes: u64, share: f64) -> u64 {
    (bytes as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use forebay_types::HostId;

    use super::*;

    #[test]
    fn what_a_tier_has_beside_planned_copies_is_taken_off_that_tier_alone() {
        let info = WorkerInfo {
            id: WorkerId(1),
            host: HostId("host".into()),
            address: "host:1".into(),
            unix_socket: None,
            dram_bytes: 1_000,
            disk_bytes: 0,
            turn: 1,
            location: "host".into(),
            draining: false,
            protocol: 9,
        };
        // Of 300 in DRAM 100 are decoded, the rest is temporary; on disk there are layers as well.
        let (kept, own) = ((50, 400), (300, 600));
        let mut report =
            WorkerReport { dram: (1_000, 700, 0), form_bytes: 100, kept, own, form_room_bytes: 900, ..WorkerReport::default() };
        // Of what is kept 30 are planned: a plan has them for itself.
        let mine = Mine { raw: 250, kept: 30, decoded: 100 };
        let of = |report: &WorkerReport| room(Some((&info, report)), 0.9, mine);
        let without_disk = of(&report);
        assert_eq!(without_disk.raw, (900 - 300 - 20, Storage { limit: 1_000, used: 700 }));
        assert_eq!(without_disk.decoded, (900 - 200, Storage { limit: 900, used: 100 }));
        report.disk = (10_000, 4_000, 0);
        let with_disk = of(&report);
        assert_eq!(with_disk.raw, (9_000 - 600 - 370, Storage { limit: 10_000, used: 4_000 }));
        assert_eq!(with_disk.decoded, without_disk.decoded, "columns are in DRAM whatever the disk has");
        (report.own.1, report.kept.1) = (9_000, 400);
        assert_eq!(of(&report).raw.0, 0, "no room is less than none");
    }
}
