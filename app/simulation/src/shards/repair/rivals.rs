//! Other ways to keep what is asked for: as it is, each record found in memory or by one read of a disk, and asked as the replicas of
//! shards are, in a queue a shard.
//!
//! Where it is not known what would happen, these have the better of it: their indexes take no memory, requests are answered by the copy
//! that keeps memory fullest, and what repair reads and writes takes nothing of requests' disks, links and processors.

use forebay_navigation::Curve;

use super::{BYTES_PER_SEC, INPUT, LOST_SECS, RepairHost, RepairWay, SHARDS, WORKERS, mean};
use crate::shards::setup::SAMPLE_SECS;

/// The part of everything that is lost with a worker.
const LOST: f64 = 1.0 / WORKERS as f64;
/// Shards whose only copy is lost, and those that are left.
const SHARDS_LOST: f64 = SHARDS as f64 * LOST;
const SHARDS_LEFT: f64 = SHARDS as f64 - SHARDS_LOST;
/// Data blocks of a stripe: what is read for each block that is lost.
const BLOCKS: f64 = 10.0;
/// All blocks of a stripe over its data blocks.
const CODED: f64 = 1.2;
/// Ranges a second that the object store gives all workers: 64 in flight of each, 30 ms each.
const STORE_READS: f64 = 11.0 * 64.0 / 0.03 / 1_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ReedSolomon,
    ThreeCopies,
    OneCopy,
}

/// One of them, and what it is asked for.
pub(super) struct Rival {
    kind: Kind,
    /// Requests a second that come to a shard.
    asked: f64,
    /// Requests a second that a shard's queue answers from memory: as with all layers, where records are copied as they are.
    plain: f64,
}

impl Rival {
    pub(super) fn all(curve: &Curve, offered: f64) -> [Self; 3] {
        let (asked, plain) = (offered / SHARDS as f64, 1e6 / curve.service_us(curve.highest()));
        [Kind::ReedSolomon, Kind::ThreeCopies, Kind::OneCopy].map(|kind| Self { kind, asked, plain })
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::ReedSolomon => "Reed-Solomon (10,2)",
            Kind::ThreeCopies => "three copies",
            Kind::OneCopy => "one copy, object store",
        }
    }

    /// What is stored, over the input.
    fn stored(&self) -> f64 {
        match self.kind {
            Kind::ReedSolomon => CODED,
            Kind::ThreeCopies => 3.0,
            Kind::OneCopy => 1.0,
        }
    }

    /// What is moved until all that was lost is stored again, over the input.
    fn moved(&self) -> f64 {
        let read_for_each = if self.kind == Kind::ReedSolomon { BLOCKS } else { 1.0 };
        self.stored() * LOST * read_for_each
    }

    pub(super) fn way(&self, host: RepairHost) -> RepairWay {
        let secs = self.moved() * INPUT / BYTES_PER_SEC;
        let (first, last) = (1 - (LOST_SECS / SAMPLE_SECS) as i32, (secs / SAMPLE_SECS).ceil() as i32);
        let at = |step: i32| f64::from(step) * SAMPLE_SECS;
        // What has come back in the middle of a sample.
        let again = |until: f64| ((until - SAMPLE_SECS / 2.0) / secs).min(1.0);
        let per_sec = |until: f64| if until > 0.0 { self.after(host, again(until)) } else { self.before(host) };
        let answered: Vec<(f64, f64)> = (first..=last).map(at).map(|until| (until, per_sec(until))).collect();
        RepairWay {
            way: self.name(),
            host,
            stored: self.stored(),
            moved: self.moved(),
            repaired_secs: Some(secs),
            restored_secs: Some(secs),
            before: mean(&answered, -LOST_SECS / 2.0, 0.0),
            during: mean(&answered, 0.0, secs),
            offered: self.asked * SHARDS as f64,
            answered,
        }
    }

    /// Answered a second by all workers.
    fn before(&self, host: RepairHost) -> f64 {
        let disk = host.disk_reads * WORKERS as f64 / SHARDS as f64;
        SHARDS as f64 * self.queue(self.plain, disk, missed(host.memory, 1.0))
    }

    /// Answered a second by those that are left once so much of what was lost is there again.
    fn after(&self, host: RepairHost, again: f64) -> f64 {
        let (memory, disk) = (host.memory * (1.0 - LOST), host.disk_reads * (WORKERS - 1) as f64 / SHARDS as f64);
        let there = match self.kind {
            Kind::ThreeCopies => 1.0,
            Kind::ReedSolomon | Kind::OneCopy => 1.0 - LOST + LOST * again,
        };
        let missed = missed(memory, there);
        let left = self.queue(self.plain, disk, missed);
        let elsewhere = match self.kind {
            Kind::ThreeCopies => left,
            Kind::OneCopy => self.asked.min(STORE_READS / SHARDS_LOST),
            Kind::ReedSolomon => {
                // What the other shards leave of all disks.
                let spare = (disk * SHARDS as f64 - left * missed * SHARDS_LEFT) / SHARDS_LOST;
                self.decoded(left, spare, (missed, memory >= CODED))
            }
        };
        SHARDS_LEFT * left + SHARDS_LOST * (again * left + (1.0 - again) * elsewhere)
    }

    /// Requests a second to a lost shard, each of which reads a page of nine data blocks and one parity block that are left.
    fn decoded(&self, left: f64, disk: f64, (missed, is_parity_kept): (f64, bool)) -> f64 {
        let by_processors = (self.plain - left) * SHARDS_LEFT / (BLOCKS * SHARDS_LOST);
        let parity = if is_parity_kept { 0.0 } else { 1.0 };
        self.queue(by_processors, disk, parity + (BLOCKS - 1.0) * missed)
    }

    /// A shard's queue, first come, first served: what its processor, or its part of the disks gives, and no more than comes.
    fn queue(&self, processor: f64, disk: f64, missed: f64) -> f64 {
        let disk = if missed > 0.0 { disk / missed } else { f64::INFINITY };
        self.asked.min(processor).min(disk).max(0.0)
    }
}

