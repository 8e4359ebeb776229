//! One of twelve workers is lost (table 1, figure 7): what is moved until all is there again, how long that takes and what is answered
//! meanwhile, of replicas of 0.9x, 0.5x and 0.5x beside Reed-Solomon (10,2), three copies, and one copy with an object store behind it.

mod report;
mod rivals;

use forebay_navigation::{Curve, Level};
use forebay_types::{Error, Result};
use serde::Serialize;

use self::rivals::Rival;
use super::arrivals::Load;
use super::curves::{INPUT_BYTES, ShardCurve};
use super::engine::Engine;
use super::outcome::ShardsRun;
use super::scenarios::PER_SEC;
use super::setup::{Loss, Place, SAMPLE_SECS, Setup};
pub use report::{repair_chart, repair_csv, repair_table};

const WORKERS: usize = 12;
const SHARDS: usize = 24;
/// Bytes of all shards' input.
const INPUT: f64 = SHARDS as f64 * INPUT_BYTES as f64;
/// The level of the largest replica, 0.9x; the two others have the lowest one, 0.5x.
const LARGE: u32 = 8;
/// How busy the largest replica would be by itself before the loss.
const BUSY: f64 = 0.9;
/// When the worker is lost, and when the run ends.
const LOST_SECS: f64 = 200.0;
const END_SECS: f64 = 800.0;
/// Bytes a second that repair may move, whoever repairs: a base is copied in 20 seconds. Layers take half a minute whatever this is, so that
/// on links some 25 times as quick Reed-Solomon would be done as soon.
const BYTES_PER_SEC: f64 = 25.0;
/// Bases that may be on their way at once.
const IN_FLIGHT: u64 = 2;
/// Pages that a get reads of a base that is on a disk.
const PAGES: f64 = 4.0;

/// What workers have of memory and disks. A request of the model is a thousand gets of a worker's core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RepairHost {
    /// Memory of all workers, over the input.
    pub memory: f64,
    /// Reads a second of a worker's disk; from memory a core answers 160 requests.
    pub disk_reads: f64,
}

impl RepairHost {
    /// All that anyone stores is in memory.
    pub const ENOUGH: Self = Self { memory: 4.0, disk_reads: 3.0 };
    /// The replicas of 0.9x are in memory, and nothing that is as large as the input is; 3,000 reads a second, which volumes in the cloud
    /// give where nothing else is ordered.
    pub const SHORT: Self = Self { memory: 0.95, disk_reads: 3.0 };
    /// The same, and 16,000 reads a second. From some 23,000 on, which drives within a server give by far, three copies answer all that comes.
    pub const SHORT_QUICK: Self = Self { memory: 0.95, disk_reads: 16.0 };

    /// Whether all replicas are in memory after the loss, with room for the layers that come in the place of lost ones.
    fn is_enough(self) -> bool {
        self.memory >= 3.0
    }

    fn validate(self) -> Result<()> {
        let Self { memory, disk_reads } = self;
        if !(0.9..=100.0).contains(&memory) || !(0.01..=10_000.0).contains(&disk_reads) {
            return Err(Error::invalid(format!(
                "workers with memory for {memory} of the input and {disk_reads} reads a second can't be simulated: use 0.9 or more, and 0.01 \
                 or more"
            )));
        }
        Ok(())
    }
}

/// What a loss is for one way to keep shards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepairWay {
    /// Which way.
    pub way: &'static str,
    /// What workers have.
    pub host: RepairHost,
    /// What it stores, over the input.
    pub stored: f64,
    /// What is moved until all is there again, over the input.
    pub moved: f64,
    /// Seconds from the loss until all that was lost is stored again; none: never.
    pub repaired_secs: Option<f64>,
    /// Seconds from the loss until it answers as before, too, where memory has room for that; none: never.
    pub restored_secs: Option<f64>,
    /// Answered a second before the loss, of [`Self::offered`].
    pub before: f64,
    /// Answered a second from the loss until it is repaired, or restored where there is room.
    pub during: f64,
    /// Requests a second that come.
    pub offered: f64,
    /// Seconds from the loss, and what was answered a second up to then.
    pub answered: Vec<(f64, f64)>,
}

/// The replicas of 0.9x, 0.5x and 0.5x first, then Reed-Solomon (10,2), three copies, and one copy with an object store behind it; all
/// are asked for as much.
/// `Invalid`: workers whose memory does not hold the replicas of 0.9x, or disks that can't be.
pub fn shards_repair(host: RepairHost, seed: u64) -> Result<Vec<RepairWay>> {
    host.validate()?;
    let setup = setup(host, seed)?;
    let offered: f64 = setup.load.phases[0].per_sec.iter().sum();
    let (queues, record) = Engine::new(&setup).run();
    let run = record.outcome("repair", &setup, LOST_SECS, &queues);
    let rivals = Rival::all(&setup.curve, offered).map(|rival| rival.way(host));
    Ok(std::iter::once(ours((host, &setup), &run, offered)).chain(rivals).collect())
}

