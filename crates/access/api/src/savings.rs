//! What shared storage was spared.

use std::time::Duration;

use forebay_protocol::{ClusterStatus, WorkerReport};
use forebay_types::format_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::storage_requests;

const GIGABYTE: f64 = 1e9;
/// What anything may cost: above that sums would be no numbers at some time.
const PRICE_MAX: f64 = 1e12;

/// What shared storage costs, in any currency.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// A gigabyte (10^9 bytes) that leaves it.
    #[schemars(range(min = 0, max = PRICE_MAX), example = 0.02)]
    pub per_gb: f64,
    /// A thousand requests.
    #[schemars(range(min = 0, max = PRICE_MAX), example = 0.0004)]
    pub per_1000_requests: f64,
}

impl Price {
    /// Prices are numbers, from zero to a million millions.
    pub fn is_one(&self) -> bool {
        [self.per_gb, self.per_1000_requests].iter().all(|price| (0.0..=PRICE_MAX).contains(price))
    }
}

/// Reads against what they took of shared storage, since the workers started. Loads and what is brought ahead count as taken.
#[derive(Debug, JsonSchema, PartialEq, Serialize)]
pub struct Savings {
    reads: u64,
    served_bytes: u64,
    /// Of these, bytes that were in a tier when they were asked for.
    hit_bytes: u64,
    storage_requests: u64,
    storage_bytes: u64,
    /// What was served and not fetched; 0 where more was fetched than read so far.
    saved_bytes: u64,
    saved_requests: u64,
    /// How much longer all reads together would have taken, had those from the tiers taken as long as those that waited for shared storage; null
    /// as long as none has waited.
    saved_seconds: Option<f64>,
    saved_money: f64,
}

impl Savings {
    /// Of what a coordinator says, at a price.
    pub fn of(status: &ClusterStatus, price: Price) -> Self {
        let workers = || status.workers.iter().map(|(_, _, report)| report);
        let served_bytes = together(workers().map(|report| report.bytes_served));
        let reads = together(workers().map(|report| report.reads));
        let storage_bytes = together(status.mounts.iter().map(|mount| mount.counters.bytes_in));
        let storage_requests = together(status.mounts.iter().map(|mount| storage_requests(&mount.counters)));
        let (saved_bytes, saved_requests) = (served_bytes.saturating_sub(storage_bytes), reads.saturating_sub(storage_requests));
        debug_assert!(saved_bytes <= served_bytes && saved_requests <= reads, "no more is saved than was asked for");
        // Those of a release before this one say of no read what it took.
        let telling = status.workers.iter().filter(|(info, ..)| info.protocol > 0).map(|(_, _, report)| report);
        let money = saved_bytes as f64 / GIGABYTE * price.per_gb + saved_requests as f64 / 1000.0 * price.per_1000_requests;
        Self {
            reads,
            served_bytes,
            hit_bytes: together(workers().map(|report| report.bytes_hit)),
            storage_requests,
            storage_bytes,
            saved_bytes,
            saved_requests,
            saved_seconds: saved_seconds(telling),
            saved_money: money,
        }
    }

    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let bytes = forebay_types::format_bytes;
        let share = (u128::from(self.hit_bytes) * 100).checked_div(u128::from(self.served_bytes)).unwrap_or(0);
        // Without a price it is worth nothing that could be said.
        let worth = if self.saved_money > 0.0 { format!(", worth {:.2}", self.saved_money) } else { String::new() };
        let mut lines = vec![
            format!("served        {} in {} reads, {share} % of the bytes from the tiers", bytes(self.served_bytes), self.reads),
            format!("from storage  {} in {} requests", bytes(self.storage_bytes), self.storage_requests),
            format!("saved         {} and {} requests{worth}", bytes(self.saved_bytes), self.saved_requests),
        ];
        let waiting = self.saved_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.round()).ok());
        lines.extend(waiting.map(|time| format!("less waiting  {}, of all readers together", format_duration(time))));
        lines
    }
}

/// All of what workers report, whatever that is.
fn together(of_each: impl Iterator<Item = u64>) -> u64 {
    of_each.fold(0, u64::saturating_add)
}

/// By the mean of the reads that waited.
fn saved_seconds<'a>(workers: impl Iterator<Item = &'a WorkerReport> + Clone) -> Option<f64> {
    let sum = |of: fn(&WorkerReport) -> u64| workers.clone().map(|report| of(report) as f64).sum::<f64>();
    let (waited, took) = (sum(|report| report.storage_reads), sum(|report| report.storage_read_us));
    let hits = sum(|report| report.reads.saturating_sub(report.storage_reads));
    (waited > 0.0).then(|| (hits * (took / waited) - sum(|report| report.tier_read_us)).max(0.0) / 1e6)
}