/// The part of requests that memory does not answer, of so much that is asked for alike.
fn missed(memory: f64, there: f64) -> f64 {
    (1.0 - memory / there).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::curves::ShardCurve;

    fn ways(host: RepairHost) -> [RepairWay; 3] {
        Rival::all(&ShardCurve::Paper.curve(4.0), 1_984.0).map(|rival| rival.way(host))
    }

    #[test]
    fn reed_solomon_reads_ten_blocks_for_each_that_is_lost_and_the_others_one() {
        let moved = ways(RepairHost::ENOUGH).map(|way| way.moved);
        let expected = [1.2 / 12.0 * 10.0, 3.0 / 12.0, 1.0 / 12.0];
        assert!(moved.iter().zip(expected).all(|(moved, expected)| (moved - expected).abs() < 1e-9), "{moved:?}");
    }

    #[test]
    fn with_enough_memory_hardly_less_is_answered_and_with_less_than_the_input_disks_bound_all() {
        for way in ways(RepairHost::ENOUGH) {
            assert!((way.before / way.offered - 1.0).abs() < 1e-9, "{}: {} before", way.way, way.before);
            assert!(way.during > 0.9 * way.offered, "{}: {} meanwhile", way.way, way.during);
        }
        for way in ways(RepairHost::SHORT) {
            // One in twenty is missed, and 12 disks of 3 reads a second are there.
            assert!((way.before - 720.0).abs() < 1e-6, "{}: {} before", way.way, way.before);
            assert!(way.during < way.before, "{}: {} meanwhile", way.way, way.during);
        }
    }

    #[test]
    fn blocks_are_decoded_with_what_other_shards_leave_of_disks_and_processors() {
        let [coded, ..] = Rival::all(&ShardCurve::Paper.curve(4.0), 1_984.0);
        // 22 shards are asked for all that they can be, and miss one in twenty of it; 11 disks of 16 reads a second are there.
        let (asked, reads) = (1_984.0 / 24.0, 11.0 * 16.0);
        let spare = (reads - 22.0 * asked * 0.05) / 2.0;
        let expected = 22.0 * asked + 2.0 * spare / (1.0 + 9.0 * 0.05);
        let answered = coded.after(RepairHost::SHORT_QUICK, 0.0);
        assert!((answered - expected).abs() < 1e-6, "{answered} where {expected} are due");
    }

    #[test]
    fn three_copies_have_a_worker_less_of_memory_for_as_much_data() {
        let [_, three, _] = ways(RepairHost::SHORT);
        let missed = 1.0 - 0.95 * 11.0 / 12.0;
        assert!((three.during - 11.0 * 3.0 / missed).abs() < 1e-6, "{}", three.during);
    }
}
