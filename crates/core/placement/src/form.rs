//! Whether a column of a file is worth keeping decoded.

/// What reading and decoding cost on one worker, as measured there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormCosts {
    /// Bytes a second that a core reads from the tier.
    pub tier_bytes_per_sec: f64,
    /// Bytes of the decoded form that a core makes a second.
    pub decode_bytes_per_sec: f64,
}

/// A column of a row group that readers ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormCandidate {
    /// Bytes that the file has of it.
    pub raw_bytes: u64,
    /// Bytes of its decoded form.
    pub decoded_bytes: u64,
    /// Operations that have asked for it, aged: half of what a window counted is left after the next one.
    pub operations: f64,
}

/// The tier that would hold the decoded form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormRoom {
    /// Bytes of decoded forms that it may hold.
    pub room_bytes: u64,
    /// Bytes of them that it holds already.
    pub form_bytes: u64,
    /// Seconds that each byte of it saves in a second as a block of the cache, at the margin: some of these go for the form.
    pub cache_saves: f64,
}

/// Share of a tier that decoded forms may take until something is measured: what is raw serves everyone, what is decoded only engines.
const FORM_SHARE: f64 = 0.5;
/// Seconds that operations are counted of, about.
const WINDOW_SECS: f64 = 60.0;

impl FormRoom {
    /// Bytes of decoded forms that a tier of this capacity may hold until it is measured what they save.
    pub fn first_bytes(capacity_bytes: u64) -> u64 {
        (capacity_bytes as f64 * FORM_SHARE) as u64
    }
}

impl FormCosts {
    /// Seconds of a core that a read of the decoded form saves against reading the raw one and decoding it; below 0 where
    /// the tier is slower than the decoder (Albis, section 5: an uncompressed form pays where the bytes come faster than
    /// about 1 GB/s a core).
    pub fn saved_secs(&self, candidate: &FormCandidate) -> f64 {
        let decode = candidate.decoded_bytes as f64 / self.decode_bytes_per_sec;
        let more_bytes = candidate.decoded_bytes as f64 - candidate.raw_bytes as f64;
        decode - more_bytes / self.tier_bytes_per_sec
    }

    /// Seconds of a core that decoding takes.
    fn cost_secs(&self, candidate: &FormCandidate) -> f64 {
        candidate.decoded_bytes as f64 / self.decode_bytes_per_sec
    }
}

/// Whether decoding a column once pays: the tier has room for it within its share, and as many reads as there were lately save more
/// than the decoding costs, and more than the blocks that go for it would save. A read is faster only when all columns that it reads
/// of the row group are decoded, so `others`, the columns that are read together with this one, count on both sides: a column that is
/// hardly worth it alone must not keep the rest raw.
pub fn form_pays(own: (FormCosts, FormCandidate), others: &[(FormCosts, FormCandidate)], room: FormRoom) -> bool {
    let (_, column) = own;
    let fits = room.form_bytes.saturating_add(column.decoded_bytes) <= room.room_bytes;
    let all = || others.iter().chain([&own]);
    let saved: f64 = all().map(|(costs, candidate)| costs.saved_secs(candidate)).sum();
    let cost: f64 = all().map(|(costs, candidate)| costs.cost_secs(candidate)).sum();
    debug_assert!(room.cache_saves >= 0.0, "blocks cost nobody time");
    let displaced: f64 = all().map(|(_, candidate)| candidate.decoded_bytes as f64 * room.cache_saves * WINDOW_SECS).sum();
    fits && column.decoded_bytes > 0 && column.operations * saved >= cost + displaced
}

/// What a column would save in a second that pays and lacks nothing but room, and the bytes that it takes; none of others. What is ordered
/// is not counted: whoever orders knows the room.
pub fn form_misses(own: (FormCosts, FormCandidate), others: &[(FormCosts, FormCandidate)], room: FormRoom) -> Option<(f64, u64)> {
    let (costs, column) = own;
    let lacks_room = column.operations.is_finite() && !form_pays(own, others, room);
    let saved = column.operations * costs.saved_secs(&column).max(0.0) / WINDOW_SECS;
    debug_assert!(!lacks_room || saved.is_finite(), "{column:?} saves {saved} s a second");
    (lacks_room && form_pays(own, others, FormRoom { room_bytes: u64::MAX, ..room })).then_some((saved, column.decoded_bytes))
}

