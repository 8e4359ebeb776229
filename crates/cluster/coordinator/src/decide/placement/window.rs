//! The clock of popularity: when a window closes, whose reports are waited for, and what a late report still counts.

use std::collections::BTreeSet;
use std::time::Duration;

use forebay_placement::Usage;
use forebay_protocol::{SegmentUse, WindowReport};
use forebay_types::{Cell, Key, RouteKey, SegmentId, WorkerId, check_object_bytes, segment_count};

use super::super::whole::failpoint;
use super::Placement;
use super::replicas::{HELD_BYTES_MAX, Replica, ReplicaState};
use super::round::Round;
use super::segments::Counted;

/// How long reports of a window are waited for: two heartbeats and a half.
const REPORTS_WITHIN: Duration = Duration::from_millis(2500);
/// Time between two plans that new objects call for.
const FRESH_GAP: Duration = Duration::from_secs(1);
/// A window that lasted longer than so many periods is counted as if it had lasted one.
const LONG: f64 = 1.5;

/// A window that has closed and whose reports come in.
#[derive(Debug)]
pub(super) struct Closing {
    since: Duration,
    reported: BTreeSet<WorkerId>,
}

impl Placement {
    /// The window that closed last, of which workers are to report.
    pub(crate) fn window(&self) -> u64 {
        self.period.number
    }

    /// Begins a round as soon as all have reported the window or are late, or when the next one ends; and between two
    /// windows when something new begins as popular as what it follows.
    pub(crate) fn round_when_due(&mut self, now: Duration) -> Option<Round> {
        if self.is_complete(now) || (self.period.closing.is_some() && now >= self.window_ends()) {
            return Some(self.begin_round(now));
        }
        // While reports come in, counts are those of some workers only.
        let soon = self.plans.wanted
            && self.period.closing.is_none()
            && self.plans.under_way.is_none()
            && now >= self.plans.began + FRESH_GAP;
        (soon && self.can_plan()).then(|| {
            self.begin_plan(now);
            Round { checkpoint: None, plan: true }
        })
    }

    pub(crate) fn close_when_over(&mut self, now: Duration) {
        if now >= self.window_ends() {
            self.period.number += 1;
            self.period.opened = now;
            self.period.closing = Some(Closing { since: now, reported: BTreeSet::new() });
            self.popularity.close(self.period.number);
            self.period.left_out = 0;
            for tracked in self.segments.values_mut() {
                tracked.counted = Counted::default();
            }
        }
    }

    /// When the next round begins, or the window ends, if nobody says anything.
    pub(crate) fn next_due(&self) -> Duration {
        let late = self.period.closing.as_ref().map(|closing| closing.since + REPORTS_WITHIN);
        late.map_or(self.window_ends(), |late| late.min(self.window_ends()))
    }

    fn window_ends(&self) -> Duration {
        self.period.opened + self.settings.window
    }

    fn is_complete(&self, now: Duration) -> bool {
        self.period.closing.as_ref().is_some_and(|closing| self.all_reported() || now >= closing.since + REPORTS_WITHIN)
    }

    pub(super) fn all_reported(&self) -> bool {
        let reported = |closing: &Closing| self.workers.iter().all(|worker| closing.reported.contains(worker));
        !self.workers.is_empty() && self.period.closing.as_ref().is_some_and(reported)
    }

    /// Takes a worker's report in, once.
    pub(crate) fn report(&mut self, now: Duration, worker: WorkerId, report: WindowReport) {
        let before = self.period.counted.get(&worker).copied();
        if before.is_some_and(|before| before >= report.window) || report.window > self.period.number {
            // Sent again because the answer was lost; or of a window that there was none of.
            return;
        }
        self.period.counted.insert(worker, report.window);
        if let Some(closing) = self.period.closing.as_mut().filter(|_| report.window == self.period.number) {
            closing.reported.insert(worker);
        }
        self.speeds.measure(worker, report.lasted, report.busy, report.busy_bytes as f64);
        self.period.left_out = self.period.left_out.saturating_add(report.reads_left_out);
        let periods = report.lasted.as_secs_f64() / self.settings.window.as_secs_f64();
        let scale = if periods > LONG { 1.0 / periods } else { 1.0 } * self.aged(report.window);
        for (mount, root) in &report.roots {
            // No key is longer, and so no root of one.
            if root.len() <= Key::BYTES_MAX {
                self.datasets.learn(report.window, *mount, root);
            }
        }
        let mut changed = Vec::new();
        for entry in report.uses {
            // What is larger than any object can be is nothing that a worker reads.
            let is_there = check_object_bytes(entry.version.size).is_ok()
                && (entry.index < segment_count(entry.version.size) || Cell::of_index(entry.index).is_some());
            if is_there && (entry.operations > 0 || entry.held_bytes > 0) {
                changed.extend(self.count(worker, &entry, scale));
            }
        }
        changed.into_iter().for_each(|key| self.reroute(now, key));
    }

    /// What is left of counts of a window that come late: half for each that has closed since. Those of a coordinator before are
    /// of windows that this one doesn't know.
    fn aged(&self, window: u64) -> f64 {
        assert!(window <= self.period.number, "window {window} has closed by {}", self.period.number);
        let same_epoch = window >> 32 == self.period.number >> 32;
        if same_epoch { 0.5f64.powi((self.period.number - window).min(64) as i32) } else { 1.0 }
    }

    /// Counts what a worker served of a segment; gives its route when the worker holds more or less of it than before.
    fn count(&mut self, worker: WorkerId, entry: &SegmentUse, scale: f64) -> Option<RouteKey> {
        let segment = SegmentId::of(&entry.version, entry.index);
        let route = RouteKey::of(entry.version.mount, &entry.version.key, entry.index);
        if entry.operations == 0 && !self.segments.contains_key(&route) {
            return None;
        }
        let key = self.track(&entry.version, entry.index);
        failpoint(format_args!("use of {}", entry.version.key));
        let tracked = self.segments.get(&key).expect("it is tracked");
        if tracked.segment != segment {
            // Of two versions that are read, the one that is read more is placed.
            if u64::from(entry.operations) <= tracked.counted.operations {
                return None;
            }
            self.replace_version(key, &entry.version);
        }
        let usage = Usage {
            accesses: f64::from(entry.operations) * scale,
            reads: entry.reads as f64 * scale,
            bytes: entry.bytes as f64 * scale,
            service_us: entry.service.as_micros() as f64 * scale,
        };
        let heat = (entry.operations > 0).then(|| self.popularity.add(self.period.number, segment, usage));
        let tracked = self.segments.get_mut(&key).expect("it is tracked");
        tracked.heat = heat.unwrap_or(tracked.heat);
        let counted = &mut tracked.counted;
        counted.operations = counted.operations.saturating_add(u64::from(entry.operations));
        counted.reads = counted.reads.saturating_add(entry.reads);
        counted.bytes_read = counted.bytes_read.saturating_add(entry.bytes);
        counted.peak = counted.peak.saturating_add(entry.peak);
        counted.service = counted.service.saturating_add(entry.service);
        let before = tracked.is_ready(worker);
        let held_bytes = entry.held_bytes.min(HELD_BYTES_MAX);
        match tracked.replicas.get_mut(worker) {
            Some(replica) if held_bytes > 0 || replica.state != ReplicaState::Held => replica.held_bytes = held_bytes,
            Some(_) => {
                tracked.replicas.remove(worker);
            }
            None if held_bytes > 0 => {
                tracked.replicas.insert(worker, Replica { state: ReplicaState::Held, held_bytes });
            }
            None => {}
        }
        (tracked.is_ready(worker) != before).then_some(key)
    }
}