#[cfg(test)]
mod tests {
    use forebay_protocol::{MountStatus, PROTOCOL_VERSION, StorageCounters, WorkerInfo, WorkerState};
    use forebay_types::{HostId, Mount, MountId, MountOptions, WorkerId};

    use super::*;

    fn worker() -> WorkerInfo {
        WorkerInfo { protocol: PROTOCOL_VERSION, ..WorkerInfo::new(WorkerId(1), HostId(String::new()), "") }
    }

    fn cluster(served: u64, reads: u64, received: u64, gets: u64) -> ClusterStatus {
        let report = WorkerReport { reads, bytes_served: served, bytes_hit: served / 2, ..WorkerReport::default() };
        let (name, url) = ("lake".parse().unwrap(), "s3://lake".to_string());
        let mount = Mount { id: MountId(1), name, url, options: MountOptions::default() };
        let counters = StorageCounters { gets, bytes_in: received, ..StorageCounters::default() };
        let (mounts, workers) = (vec![MountStatus { mount, counters }], vec![(worker(), WorkerState::Live, report)]);
        ClusterStatus { epoch: 1, mounts, workers, ..ClusterStatus::default() }
    }

    #[test]
    fn what_was_served_and_not_fetched_is_saved() {
        let saved =
            Savings::of(&cluster(5_000_000_000, 4000, 1_000_000_000, 1000), Price { per_gb: 0.1, per_1000_requests: 2.0 });
        assert_eq!((saved.saved_bytes, saved.saved_requests, saved.hit_bytes), (4_000_000_000, 3000, 2_500_000_000));
        assert!((saved.saved_money - 6.4).abs() < 1e-9, "{saved:?}");
        let loaded = Savings::of(&cluster(0, 0, 1000, 1), Price::default());
        assert_eq!((loaded.saved_bytes, loaded.saved_money), (0, 0.0), "what was only loaded has saved nothing yet");
        assert!(saved.lines()[2].ends_with("3000 requests, worth 6.40"), "{:?}", saved.lines());
        assert!(loaded.lines()[2].ends_with("0 requests"), "nobody has named a price: {:?}", loaded.lines());
    }

    #[test]
    fn what_workers_report_adds_up_however_large_it_is() {
        let mut cluster = cluster(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        cluster.mounts[0].counters.heads = 1;
        let (mount, worker) = (cluster.mounts[0].clone(), cluster.workers[0].clone());
        cluster.mounts.push(mount);
        cluster.workers.push(worker);
        let saved = Savings::of(&cluster, Price::default());
        let all = [saved.served_bytes, saved.reads, saved.storage_bytes, saved.storage_requests];
        assert_eq!((all, saved.saved_bytes, saved.saved_requests), ([u64::MAX; 4], 0, 0));
        assert!(saved.lines()[0].contains(" 99 % "), "{:?}", saved.lines());
    }

    #[test]
    fn reads_from_the_tiers_save_the_time_that_others_waited() {
        let mut cluster = cluster(100, 1000, 10, 1);
        let of = |cluster: &ClusterStatus| Savings::of(cluster, Price::default());
        assert_eq!(of(&cluster).saved_seconds, None, "none has waited");
        let report = &mut cluster.workers[0].2;
        (report.storage_reads, report.storage_read_us, report.tier_read_us) = (10, 500_000, 1_000_000);
        // 990 reads would have taken 50 ms each, and took a second.
        let saved = of(&cluster);
        assert_eq!(saved.saved_seconds, Some(48.5));
        assert_eq!(saved.lines().last().unwrap(), "less waiting  49s, of all readers together");
        let old =
            (WorkerInfo { protocol: 0, ..worker() }, WorkerState::Live, WorkerReport { reads: 1000, ..WorkerReport::default() });
        cluster.workers.push(old);
        assert_eq!(of(&cluster).saved_seconds, Some(48.5), "of its reads nothing is known");
        cluster.workers[0].2.tier_read_us = u64::MAX;
        assert_eq!(of(&cluster).saved_seconds, Some(0.0));
    }

    #[test]
    fn prices_are_numbers_from_0_to_what_sums_stand() {
        let is_one = |per_gb| Price { per_gb, per_1000_requests: 0.0 }.is_one();
        assert!(is_one(0.0) && is_one(0.09) && is_one(PRICE_MAX));
        assert!([-1.0, f64::NAN, f64::INFINITY, 1e300].iter().all(|price| !is_one(*price)));
        let most = Price { per_gb: PRICE_MAX, per_1000_requests: PRICE_MAX };
        assert!(Savings::of(&cluster(u64::MAX, u64::MAX, 0, 0), most).saved_money.is_finite(), "which JSON can say");
    }
}