#[cfg(test)]
mod tests {
    use super::{FormCandidate, FormCosts, FormRoom, form_misses, form_pays};

    const DRAM: FormCosts = FormCosts { tier_bytes_per_sec: 8e9, decode_bytes_per_sec: 1e9 };
    const ROOM: FormRoom = FormRoom { room_bytes: 512 << 20, form_bytes: 0, cache_saves: 0.0 };

    fn read(operations: f64) -> FormCandidate {
        FormCandidate { raw_bytes: 1 << 20, decoded_bytes: 4 << 20, operations }
    }

    fn pays(costs: FormCosts, candidate: FormCandidate, room: FormRoom) -> bool {
        form_pays((costs, candidate), &[], room)
    }

    #[test]
    fn what_is_read_again_from_memory_pays() {
        assert!(!pays(DRAM, read(1.0), ROOM), "read once, it may never be read again");
        assert!(pays(DRAM, read(2.0), ROOM));
    }

    #[test]
    fn a_slow_disk_never_pays() {
        let disk = FormCosts { tier_bytes_per_sec: 0.5e9, ..DRAM };
        assert!(disk.saved_secs(&read(1.0)) < 0.0);
        assert!(!pays(disk, read(1e6), ROOM));
        let fast = FormCosts { tier_bytes_per_sec: 1.1e9, ..DRAM };
        assert!(fast.saved_secs(&read(1.0)) > 0.0, "above the decoder's speed it saves time");
    }

    #[test]
    fn more_reads_are_needed_where_less_is_saved() {
        let costs = FormCosts { tier_bytes_per_sec: 1.5e9, decode_bytes_per_sec: 1e9 };
        assert!(!pays(costs, read(1.9), ROOM));
        assert!(pays(costs, read(2.1), ROOM));
    }

    #[test]
    fn forms_keep_to_their_share_of_the_tier() {
        let full = FormRoom { form_bytes: (512 << 20) - 1, ..ROOM };
        assert!(!pays(DRAM, read(9.0), full));
        assert!(!pays(DRAM, FormCandidate { decoded_bytes: 0, ..read(9.0) }, ROOM));
        assert_eq!(FormRoom::first_bytes(1 << 30), 512 << 20);
    }

    #[test]
    fn a_column_that_only_lacks_room_says_what_more_of_it_would_save() {
        let full = FormRoom { form_bytes: 512 << 20, ..ROOM };
        let misses = |operations, room| form_misses((DRAM, read(operations)), &[], room);
        let (saved, bytes) = misses(6.0, full).unwrap();
        let each = DRAM.saved_secs(&read(6.0));
        assert!(bytes == 4 << 20 && (saved - 6.0 * each / 60.0).abs() < 1e-12, "{saved} s a second in {bytes} bytes");
        assert_eq!(misses(6.0, ROOM), None, "it has room");
        assert_eq!(misses(1.0, full), None, "it would not pay with any");
        assert_eq!(misses(f64::INFINITY, full), None, "it is ordered");
    }

    #[test]
    fn a_form_takes_no_bytes_of_blocks_that_save_more() {
        // Four reads save 15 ms, and decoding takes 4; 4 MiB of blocks save 5 ms in the same time, then 25.
        let room = |cache_saves| FormRoom { cache_saves, ..ROOM };
        assert!(pays(DRAM, read(4.0), room(2e-11)));
        assert!(!pays(DRAM, read(4.0), room(1e-10)));
        assert!(pays(DRAM, read(10.0), room(1e-10)), "unless it is read more often");
        assert!(pays(DRAM, read(f64::INFINITY), room(1.0)), "what is ordered is made");
    }

    #[test]
    fn columns_that_are_read_together_decide_together() {
        // A flag of a bit in the file and sixteen bytes in memory, made as fast as it is read.
        let flag = FormCandidate { raw_bytes: 8 << 10, decoded_bytes: 1 << 20, operations: 3.0 };
        let quick = FormCosts { decode_bytes_per_sec: 8e9, ..DRAM };
        assert!(!pays(quick, flag, ROOM));
        assert!(form_pays((quick, flag), &[(DRAM, read(3.0))], ROOM), "else the other one stays raw for it");
        assert!(form_pays((DRAM, read(3.0)), &[(quick, flag)], ROOM));
        assert!(!form_pays((quick, flag), &[(quick, read(3.0))], ROOM));
    }
}