/// Each worker has two replicas of 0.9x and four of 0.5x.
fn setup(host: RepairHost, seed: u64) -> Result<Setup> {
    let curve = curve(host)?;
    let per_sec = BUSY * 1e6 / curve.service_us(LARGE);
    let load = Load::steady(vec![per_sec; SHARDS]);
    let place = |shard: usize, copy: usize| {
        let apart = [0, 1, 4][copy] + copy.min(1) * (shard / WORKERS);
        Place { shard, worker: (shard + apart) % WORKERS, start: if copy == 0 { LARGE } else { 0 } }
    };
    let base = curve.bytes(0);
    // Disks hold whatever comes; memory bounds layers alone.
    let room = RepairHost::ENOUGH.memory * INPUT / WORKERS as f64;
    let loss = Loss { secs: LOST_SECS, worker: 0, bytes_per_sec: BYTES_PER_SEC, in_flight_bytes_max: IN_FLIGHT * base };
    Ok(Setup {
        places: (0..SHARDS).flat_map(|shard| (0..3).map(move |copy| place(shard, copy))).collect(),
        room_bytes: vec![room as u64; WORKERS],
        // Without memory for more layers none are made: what is lost of them stays so.
        navigates: host.is_enough(),
        loss: Some(loss),
        end_secs: END_SECS,
        ..Setup::one_worker(curve, SHARDS, 0, load, seed)
    })
}

/// The paper's curve; where bases are on disks they answer what these read. Each has a disk to itself: but for the bases of the two shards
/// whose 0.9x is lost, which are on different workers, next to nothing is asked of one.
fn curve(host: RepairHost) -> Result<Curve> {
    let curve = ShardCurve::Paper.curve(PER_SEC);
    let slowest_us = if host.is_enough() { 0.0 } else { PAGES * 1e6 / host.disk_reads };
    let level = |level: u32| {
        let (bytes, service_us) = (curve.bytes(level), curve.service_us(level));
        Level { bytes, service_us: if level == 0 { service_us.max(slowest_us) } else { service_us } }
    };
    Curve::new((0..=curve.highest()).map(level).collect())
}

fn ours((host, setup): (RepairHost, &Setup), run: &ShardsRun, offered: f64) -> RepairWay {
    let stored: u64 = setup.places.iter().map(|place| setup.curve.bytes(place.start)).sum();
    let lost = setup.places.iter().filter(|place| place.worker == 0).count();
    let restored_secs = if setup.navigates { restored_secs(setup, run) } else { None };
    let over = if setup.navigates { restored_secs } else { run.repaired_secs };
    let answered: Vec<(f64, f64)> = run.samples.iter().skip(1).map(|sample| (sample.secs - LOST_SECS, sample.answered)).collect();
    RepairWay {
        way: "0.9x, 0.5x, 0.5x",
        host,
        stored: stored as f64 / INPUT,
        moved: (lost as u64 * setup.curve.bytes(0)) as f64 / INPUT,
        repaired_secs: run.repaired_secs,
        restored_secs,
        before: mean(&answered, -LOST_SECS / 2.0, 0.0),
        during: mean(&answered, 0.0, over.unwrap_or(END_SECS - LOST_SECS)),
        offered,
        answered,
    }
}

/// When the copies that came in the place of replicas of 0.9x had their layers, and all copies were there.
fn restored_secs(setup: &Setup, run: &ShardsRun) -> Option<f64> {
    let lost = setup.places.iter().filter(|place| place.worker == 0 && place.start == LARGE).map(|place| place.shard);
    let again = |shard: usize| {
        let copy = run.replicas.iter().find(|own| own.shard == shard && own.start == LARGE)?;
        let is_it = |moved: &&super::ShardMove| {
            (moved.worker, moved.shard) == (copy.worker, shard as u64) && moved.to >= LARGE && moved.secs > LOST_SECS
        };
        Some(run.moves.iter().find(is_it)?.secs + setup.build_secs - LOST_SECS)
    };
    let layers = lost.map(again).try_fold(0.0, |last: f64, secs| Some(last.max(secs?)))?;
    Some(layers.max(run.repaired_secs?))
}

/// What was answered a second between two times.
fn mean(answered: &[(f64, f64)], after: f64, until: f64) -> f64 {
    // Of a time that ends within a sample all of that counts.
    let until = (until / SAMPLE_SECS).ceil() * SAMPLE_SECS;
    let within: Vec<f64> =
        answered.iter().filter(|(secs, _)| *secs > after && *secs <= until).map(|(_, per_sec)| *per_sec).collect();
    within.iter().sum::<f64>() / within.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_six_replicas_and_no_two_of_one_shard() {
        let places = setup(RepairHost::ENOUGH, 1).unwrap().places;
        for worker in 0..WORKERS {
            let shards: Vec<usize> = places.iter().filter(|place| place.worker == worker).map(|place| place.shard).collect();
            let once: std::collections::BTreeSet<&usize> = shards.iter().collect();
            assert_eq!((shards.len(), once.len()), (6, 6), "worker {worker} has {shards:?}");
            let large = places.iter().filter(|place| place.worker == worker && place.start == LARGE).count();
            assert_eq!(large, 2, "worker {worker}");
        }
    }

    #[test]
    fn a_base_on_a_disk_answers_what_the_disk_reads_and_no_more_than_from_memory() {
        let per_sec = |host| 1e6 / curve(host).unwrap().service_us(0);
        assert!((per_sec(RepairHost::ENOUGH) - PER_SEC).abs() < 1e-9);
        assert!((per_sec(RepairHost::SHORT) - 3.0 / PAGES).abs() < 1e-9);
        assert!((per_sec(RepairHost { memory: 0.95, disk_reads: 1_000.0 }) - PER_SEC).abs() < 1e-9);
    }

    #[test]
    fn what_ends_within_a_sample_is_told_by_all_of_it() {
        let answered = [(-10.0, 4.0), (0.0, 6.0), (10.0, 1.0), (20.0, 3.0), (30.0, 9.0)];
        assert_eq!((mean(&answered, -20.0, 0.0), mean(&answered, 0.0, 12.0), mean(&answered, 0.0, 30.0)), (5.0, 2.0, 13.0 / 3.0));
    }
}
