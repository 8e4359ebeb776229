//! Which shard's changes are merged into its files next, in parts of which size, and when no more of them are taken.
//!
//! Changes wait in memory, and a merge rewrites the shard: the more wait the less is written for each of them, and the more memory they
//! take. One merge is under way at a time, and one part of it in memory.

/// What is to be merged of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmerged {
    /// Bytes of its keys and values.
    pub input_bytes: u64,
    /// Bytes of its changes, all of them in memory.
    pub bytes: u64,
    /// Objects that they are in.
    pub objects: u64,
    /// It is this worker that merges it: of several that hold a shard the first does.
    pub is_mine: bool,
    /// It is being merged, or about to be.
    pub is_merging: bool,
    /// A merge of it came to nothing a short while ago.
    pub is_put_off: bool,
}

impl Unmerged {
    /// Whether it has changes that its merge may begin with.
    fn waits(&self) -> bool {
        !self.is_merging && !self.is_put_off && (self.bytes > 0 || self.objects > 0)
    }
}

/// What merges are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// A merge waits for an eighth of the shard, within these bounds.
    pub bytes_min: u64,
    /// See above.
    pub bytes_max: u64,
    /// Objects that whoever begins with the shard has to read, at most, before they are merged.
    pub objects_max: u64,
    /// Changes of one shard beyond which nothing more is written to it.
    pub shard_bytes: u64,
    /// Changes of all shards of a worker beyond which nothing more is written to any.
    pub all_bytes: u64,
    /// Input of a part that is built at once, at most; building takes about seven times as much memory.
    pub part_bytes: u64,
}

/// The usual limits: changes of 96 MiB take about 200 MiB of memory, and a merge 150 MiB beside them.
pub const MERGE_LIMITS: MergeLimits = MergeLimits {
    bytes_min: 4 << 20,
    bytes_max: 32 << 20,
    objects_max: 4096,
    shard_bytes: 64 << 20,
    all_bytes: 96 << 20,
    part_bytes: 24 << 20,
};

impl MergeLimits {
    /// Whether so much was changed in a shard that it is worth to rewrite it.
    pub fn is_much(&self, shard: &Unmerged) -> bool {
        debug_assert!(self.bytes_min <= self.bytes_max, "bounds are in order");
        shard.objects >= self.objects_max || shard.bytes >= (shard.input_bytes / 8).clamp(self.bytes_min, self.bytes_max)
    }

    /// Whether there is room for more changes where a shard has so many bytes of them, and all shards together.
    pub fn takes_more(&self, shard_bytes: u64, all_bytes: u64) -> bool {
        debug_assert!(self.shard_bytes <= self.all_bytes, "one shard has no more room than all");
        shard_bytes <= self.shard_bytes && all_bytes <= self.all_bytes
    }

    /// The same of changes that another worker tells of: half of the room stays for what is written here, which could be written nowhere else,
    /// and for what somebody waits for.
    pub fn takes_told(&self, shard_bytes: u64, all_bytes: u64) -> bool {
        shard_bytes <= self.shard_bytes / 2 && all_bytes <= self.all_bytes / 2
    }
}

/// The shard, by its place, whose merge is to begin or to wait for its turn; none where what there is may wait, or waits already. What is
/// worth it comes first, the most changed part of a shard before others. Where changes of all shards are about to take up their room, the
/// shard with most of them is merged, whether that is worth it or not, as long as nothing else is. One whose merge came to nothing is in
/// nobody's way for a while.
pub fn merge_next(shards: &[Unmerged], limits: &MergeLimits) -> Option<usize> {
    let all: u64 = shards.iter().fold(0, |all, shard| all.saturating_add(shard.bytes));
    let waiting = || shards.iter().enumerate().filter(|(_, shard)| shard.waits());
    let part = |shard: &Unmerged| shard.bytes as f64 / shard.input_bytes.max(1) as f64;
    let much = waiting().filter(|(_, shard)| shard.is_mine && limits.is_much(shard));
    if let Some((place, _)) = much.max_by(|(_, a), (_, b)| part(a).total_cmp(&part(b))) {
        return Some(place);
    }
    if all < limits.all_bytes / 4 * 3 || shards.iter().any(|shard| shard.is_merging) {
        return None;
    }
    let most = |of_all: bool| waiting().filter(|(_, shard)| of_all || shard.is_mine).max_by_key(|(_, shard)| shard.bytes);
    // Who is to merge the others' may be away: nothing is written for ever where nobody does.
    let next = most(false).or_else(|| (all >= limits.all_bytes).then(|| most(true)).flatten());
    debug_assert!(next.is_none_or(|(_, shard)| !shard.is_merging), "a shard is merged once at a time");
    next.map(|(place, _)| place)
}

