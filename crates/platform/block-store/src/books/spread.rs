//! Which of several disks takes a segment: by room, and by what waits there.

use forebay_types::{PAGES_PER_BLOCK, SegmentId, mix64};

/// One segment in so many goes to a disk that has failed and is tried again, while there are others: all of it would be lost again.
const TRIED_WITH: f64 = 16.0;

/// What is known of a disk when a segment is to be put on one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DiskRoom {
    /// Whether it takes anything now.
    pub takes: bool,
    /// Whether nothing is wrong with it, as opposed to being tried again.
    pub is_well: bool,
    pub free: u64,
    /// Pages that are free, or can be evicted.
    pub most: u64,
    /// Requests that wait for it or are under way.
    pub waiting: u64,
}

impl DiskRoom {
    /// Whether it takes a block without evicting another one.
    fn has_room(&self) -> bool {
        self.takes && self.free >= u64::from(PAGES_PER_BLOCK)
    }
}

/// The disk that takes a segment; none when no disk takes anything, or nothing can be evicted anywhere. While some have room, these share
/// what comes in proportion to it, else all in proportion to what they may evict, so that none turns over faster than the others; and each
/// the less the more waits for it. One that is tried again takes little of it. The same segment goes to the same disk as long as nothing
/// has changed.
pub(crate) fn choose(disks: &[DiskRoom], id: SegmentId) -> Option<usize> {
    let others_are_well = disks.iter().any(|disk| disk.takes && disk.is_well && disk.most > 0);
    let only_well = others_are_well && draw(id, usize::from(u16::MAX)) > 1.0 / TRIED_WITH;
    let takes = |disk: &DiskRoom| disk.takes && (disk.is_well || !only_well);
    let some_have_room = disks.iter().any(|disk| takes(disk) && disk.has_room());
    let turns = disks.iter().enumerate().filter(|(_, disk)| takes(disk)).filter_map(|(at, disk)| {
        let room = match some_have_room {
            true if disk.has_room() => disk.free,
            true => 0,
            false => disk.most,
        };
        // Whoever comes first in a race of exponential times, which have the rate of its share, wins in proportion to it.
        (room > 0).then(|| (at, -draw(id, at).ln() * (1 + disk.waiting) as f64 / room as f64))
    });
    turns.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at)
}

/// A number above 0 and up to 1 that a segment and a disk always give.
fn draw(id: SegmentId, at: usize) -> f64 {
    let word = (id.0 as u64) ^ ((id.0 >> 64) as u64).rotate_left(23) ^ (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mix64(word) >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: DiskRoom = DiskRoom { takes: true, is_well: true, free: 0, most: 1 << 20, waiting: 0 };

    fn id(number: u64) -> SegmentId {
        SegmentId(
            u128::from(number.wrapping_mul(0x2545_f491_4f6c_dd1d)) << 64 | u128::from(number.wrapping_mul(0xd605_1659_dd3b_6b59)),
        )
    }

    /// How many of 20,000 segments each disk takes.
    fn shares(disks: &[DiskRoom]) -> Vec<f64> {
        let mut taken = vec![0.0; disks.len()];
        for number in 0..20_000 {
            taken[choose(disks, id(number)).unwrap()] += 1.0 / 20_000.0;
        }
        taken
    }

    fn are_near(found: &[f64], wanted: &[f64]) -> bool {
        found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 0.02)
    }

    #[test]
    fn full_disks_share_by_size_and_others_by_what_is_free() {
        let sizes = [FULL, DiskRoom { most: 3 << 20, ..FULL }];
        assert!(are_near(&shares(&sizes), &[0.25, 0.75]), "{:?}", shares(&sizes));
        let free = [DiskRoom { free: 9000, ..FULL }, DiskRoom { free: 1000, ..FULL }, FULL];
        assert!(are_near(&shares(&free), &[0.9, 0.1, 0.0]), "{:?}", shares(&free));
    }

    #[test]
    fn a_disk_for_which_much_waits_takes_less() {
        let disks = [FULL, DiskRoom { waiting: 3, ..FULL }];
        assert!(are_near(&shares(&disks), &[0.8, 0.2]), "{:?}", shares(&disks));
    }

    fn disk() -> impl Strategy<Value = DiskRoom> {
        (any::<bool>(), 0u64..5000, 0u64..5000, 0u64..100).prop_map(|(takes, free, kept_out, waiting)| DiskRoom {
            takes,
            is_well: true,
            free,
            most: free + kept_out,
            waiting,
        })
    }

    #[test]
    fn a_disk_that_is_tried_again_takes_little_beside_others() {
        let tried = DiskRoom { is_well: false, free: 1 << 20, ..FULL };
        let found = shares(&[FULL, tried]);
        assert!(are_near(&found, &[0.9375, 0.0625]), "{found:?}");
        let found = shares(&[DiskRoom { takes: false, ..FULL }, tried]);
        assert!(are_near(&found, &[0.0, 1.0]), "{found:?}");
    }

    proptest! {
        #[test]
        fn what_is_chosen_takes_it_and_has_room_if_any_has(disks in prop::collection::vec(disk(), 0..8), number in any::<u64>()) {
            let chosen = choose(&disks, id(number));
            match chosen {
                None => prop_assert!(disks.iter().all(|disk| !disk.takes || disk.most == 0)),
                Some(at) => {
                    prop_assert!(disks[at].takes && disks[at].most > 0);
                    prop_assert!(disks[at].free >= 256 || disks.iter().all(|disk| !disk.takes || disk.free < 256));
                }
            }
            prop_assert_eq!(chosen, choose(&disks, id(number)));
        }

        #[test]
        fn one_that_is_left_out_moves_nothing_of_the_others(disks in prop::collection::vec(disk(), 2..8), out in any::<prop::sample::Index>(), number in any::<u64>()) {
            let mut disks = disks;
            disks.iter_mut().for_each(|disk| (disk.takes, disk.free) = (true, 0));
            let before = choose(&disks, id(number));
            let out = out.index(disks.len());
            disks[out].takes = false;
            let after = choose(&disks, id(number));
            prop_assert!(before == Some(out) || before == after);
        }
    }
}
