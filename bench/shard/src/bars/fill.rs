//! Bar of layers that queries fill on their way: nearly as fast as the same layers built at once.

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::{LayerId, LayerKind, QueryCounters, Record, Shard};
use forebay_types::Result;

use super::Bench;
use crate::subject::{Mix, Operations};
use crate::workload::Skew;

/// The day of shipping: the attribute whose layer is filled by searches.
const SEARCHED: usize = 8;

/// Layers that queries fill on their way, under Zipf's law, against the same layers built at once; what is measured are other queries
/// of the same law.
pub(crate) fn fill(bench: &Bench) -> Result<()> {
    let everything = bench.subject.at(1000.0, &QueryCounters::default())?.layers();
    let of = |kind: LayerKind, which: usize| -> Vec<LayerId> {
        everything.iter().map(|layer| layer.id).filter(|id| id.kind == kind && usize::from(id.which) == which).collect()
    };
    // Drawn anew, so that those that are measured are not the very ones that a layer was filled by.
    let (mut filled_by, mut measured) = (bench.operations(Skew::Zipf), Operations::new(&bench.records, Skew::Zipf, 3));
    let chains: Vec<LayerId> = [3, 8, 13].into_iter().flat_map(|which| of(LayerKind::IsaAttribute, which)).collect();
    // Three layers, which one get fills three values of; so the queries are as many as a tenth of one layer's values.
    measure(bench, "get", Mix::Gets, [&filled_by, &measured], &chains)?;
    for operations in [&mut filled_by, &mut measured] {
        let only = |at: &usize| operations.searches[*at].attribute == SEARCHED;
        let places: Vec<usize> = (0..operations.searches.len()).filter(only).collect();
        operations.queries = places.iter().map(|&at| operations.queries[at].clone()).collect();
    }
    let ids = of(LayerKind::SaAttribute, SEARCHED);
    measure(bench, "search of l_shipdate", Mix::Searches, [&filled_by, &measured], &ids)
}

fn measure(bench: &Bench, what: &str, mix: Mix, [filled_by, measured]: [&Operations; 2], ids: &[LayerId]) -> Result<()> {
    let shard = || Shard::open(bench.subject.base.clone(), []);
    let without = measured.rate(mix, &shard()?, bench.cpu_secs);
    let dedicated = shard()?;
    for id in ids {
        dedicated.add_layer(bench.subject.layers[id].clone())?;
    }
    let most = measured.rate(mix, &dedicated, bench.cpu_secs);
    let filling = shard()?;
    ids.iter().try_for_each(|&id| filling.begin_filling(id))?;
    let queries = bench.records.len() / 10;
    let mut record = Record::new();
    (0..queries).for_each(|at| filled_by.run(mix, &filling, at, &mut record));
    let before = filled_percent(&filling);
    let rate = measured.rate(mix, &filling, bench.cpu_secs);
    let after = filled_percent(&filling);
    line(format!("{what}, zipf 0.99, without the layer"), without, "a CPU-second", Bar::Nothing);
    // Those that are measured go on to fill it, as queries do.
    let name = format!("{what}, zipf 0.99, layer filled to {before:.0} % by {queries} other queries, to {after:.0} % in the end");
    Figure::new(name, rate, "a CPU-second", "the layer built at once", most, Bar::RatioAtLeast(0.9)).print(true);
    Ok(())
}

fn filled_percent(shard: &Shard) -> f64 {
    let layers = shard.layers();
    layers.iter().map(|layer| layer.filled).sum::<f64>() / layers.len().max(1) as f64 * 100.0
}
