//! The bars of size and throughput: compressed, beside zstd blocks of equal size, and beside hash maps at the top.

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::{LayerKind, Record};
use forebay_types::Result;

use super::Bench;
use crate::measure::a_cpu_second;
use crate::peers::{Blocks, Plain, Row};
use crate::subject::{Mix, Operations};
use crate::workload::{SELECTIVE, Skew};

/// Sizes of the table, with gets and searches a CPU-second at the random-read latency of the machine that they were
/// measured on.
const POINTS: [(f64, f64, f64); 3] = [(0.35, 24_000.0, 800.0), (0.48, 42_000.0, 4_800.0), (0.55, 45_000.0, 40_000.0)];
/// The top of the dial: everything that it can have.
const TOP: f64 = 1000.0;

/// Sizes, throughput at the points of the table, zstd blocks at equal size, hash map and inverted index at the top.
pub(crate) fn table(bench: &Bench) -> Result<()> {
    let subject = &bench.subject;
    let input = bench.records.input_bytes() as f64;
    line("random read of 256 MiB", bench.latency_ns, "ns", Bar::Nothing);
    line("input", input, "bytes", Bar::Nothing);
    let rate = input / 1e6 / subject.built.cpu_secs;
    line("build, a core, end to end", rate, "MB/s", Bar::ValueAtLeast(4.0));
    line("build, elapsed", subject.built.secs, "s", Bar::Nothing);
    line("build, peak memory a byte of input", subject.built.peak_bytes as f64 / input, "bytes", Bar::ValueAtMost(10.0));
    line("compressed end, every attribute searched", subject.base.len() as f64 / input, "x", Bar::ValueAtMost(0.35));
    let counters = bench.half_counters()?;
    let plain = Plain::new(&bench.records, &SELECTIVE);
    let level = 9;
    let blocks = Blocks::new(&bench.records, level)?;
    let blocks_ratio = blocks.bytes() as f64 / input;
    line(format!("zstd blocks (level {level}) + postings"), blocks_ratio, "x", Bar::Nothing);
    let of_text = subject.layers.iter().filter(|(id, _)| id.kind == LayerKind::Blocks).map(|(_, part)| part.len());
    let text_from = (subject.base.len() + of_text.sum::<usize>()) as f64 / input;
    line("the record text layer fits from", text_from, "x", Bar::Nothing);
    for skew in [Skew::Uniform, Skew::Zipf] {
        let operations = bench.operations(skew);
        verify(bench, &operations, &plain, &blocks)?;
        for (ratio, gets, searches) in POINTS {
            let shard = subject.at(ratio, &counters)?;
            let size = shard.info().ratio();
            for (mix, bar) in [(Mix::Gets, gets), (Mix::Searches, searches)] {
                let rate = operations.rate(mix, &shard, bench.cpu_secs);
                let what = format!("{} at {ratio}x ({size:.3}x), {}", mix.name(), skew.name());
                let bar = if skew == Skew::Uniform { Bar::ValueAtLeast(bar) } else { Bar::Nothing };
                line(what, rate, "a CPU-second", bar);
            }
        }
        let (name, mut reader, mut row) = (skew.name(), blocks.reader()?, Row::default());
        let peer_get =
            a_cpu_second(bench.cpu_secs, operations.gets.len(), |at| assert!(reader.get(operations.gets[at].key, &mut row)));
        let search = |at: usize| &operations.searches[at];
        let peer_search = a_cpu_second(bench.cpu_secs, operations.searches.len(), |at| {
            std::hint::black_box(reader.search(search(at).attribute, &search(at).value));
        });
        let mut both_from = None;
        for ratio in [text_from + 0.005, 0.62, 0.65, blocks_ratio, 0.75, 0.8, 0.9] {
            let shard = subject.at(ratio, &counters)?;
            let size = shard.info().ratio();
            let mut both = true;
            for (mix, peer, least) in [(Mix::Gets, peer_get, 0.9), (Mix::Searches, peer_search, 1.0)] {
                let what = format!("{} at {ratio:.2}x ({size:.3}x), {name}", mix.name());
                let rate = operations.rate(mix, &shard, bench.cpu_secs);
                both &= rate >= least * peer;
                // The bar is at equal size, and from about 0.65x on.
                let bar = if ratio >= 0.65 { Bar::RatioAtLeast(least) } else { Bar::Nothing };
                let peer_name = format!("zstd blocks + postings at {blocks_ratio:.3}x");
                Figure::new(what, rate, "a CPU-second", peer_name, peer, bar).print(true);
            }
            both_from = if both { both_from.or(Some(size)) } else { None };
        }
        let what = format!("get and search both keep up with zstd blocks + postings from here on, {name}");
        line(what, both_from.unwrap_or(TOP), "x", Bar::ValueAtMost(0.69));
        let shard = subject.at(TOP, &counters)?;
        let size = shard.info().ratio();
        let peer_get =
            a_cpu_second(bench.cpu_secs, operations.gets.len(), |at| assert!(plain.get(operations.gets[at].key, &mut row)));
        let peer_search = a_cpu_second(bench.cpu_secs, operations.searches.len(), |at| {
            std::hint::black_box(plain.search(search(at).attribute, &search(at).value));
        });
        for (mix, peer, peer_name) in [(Mix::Gets, peer_get, "hash map"), (Mix::Searches, peer_search, "inverted index")] {
            let rate = operations.rate(mix, &shard, bench.cpu_secs);
            let what = format!("{} at the top ({size:.3}x), {name}", mix.name());
            Figure::new(what, rate, "a CPU-second", peer_name, peer, Bar::RatioAtLeast(0.5)).print(true);
        }
    }
    Ok(())
}

/// All of them answer alike before anything is timed.
fn verify(bench: &Bench, operations: &Operations, plain: &Plain, blocks: &Blocks) -> Result<()> {
    let (mut reader, mut record) = (blocks.reader()?, Record::new());
    let (mut a, mut b) = (Row::default(), Row::default());
    for ratio in [0.35, 0.48, 0.55, 0.65, TOP] {
        let shard = bench.subject.at(ratio, &bench.half_counters()?)?;
        for at in 0..200 {
            assert!(plain.get(operations.gets[at].key, &mut a) && reader.get(operations.gets[at].key, &mut b) && a == b);
            assert!(shard.get_into(&operations.keys[at], None, &mut record)?);
            let mut start = 0;
            for (attribute, &end) in a.ends.iter().enumerate() {
                assert_eq!(record.bytes(attribute), Some(&a.bytes[start..end as usize]));
                start = end as usize;
            }
            let search = &operations.searches[at];
            let keys = plain.search(search.attribute, &search.value);
            assert_eq!(reader.search(search.attribute, &search.value), keys);
            assert_eq!(shard.search(&operations.queries[at], None, None)?.keys, forebay_shard::Keys::U64(keys));
        }
    }
    Ok(())
}
