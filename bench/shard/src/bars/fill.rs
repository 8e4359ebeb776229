use forebay_shard::{LayerId, LayerKind, QueryCounters, Record, Shard};
use forebay_types::Result;

use super::Bench;
use crate::measure::{Bar, Figure};
use crate::subject::{Mix, Operations};
use crate::workload::Skew;

/// The day of shipping: the attribute whose layer is filled by searches.
const SEARCHED: usize = 8;

/// Layers that queries fill on their way, under Zipf's law, against the same layers built at once.
pub(crate) fn fill(bench: &Bench) -> Result<()> {
    let everything = bench.subject.at(1000.0, &QueryCounters::default())?.layers();
    let of = |kind: LayerKind, which: usize| -> Vec<LayerId> {
        everything.iter().map(|layer| layer.id).filter(|id| id.kind == kind && usize::from(id.which) == which).collect()
    };
    let mut operations = bench.operations(Skew::Zipf);
    let chains: Vec<LayerId> = [3, 8, 13].into_iter().flat_map(|which| of(LayerKind::IsaAttribute, which)).collect();
    // Three layers, which one get fills three values of; so the queries are as many as a tenth of one layer's values.
    measure(bench, "get", Mix::Gets, &operations, &chains)?;
    let only = |at: &usize| operations.searches[*at].attribute == SEARCHED;
    let places: Vec<usize> = (0..operations.searches.len()).filter(only).collect();
    operations.queries = places.iter().map(|&at| operations.queries[at].clone()).collect();
    measure(bench, "search of l_shipdate", Mix::Searches, &operations, &of(LayerKind::SaAttribute, SEARCHED))
}

fn measure(bench: &Bench, what: &str, mix: Mix, operations: &Operations, ids: &[LayerId]) -> Result<()> {
    let shard = || Shard::open(bench.subject.base.clone(), []);
    let without = operations.rate(mix, &shard()?, bench.cpu_secs);
    let dedicated = shard()?;
    for id in ids {
        dedicated.add_layer(bench.subject.layers[id].clone())?;
    }
    let most = operations.rate(mix, &dedicated, bench.cpu_secs);
    let filling = shard()?;
    ids.iter().try_for_each(|&id| filling.begin_filling(id))?;
    let queries = bench.records.len() / 10;
    let mut record = Record::new();
    (0..queries).for_each(|at| operations.run(mix, &filling, at, &mut record));
    let layers = filling.layers();
    let filled = layers.iter().map(|layer| layer.filled).sum::<f64>() / layers.len().max(1) as f64;
    let rate = operations.rate(mix, &filling, bench.cpu_secs);
    Figure::new(format!("{what}, zipf 0.99, without the layer"), without, "a CPU-second", Bar::None).print();
    let name = format!("{what}, zipf 0.99, layer filled to {:.0} % by {queries} queries", filled * 100.0);
    Figure::against(name, rate, "a CPU-second", "the layer built at once", most, Bar::RatioAtLeast(0.9)).print();
    Ok(())
}
