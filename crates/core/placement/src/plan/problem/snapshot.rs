//! What is known when a plan is made: demands, workers, and who holds what.

/// What is known of a segment when a plan is made. Segments are numbered from 0 in a [`Snapshot`]; where counts are
/// equal the lower number goes first, so number them in an order that doesn't change from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SegmentDemand {
    /// Accesses a window, aged; 0 and no `minimum`: placed nowhere.
    pub count: u64,
    /// Bytes that a replica takes.
    pub bytes: u64,
    /// Replicas at least, whatever the count, in different failure domains, and on different hosts where those have too little room;
    /// 0 and 1 are the same when `count` isn't 0.
    pub minimum: u32,
    /// Segments of one dataset have the same number: those that queries read together.
    pub dataset: u32,
    /// Place in the dataset by time or name: neighbours are read by the same query.
    pub order: u32,
    /// Most accesses in flight at once in the window; only Scarlett asks.
    pub concurrent_peak: f64,
    /// Accesses in flight on average; only Scarlett asks.
    pub concurrent_mean: f64,
}

/// What a worker can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerRoom {
    /// Accesses a window, taken exactly; none: its share of the whole by `speed`, with the settings' slack.
    pub capacity: Option<u64>,
    /// Accesses that it is to serve a second, by its speed, in any unit that is the same for all workers.
    pub speed: f64,
    /// Bytes of replicas at most: a hard limit.
    pub bytes: u64,
    /// Its host, by number.
    pub host: u32,
    /// What fails together has the same number: a host, a rack, a zone. A host is in one of them.
    pub domain: u32,
}

impl WorkerRoom {
    /// `workers` equal ones without a limit on bytes, each a failure domain of its own.
    pub fn equal(workers: u32) -> Vec<Self> {
        let of = |number| Self { capacity: None, speed: 1.0, bytes: u64::MAX, host: number, domain: number };
        (0..workers).map(of).collect()
    }

    /// By what copies of a segment lie apart: rather by the first, and where that finds no room by the second.
    pub(crate) const APART_BY: [fn(&Self) -> u32; 2] = [Self::domain, Self::host];

    fn domain(&self) -> u32 {
        self.domain
    }

    pub(crate) fn host(&self) -> u32 {
        self.host
    }
}

/// Which workers hold which segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Where each segment's workers begin, and where the last one's end; empty: nobody holds anything.
    starts: Vec<u32>,
    workers: Vec<u32>,
}

impl Holdings {
    /// Nobody holds anything.
    pub fn none() -> Self {
        Self::default()
    }

    /// From pairs (segment, worker) in any order; pairs that come twice count once. O(p log p).
    pub fn from_pairs(segments: usize, pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<(u32, u32)> = pairs.into_iter().filter(|(segment, _)| (*segment as usize) < segments).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0u32; segments + 1];
        for (segment, _) in &pairs {
            starts[*segment as usize + 1] += 1;
        }
        for segment in 0..segments {
            starts[segment + 1] += starts[segment];
        }
        Self { starts, workers: pairs.into_iter().map(|(_, worker)| worker).collect() }
    }

    /// The workers of `segment` in ascending order.
    pub fn of(&self, segment: u32) -> &[u32] {
        let at = segment as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.workers[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// Whether `worker` holds `segment`.
    pub fn holds(&self, segment: u32, worker: u32) -> bool {
        self.of(segment).binary_search(&worker).is_ok()
    }

    /// All pairs (segment, worker).
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        let segments = self.starts.len().saturating_sub(1) as u32;
        (0..segments).flat_map(|segment| self.of(segment).iter().map(move |worker| (segment, *worker)))
    }

    /// How many replicas that is.
    pub fn replicas(&self) -> u64 {
        self.workers.len() as u64
    }

    /// Whether nobody holds anything.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }
}

/// All that a plan depends on, beside the settings.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The segments, by number.
    pub segments: &'a [SegmentDemand],
    /// The workers, by number.
    pub workers: &'a [WorkerRoom],
    /// Who holds what now, in full: a replica that is still loading isn't held.
    pub held: &'a Holdings,
}

impl<'a> Snapshot<'a> {
    /// Those of its workers that hold `segment`; holdings are sorted, so workers that aren't in it come last.
    pub(crate) fn holders(&self, segment: u32) -> &'a [u32] {
        let all = self.held.of(segment);
        &all[..all.partition_point(|worker| (*worker as usize) < self.workers.len())]
    }
}
