//! All metrics that a process of Forebay prints, each once: the text before a row is its help.
//!
//! Names are Prometheus': units are bytes and seconds and stand at the end, before `_total` of what only grows.

use crate::family::{Counters, Gauges, Histograms};
use crate::row::{Buckets, Kind, Row};
use crate::write::Listed;

/// From what memory takes to what a store takes that hardly answers: 4 us to 33 s, each twice the one before.
const READS: Buckets = Buckets { first_ns: 4_000, factor: 2, count: 24 };
/// What goes over a network to somebody else's store: 1 ms to 65 s.
const REQUESTS: Buckets = Buckets { first_ns: 1_000_000, factor: 2, count: 17 };
/// What mostly is a matter of memory, by many kinds: 1 us to 17 s, each four times the one before.
const CALLS: Buckets = Buckets { first_ns: 1_000, factor: 4, count: 13 };

/// Makes a row of each entry, and the list of all of them. An entry's documentation is its help.
macro_rules! table {
    ($($(#[doc = $help:literal])+ $row:ident: $families:ident$(($buckets:ident))? = $name:literal [$($label:literal),*];)*) => {
        $(
            $(#[doc = $help])+
            pub static $row: $families<{ <[&str]>::len(&[$($label),*]) }> = $families::new(Row {
                name: $name,
                kind: kind!($families $($buckets)?),
                help: concat!($($help),+).trim_ascii(),
                labels: &[$($label),*],
            });
        )*

        pub(crate) const TABLE: &[&dyn Listed] = &[$(&$row),*];
    };
}

macro_rules! kind {
    (Counters) => {
        Kind::Counter
    };
    (Gauges) => {
        Kind::Gauge
    };
    (Histograms $buckets:ident) => {
        Kind::Histogram($buckets)
    };
}

table! {
    /// Always 1; what runs is in the label.
    BUILD_INFO: Gauges = "forebay_build_info" ["version"];
    /// Tasks of the process that have begun and not ended, but for parts of queries: at rest as many as there were at rest before.
    PROCESS_TASKS: Gauges = "forebay_process_tasks" [];

    /// Bytes that a tier can hold.
    WORKER_TIER_CAPACITY_BYTES: Gauges = "forebay_worker_tier_capacity_bytes" ["tier", "worker"];
    /// Bytes that a tier holds.
    WORKER_TIER_USED_BYTES: Gauges = "forebay_worker_tier_used_bytes" ["tier", "worker"];
    /// Bytes of a tier that pins and readers in place hold.
    WORKER_TIER_PINNED_BYTES: Gauges = "forebay_worker_tier_pinned_bytes" ["tier", "worker"];
    /// Bytes of the DRAM tier that decoded columns may take.
    WORKER_DECODED_ROOM_BYTES: Gauges = "forebay_worker_decoded_room_bytes" ["worker"];
    /// Segments of which something is held.
    WORKER_SEGMENTS: Gauges = "forebay_worker_segments" ["worker"];
    /// Bytes that are being read in place.
    WORKER_IN_PLACE_PINNED_BYTES: Gauges = "forebay_worker_in_place_pinned_bytes" ["worker"];
    /// Temporary nodes.
    WORKER_TEMPORARY_NODES: Gauges = "forebay_worker_temporary_nodes" ["worker"];
    /// Bytes of temporary nodes: their names, values and blocks.
    WORKER_TEMPORARY_BYTES: Gauges = "forebay_worker_temporary_bytes" ["worker"];
    /// Conditions that `forebay status` spells out.
    WORKER_WARNINGS: Gauges = "forebay_worker_warnings" ["worker"];
    /// Disks of the disk tier that are left out, because they are not there or fail.
    WORKER_DISKS_OUT: Gauges = "forebay_worker_disks_out" ["worker"];

    /// Reads that were answered, those in place counted in.
    WORKER_READS: Counters = "forebay_worker_reads_total" [];
    /// Bytes that readers were given, in place too.
    WORKER_SERVED_BYTES: Counters = "forebay_worker_served_bytes_total" [];
    /// Of these, bytes that were in a tier when asked for.
    WORKER_HIT_BYTES: Counters = "forebay_worker_hit_bytes_total" [];
    /// How long reads took that were asked for, by the slowest place that bytes came from: `dram`, `disk` or `storage`.
    WORKER_READ_SECONDS: Histograms(READS) = "forebay_worker_read_seconds" ["served"];
    /// Bytes that came from shared storage.
    WORKER_FETCHED_BYTES: Counters = "forebay_worker_fetched_bytes_total" [];
    /// Of these, bytes that went to who asked without staying in a tier.
    WORKER_PASSED_THROUGH_BYTES: Counters = "forebay_worker_passed_through_bytes_total" [];
    /// Of these, bytes that another worker fetched too, as far as is known here: it was told to.
    WORKER_FETCHED_TWICE_BYTES: Counters = "forebay_worker_fetched_twice_bytes_total" [];
    /// Bytes that were written to shared storage.
    WORKER_WRITTEN_BYTES: Counters = "forebay_worker_written_bytes_total" [];
    /// Objects that listings found new or changed.
    WORKER_DISCOVERED_OBJECTS: Counters = "forebay_worker_discovered_objects_total" [];
    /// Requests that were told to come later, as too much waits for shared storage: `demand`, what is brought `ahead`, or `background` work.
    WORKER_SHED: Counters = "forebay_worker_shed_total" ["class"];
    /// Requests to the shared storage of each mount: `get`, `head`, `list`, `put` or `delete`.
    WORKER_STORAGE_REQUESTS: Counters = "forebay_worker_storage_requests_total" ["mount", "method", "worker"];
    /// Of these, requests that were made because one before had failed.
    WORKER_STORAGE_RETRIES: Counters = "forebay_worker_storage_retries_total" ["mount", "worker"];
    /// Bytes of objects that came from the shared storage of each mount.
    WORKER_STORAGE_RECEIVED_BYTES: Counters = "forebay_worker_storage_received_bytes_total" ["mount", "worker"];
    /// Bytes of objects that were sent there.
    WORKER_STORAGE_SENT_BYTES: Counters = "forebay_worker_storage_sent_bytes_total" ["mount", "worker"];

    /// Replicas that were brought here, from a `peer` or from `storage`.
    WORKER_REPLICAS_LOADED: Counters = "forebay_worker_replicas_loaded_total" ["from"];
    /// Replicas that could not be brought.
    WORKER_REPLICAS_FAILED: Counters = "forebay_worker_replicas_failed_total" [];
    /// Replicas that were dropped by order.
    WORKER_REPLICAS_DROPPED: Counters = "forebay_worker_replicas_dropped_total" [];
    /// Bytes that were copied from other workers.
    WORKER_COPIED_BYTES: Counters = "forebay_worker_copied_bytes_total" [];
    /// Copies of other workers that did not verify, and were fetched elsewhere.
    WORKER_COPIES_DAMAGED: Counters = "forebay_worker_copies_damaged_total" [];
    /// Bytes that were dropped because nobody is sent to them.
    WORKER_GARBAGE_BYTES: Counters = "forebay_worker_garbage_bytes_total" [];
    /// Bytes of columns that were decoded, in the table form.
    WORKER_DECODED_BYTES: Counters = "forebay_worker_decoded_bytes_total" [];
    /// Bytes of columns that were kept compressed in the disk tier.
    WORKER_PACKED_BYTES: Counters = "forebay_worker_packed_bytes_total" [];
    /// Bytes of columns that came back from there instead of being decoded.
    WORKER_BROUGHT_BACK_BYTES: Counters = "forebay_worker_brought_back_bytes_total" [];
    /// Bytes of rows that were selected of decoded columns for readers of other hosts.
    WORKER_SELECTED_BYTES: Counters = "forebay_worker_selected_bytes_total" [];
    /// Bytes of files that these did not have to be sent instead, by what they say.
    WORKER_SPARED_BYTES: Counters = "forebay_worker_spared_bytes_total" [];
    /// Bytes of the disk tier that were verified in the background.
    WORKER_SCRUBBED_BYTES: Counters = "forebay_worker_scrubbed_bytes_total" [];
    /// Pages that did not verify there and were dropped.
    WORKER_BAD_PAGES: Counters = "forebay_worker_bad_pages_total" [];

    /// Shards of datasets that came from shared storage.
    WORKER_SHARDS_BROUGHT: Counters = "forebay_worker_shards_brought_total" [];
    /// Bytes of these.
    WORKER_SHARD_BROUGHT_BYTES: Counters = "forebay_worker_shard_brought_bytes_total" [];
    /// Questions to shards that no disk of the worker had, answered by ranges of their cold files.
    WORKER_SHARD_FAR: Counters = "forebay_worker_shard_far_answers_total" [];
    /// Changes of the layers that a shard is kept with.
    WORKER_SHARDS_LAYERED: Counters = "forebay_worker_shards_layered_total" [];
    /// Shards that made room for others.
    WORKER_SHARDS_EVICTED: Counters = "forebay_worker_shards_evicted_total" [];
    /// Shards whose files did not verify when they were used, and were brought anew.
    WORKER_SHARDS_DAMAGED: Counters = "forebay_worker_shards_damaged_total" [];
    /// Records of shards that were written or deleted.
    WORKER_SHARD_CHANGES: Counters = "forebay_worker_shard_changes_total" [];
    /// Objects of shards' logs that were written.
    WORKER_SHARD_LOG_WRITTEN: Counters = "forebay_worker_shard_log_objects_written_total" [];
    /// Objects of shards' logs that were read, as others wrote them.
    WORKER_SHARD_LOG_READ: Counters = "forebay_worker_shard_log_objects_read_total" [];
    /// Objects of shards' logs that came with the word of who wrote them, and were not read.
    WORKER_SHARD_LOG_TOLD: Counters = "forebay_worker_shard_log_objects_told_total" [];
    /// Merges of what was changed in a shard into its files.
    WORKER_SHARDS_MERGED: Counters = "forebay_worker_shards_merged_total" [];
    /// Datasets that came to have other shards.
    WORKER_DATASETS_RESHARDED: Counters = "forebay_worker_datasets_resharded_total" [];
    /// Objects of datasets that were deleted since no manifest named them any more.
    WORKER_SHARD_GARBAGE: Counters = "forebay_worker_shard_garbage_deleted_total" [];
    /// Refreshes of datasets that follow objects, of those that are a worker's.
    WORKER_SHARD_REFRESHES: Counters = "forebay_worker_shard_refreshes_total" [];
    /// Objects that they took over or that had gone.
    WORKER_SHARD_REFRESHED: Counters = "forebay_worker_shard_refreshed_objects_total" [];
    /// Objects that they could not read, and refreshes that failed.
    WORKER_SHARD_REFRESH_ERRORS: Counters = "forebay_worker_shard_refresh_errors_total" [];
    /// Calls under way or waiting at the shards of a worker.
    WORKER_SHARD_QUEUE: Gauges = "forebay_worker_shard_queue" ["worker"];
    /// How long calls to shards took that were answered, waiting counted in: `get` for records, `search` for what has a search or a count in it, `change`.
    WORKER_SHARD_SECONDS: Histograms(READS) = "forebay_worker_shard_seconds" ["kind"];
    /// How long calls that change shards took to be acknowledged, waiting counted in, by what had the changes then: `storage`, or the disks of `two-workers`.
    WORKER_SHARD_ACK_SECONDS: Histograms(READS) = "forebay_worker_shard_ack_seconds" ["ack"];
    /// Claims of shards' logs, under which two workers' disks acknowledge changes: `begun` by a worker that writes, `ended` by any worker, and `lost`, which each worker that finds both disks gone counts once.
    WORKER_SHARD_CLAIMS: Counters = "forebay_worker_shard_claims_total" ["event"];
    /// Shards that a worker writes under a claim.
    WORKER_SHARD_CLAIMED: Gauges = "forebay_worker_shard_claimed" ["worker"];
    /// Bytes of changes that it and another worker have on their disks, and shared storage has not.
    WORKER_SHARD_BEHIND_BYTES: Gauges = "forebay_worker_shard_behind_bytes" ["worker"];
    /// How long the first of these is so.
    WORKER_SHARD_BEHIND_SECONDS: Gauges = "forebay_worker_shard_behind_seconds" ["worker"];
    /// How long operations on temporary nodes took, failed ones too, by what was asked (`put`, `get`, `create`, ..).
    WORKER_NODE_SECONDS: Histograms(CALLS) = "forebay_worker_node_seconds" ["kind"];

    /// How long shared storage took to begin its answer, retries and waiting for the bound counted in: `get`, `head`, `list`, `put`, `delete`, or `other` of S3's own.
    STORAGE_REQUEST_SECONDS: Histograms(REQUESTS) = "forebay_storage_request_seconds" ["method"];
    /// Of these, requests that shared storage did not answer, refused, or answered with what can't be right.
    STORAGE_FAILURES: Counters = "forebay_storage_failures_total" ["method"];
    /// Whole objects whose bytes had another checksum than shared storage says of them.
    STORAGE_MISMATCHES: Counters = "forebay_storage_mismatches_total" ["mount"];

    /// The epoch of the coordinator, which grows with each that takes over.
    COORDINATOR_EPOCH: Gauges = "forebay_coordinator_epoch" [];
    /// How long the coordinator runs.
    COORDINATOR_UPTIME_SECONDS: Gauges = "forebay_coordinator_uptime_seconds" [];
    /// Mounts.
    COORDINATOR_MOUNTS: Gauges = "forebay_coordinator_mounts" [];
    /// The bandwidth bound of each mount that has one, for all workers and clients together.
    COORDINATOR_BOUND_BYTES_PER_SECOND: Gauges = "forebay_coordinator_bound_bytes_per_second" ["mount"];
    /// Paths that are kept by `forebay pin`.
    COORDINATOR_PINS: Gauges = "forebay_coordinator_pins" [];
    /// Workers that are `live` and `lost`.
    COORDINATOR_WORKERS: Gauges = "forebay_coordinator_workers" ["state"];
    /// Workers that were lost so far.
    COORDINATOR_LEASES_EXPIRED: Counters = "forebay_coordinator_leases_expired_total" [];
    /// What clients and workers asked.
    COORDINATOR_REQUESTS: Counters = "forebay_coordinator_requests_total" ["kind"];
    /// Of these, what failed.
    COORDINATOR_FAILURES: Counters = "forebay_coordinator_failures_total" ["kind"];
    /// Writes to the metadata database that failed.
    COORDINATOR_METADATA_ERRORS: Counters = "forebay_coordinator_metadata_errors_total" [];
    /// Segments whose popularity is known.
    COORDINATOR_SEGMENTS: Gauges = "forebay_coordinator_segments" [];
    /// Of these, segments that are read elsewhere than hashing says.
    COORDINATOR_ROUTES: Gauges = "forebay_coordinator_routes" [];
    /// Replicas of these: `planned`, `held` and `loading`.
    COORDINATOR_REPLICAS: Gauges = "forebay_coordinator_replicas" ["state"];
    /// Fewer replicas no plan could have.
    COORDINATOR_REPLICAS_LOWER_BOUND: Gauges = "forebay_coordinator_replicas_lower_bound" [];
    /// Plans that were made.
    COORDINATOR_PLANS: Counters = "forebay_coordinator_plans_total" [];
    /// How long the last plan took to be made.
    COORDINATOR_PLANNING_SECONDS: Gauges = "forebay_coordinator_planning_seconds" [];
    /// Segments that it could not place as asked.
    COORDINATOR_UNSATISFIED: Gauges = "forebay_coordinator_unsatisfied" [];
    /// Replicas that workers were ordered to bring.
    COORDINATOR_REPLICAS_ORDERED: Counters = "forebay_coordinator_replicas_ordered_total" [];
    /// Replicas that workers were ordered to drop.
    COORDINATOR_REPLICAS_DROPPED: Counters = "forebay_coordinator_replicas_dropped_total" [];

    /// Executors that answer the scheduler.
    SCHEDULER_EXECUTORS: Gauges = "forebay_scheduler_executors" [];
    /// Tasks that these can run at once.
    SCHEDULER_SLOTS: Gauges = "forebay_scheduler_slots" [];
    /// Jobs of distributed SQL that are not over.
    SCHEDULER_JOBS: Gauges = "forebay_scheduler_jobs" [];
    /// Jobs that are over: `done`, or `failed`, as those are that were cancelled. What ends to be run again is not among them.
    SCHEDULER_JOBS_OVER: Counters = "forebay_scheduler_jobs_over_total" ["outcome"];
    /// Tasks that run.
    SCHEDULER_TASKS: Gauges = "forebay_scheduler_tasks" [];
    /// Tasks that are over: `done`, or `failed`, as those are that were lost, or whose job ended before them.
    SCHEDULER_TASKS_OVER: Counters = "forebay_scheduler_tasks_over_total" ["outcome"];
    /// Tasks that were late and were begun once more elsewhere.
    SCHEDULER_TASK_COPIES: Counters = "forebay_scheduler_task_copies_total" [];
    /// Of these, those of which the copy was done first.
    SCHEDULER_TASK_COPIES_FIRST: Counters = "forebay_scheduler_task_copies_first_total" [];
    /// Bytes of files that tasks read which are done.
    SCHEDULER_TASK_INPUT_BYTES: Counters = "forebay_scheduler_task_input_bytes_total" [];
    /// Of these, bytes that the worker beside the task had, or was about to have, when the task was sent there.
    SCHEDULER_TASK_LOCAL_BYTES: Counters = "forebay_scheduler_task_local_bytes_total" [];
    /// Bytes on their way from shared storage, before their tasks ask for them.
    SCHEDULER_ARRIVING_BYTES: Gauges = "forebay_scheduler_arriving_bytes" [];
    /// Bytes that were brought so.
    SCHEDULER_BROUGHT_BYTES: Counters = "forebay_scheduler_brought_bytes_total" [];

    /// Tasks that the executors of the process can run at once.
    EXECUTOR_SLOTS: Gauges = "forebay_executor_slots" [];
    /// Tasks that they run.
    EXECUTOR_TASKS: Gauges = "forebay_executor_tasks" [];
    /// Tasks that they have run: `done`, or `failed`, as those are that were ended before.
    EXECUTOR_TASKS_OVER: Counters = "forebay_executor_tasks_over_total" ["outcome"];

    /// S3 requests, by what they ask (`get_object`, `put_object`, `list_objects`, ..) and the status of the answer.
    GATEWAY_REQUESTS: Counters = "forebay_gateway_requests_total" ["operation", "status"];
    /// From a request's head to its answer's, when the first MiB of an object is there: `read`, `stat`, `list`, `write`, `delete`, or `other`.
    GATEWAY_REQUEST_SECONDS: Histograms(READS) = "forebay_gateway_request_seconds" ["class"];
    /// Answers with an object's bytes: `hit` where the first of them were in a tier, else `miss`.
    GATEWAY_OBJECT_READS: Counters = "forebay_gateway_object_reads_total" ["cache"];
    /// Bytes of bodies of answers.
    GATEWAY_SENT_BYTES: Counters = "forebay_gateway_sent_bytes_total" [];
    /// Bytes of bodies of requests.
    GATEWAY_RECEIVED_BYTES: Counters = "forebay_gateway_received_bytes_total" [];
    /// Connections that are open.
    GATEWAY_CONNECTIONS: Gauges = "forebay_gateway_connections" [];
}

/// What the table says of all metrics, in its order.
pub fn rows() -> impl Iterator<Item = Row> {
    TABLE.iter().map(|metric| metric.row())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_as_prometheus_wants_them() {
        for row in rows() {
            let Row { name, help, labels, kind } = row;
            assert!(name.starts_with("forebay_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}: what only grows, and nothing else, ends so");
            assert!(!matches!(kind, Kind::Histogram(_)) || row.unit() == Some("seconds"), "{name}: histograms are of times");
            let words = |unit: &str| name.split('_').any(|word| word == unit);
            assert!(!words("bytes") || row.unit().is_some_and(|unit| unit.starts_with("bytes")), "{name}: the unit stands last");
            assert!(help.ends_with('.') && !help.contains('\n') && help.len() > 5, "{name}: {help:?}");
            assert!(labels.iter().all(|label| !["le", "quantile", "job", "instance"].contains(label)), "{name}: taken already");
        }
    }

    #[test]
    fn no_two_metrics_have_samples_of_one_name() {
        let names: Vec<String> = rows().flat_map(|row| row.sample_names()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn bounds_of_histograms_grow_and_end_beyond_what_anyone_waits() {
        for row in rows() {
            let Kind::Histogram(buckets) = row.kind else { continue };
            let bounds: Vec<u64> = buckets.bounds_ns().collect();
            assert!(
                bounds.is_sorted_by(|one, next| one < next) && bounds.last().is_some_and(|last| *last >= 10_000_000_000),
                "{row:?}"
            );
        }
    }
}