/// Bytes of input of each part of a shard of so many: as few parts as may be, of the same size.
pub fn merge_part_bytes(input_bytes: u64, limits: &MergeLimits) -> u64 {
    assert!(limits.part_bytes > 0, "a part has something in it");
    let parts = input_bytes.div_ceil(limits.part_bytes).max(1);
    let bytes = input_bytes.div_ceil(parts).max(1);
    debug_assert!(bytes <= limits.part_bytes, "no part is larger than what may be built at once");
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;
    const QUIET: Unmerged =
        Unmerged { input_bytes: 128 * MIB, bytes: 0, objects: 0, is_mine: true, is_merging: false, is_put_off: false };

    fn next(shards: &[Unmerged]) -> Option<usize> {
        merge_next(shards, &MERGE_LIMITS)
    }

    #[test]
    fn an_eighth_is_worth_a_merge_and_so_are_many_objects() {
        let of = |bytes, objects| Unmerged { bytes, objects, ..QUIET };
        assert_eq!(next(&[QUIET, of(15 * MIB, 9)]), None);
        assert_eq!(next(&[QUIET, of(16 * MIB, 9)]), Some(1));
        assert_eq!(next(&[QUIET, of(1, 4096)]), Some(1));
        assert_eq!(next(&[of(16 * MIB, 1), of(20 * MIB, 1)]), Some(1), "the more is changed the less is written for each");
        assert_eq!(next(&[of(16 * MIB, 1), Unmerged { is_merging: true, ..of(20 * MIB, 1) }]), Some(0), "it waits for its turn");
        assert_eq!(next(&[Unmerged { is_mine: false, ..of(60 * MIB, 1) }]), None, "another worker merges it");
        let small = Unmerged { input_bytes: MIB, ..of(3 * MIB, 1) };
        assert_eq!(next(&[small]), None);
        assert_eq!(next(&[Unmerged { input_bytes: 8 << 30, ..of(32 * MIB, 1) }]), Some(0));
    }

    #[test]
    fn what_takes_up_the_room_is_merged_the_largest_first_and_one_at_a_time() {
        let mut shards = vec![Unmerged { bytes: 2 * MIB, objects: 1, ..QUIET }; 35];
        assert_eq!(next(&shards), None);
        shards.push(Unmerged { bytes: 3 * MIB, objects: 1, ..QUIET });
        assert_eq!(next(&shards), Some(35));
        shards[35].is_merging = true;
        assert_eq!(next(&shards), None, "until that one is done");
        shards[35] = Unmerged { is_mine: false, bytes: 5 * MIB, ..QUIET };
        assert!(next(&shards).is_some_and(|place| place < 35), "those of others are theirs");
        shards.iter_mut().for_each(|shard| shard.is_mine = false);
        assert_eq!(next(&shards), None);
        shards.extend(vec![Unmerged { bytes: 4 * MIB, is_mine: false, ..QUIET }; 6]);
        assert_eq!(next(&shards), Some(35), "but not where nothing could be written any more");
        assert!(!MERGE_LIMITS.takes_more(0, 97 * MIB) && !MERGE_LIMITS.takes_more(65 * MIB, 65 * MIB));
        assert!(MERGE_LIMITS.takes_more(64 * MIB, 96 * MIB));
        assert!(MERGE_LIMITS.takes_told(32 * MIB, 48 * MIB));
        assert!(!MERGE_LIMITS.takes_told(33 * MIB, 33 * MIB) && !MERGE_LIMITS.takes_told(0, 49 * MIB), "others leave half of it");
    }

    #[test]
    fn one_whose_merge_comes_to_nothing_is_in_nobody_s_way() {
        let of = |bytes| Unmerged { bytes, objects: 1, ..QUIET };
        let failed = Unmerged { is_put_off: true, ..of(64 * MIB) };
        assert_eq!(next(&[failed]), None);
        assert_eq!(next(&[failed, of(16 * MIB)]), Some(1), "it is worth it");
        assert_eq!(next(&[failed, of(MIB)]), None);
        assert_eq!(
            next(&[failed, of(8 * MIB), of(MIB)]),
            Some(1),
            "and this one is for the room that the failed one takes up too"
        );
        assert_eq!(next(&[Unmerged { is_put_off: false, ..failed }, of(16 * MIB)]), Some(0), "it is tried again later");
    }

    proptest! {
        #[test]
        fn parts_are_of_one_size_that_fits(input_bytes in 0u64..1 << 42) {
            let bytes = merge_part_bytes(input_bytes, &MERGE_LIMITS);
            let parts = input_bytes.div_ceil(bytes);
            prop_assert!(bytes <= MERGE_LIMITS.part_bytes);
            prop_assert!(parts <= input_bytes.div_ceil(MERGE_LIMITS.part_bytes).max(1));
        }

        #[test]
        fn no_changes_wait_for_ever_once_nothing_more_is_taken(
            shards in prop::collection::vec((0u64..20 * MIB, 0u64..512 * MIB, any::<bool>()), 1..40),
        ) {
            let of = |(bytes, input_bytes, is_mine)| Unmerged { bytes, input_bytes, is_mine, objects: 1, ..QUIET };
            let mut shards: Vec<Unmerged> = shards.into_iter().map(of).collect();
            // One merge after the other, until more is taken.
            while shards.iter().map(|shard| shard.bytes).sum::<u64>() > MERGE_LIMITS.all_bytes {
                let next = next(&shards);
                prop_assert!(next.is_some());
                let merged = &mut shards[next.unwrap_or(0)];
                (merged.bytes, merged.objects) = (0, 0);
            }
        }
    }
}
