//! The shard under measurement at any size of the dial, and the operations that it is asked, so that all bars share one build.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_bench_harness::cpu::ThreadTime;
use forebay_shard::{Builder, KeyType, LayerId, Query, QueryCounters, Record, Schema, Shard, Value, ValueType};
use forebay_types::Result;

use crate::measure::PeakMemory;
use crate::workload::{ATTRIBUTES, Get, Records, Search, Skew, gets, searches};

/// The shard that is measured: its base and every layer that it can have, so that any setting of the dial is at hand.
pub(crate) struct Subject {
    pub(crate) base: Bytes,
    pub(crate) layers: BTreeMap<LayerId, Bytes>,
    pub(crate) built: Built,
    pub(crate) pass: Pass,
}

/// What building took.
pub(crate) struct Built {
    pub(crate) cpu_secs: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) secs: f64,
}

/// What it took to make all layers from the base.
pub(crate) struct Pass {
    pub(crate) secs: f64,
    pub(crate) bytes: usize,
}

/// Which operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mix {
    Gets,
    Searches,
    Half,
}

impl Mix {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Gets, Self::Searches, Self::Half];

    /// Its name in figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gets => "get",
            Self::Searches => "search",
            Self::Half => "half and half",
        }
    }
}

/// Operations, ready to be run.
pub(crate) struct Operations {
    pub(crate) gets: Vec<Get>,
    pub(crate) searches: Vec<Search>,
    pub(crate) keys: Vec<forebay_shard::Key>,
    pub(crate) queries: Vec<Query>,
}

impl Operations {
    /// Drawn by a skew.
    pub(crate) fn new(records: &Records, skew: Skew, seed: u64) -> Self {
        let gets = gets(records, skew, 200_000, seed);
        let searches = searches(records, skew, 20_000, seed + 1);
        let keys = gets.iter().map(|get| forebay_shard::Key::U64(get.key)).collect();
        let query = |search: &Search| Query::Eq { attribute: search.attribute, value: Value::Bytes(search.value.clone()) };
        let queries = searches.iter().map(query).collect();
        Self { gets, searches, keys, queries }
    }

    /// Runs operation `at` of a mix on a shard.
    pub(crate) fn run(&self, mix: Mix, shard: &Shard, at: usize, record: &mut Record) {
        let search = match mix {
            Mix::Gets => false,
            Mix::Searches => true,
            Mix::Half => (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1,
        };
        if search {
            let page = shard.search(&self.queries[at % self.queries.len()], None, None).expect("a shard that verified");
            std::hint::black_box(page.keys.len());
        } else {
            let found = shard.get_into(&self.keys[at % self.keys.len()], None, record).expect("a shard that verified");
            assert!(found);
        }
    }

    /// Operations a CPU-second of a shard.
    pub(crate) fn rate(&self, mix: Mix, shard: &Shard, cpu_secs: f64) -> f64 {
        let mut record = Record::new();
        crate::measure::a_cpu_second(cpu_secs, 1 << 30, |at| self.run(mix, shard, at, &mut record))
    }

    /// Operations a second of a shard, waiting and what else the machine does with it.
    pub(crate) fn rate_by_the_wall(&self, mix: Mix, shard: &Shard, secs: f64) -> f64 {
        let mut record = Record::new();
        crate::measure::a_second(secs, |at| self.run(mix, shard, at, &mut record))
    }
}

/// What values are: text as it stands, so that sizes are to the same input as the peers'.
pub(crate) fn schema() -> Schema {
    ATTRIBUTES.iter().fold(Schema::new("key", KeyType::U64), |schema, name| schema.with(*name, ValueType::Bytes))
}

/// Builds the base alone.
pub(crate) fn base(records: &Records) -> Result<Bytes> {
    let mut builder = Builder::new(schema())?;
    for row in 0..records.len() {
        let values: [Option<&[u8]>; ATTRIBUTES.len()] = std::array::from_fn(|attribute| Some(records.value(row, attribute)));
        builder.push_encoded(&forebay_shard::Key::U64(records.keys[row]), &values)?;
    }
    Ok(builder.finish(0.35)?.base)
}

impl Subject {
    /// Builds the base, then every layer.
    pub(crate) fn build(records: &Records, threads: usize) -> Result<Self> {
        let (clock, peak) = (ThreadTime::now(), PeakMemory::start());
        let base = base(records)?;
        let built = Built { cpu_secs: clock.elapsed().as_secs_f64(), peak_bytes: peak.bytes(), secs: peak.secs() };
        let everything = Shard::open(base.clone(), [])?.dial(1000.0, &QueryCounters::default());
        let started = std::time::Instant::now();
        let layers = construct(&Shard::open(base.clone(), [])?, &everything, threads)?;
        let pass = Pass { secs: started.elapsed().as_secs_f64(), bytes: layers.values().map(Bytes::len).sum() };
        Ok(Self { base, layers, built, pass })
    }

    /// The shard at a setting of the dial, with the layers that suit a mix of operations.
    pub(crate) fn at(&self, ratio: f64, counters: &QueryCounters) -> Result<Shard> {
        let shard = Shard::open(self.base.clone(), [])?;
        for id in shard.dial(ratio, counters) {
            let part = self.layers.get(&id).cloned();
            shard.add_layer(part.ok_or_else(|| forebay_types::Error::internal(format!("layer {id} was not built")))?)?;
        }
        Ok(shard)
    }

    /// What the shard counts when it serves a mix.
    pub(crate) fn counters(&self, mix: Mix, operations: &Operations) -> Result<QueryCounters> {
        let shard = Shard::open(self.base.clone(), [])?;
        let mut record = Record::new();
        (0..1000).for_each(|at| operations.run(mix, &shard, at, &mut record));
        Ok(shard.counters())
    }
}

/// Builds layers with so many threads.
pub(crate) fn construct(shard: &Shard, ids: &[LayerId], threads: usize) -> Result<BTreeMap<LayerId, Bytes>> {
    let builder = shard.layer_builder(ids)?;
    let steps: Vec<Range<u32>> = builder.steps();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
                builder.run(step.clone())?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a thread that builds layers"))
    })?;
    Ok(builder.finish()?.into_iter().collect())
}
