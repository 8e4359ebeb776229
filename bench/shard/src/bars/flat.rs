//! Substring search in the records as flat text, beside what C++ Succinct is known to do at the same sizes.

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::{FlatText, build_flat};
use forebay_types::Result;

use crate::measure::a_cpu_second;
use crate::workload::{ATTRIBUTES, Records, Skew, searches};

/// What the original C++ Succinct did with the same searches over the same text on such a machine, with uniform samples alone:
/// stored to input, searches a CPU-second. Reference figures of an earlier study: it isn't run here.
const SUCCINCT: [(f64, f64); 5] = [(0.552, 85.0), (0.651, 195.0), (0.850, 380.0), (1.248, 874.0), (2.045, 1_551.0)];

/// Substring search over the records as flat text, with no layers but the uniform ones of rates 2^k.
pub(crate) fn flat(records: &Records, cpu_secs: f64) -> Result<()> {
    // As Succinct lays records out: before each value a byte that stands for its attribute.
    let delimiter = |attribute: usize| 0x80 | attribute as u8;
    let mut text = Vec::with_capacity(records.input_bytes());
    for row in 0..records.len() {
        for attribute in 0..ATTRIBUTES.len() {
            text.push(delimiter(attribute));
            text.extend_from_slice(records.value(row, attribute));
        }
    }
    text.push(delimiter(0));
    let patterns: Vec<Vec<u8>> = searches(records, Skew::Uniform, 20_000, 2)
        .into_iter()
        .map(|search| {
            let mut pattern = vec![delimiter(search.attribute)];
            pattern.extend_from_slice(&search.value);
            pattern.push(delimiter((search.attribute + 1) % ATTRIBUTES.len()));
            pattern
        })
        .collect();
    let built = build_flat(&text, 0.0)?;
    let everything = FlatText::open(built.base.clone(), [])?;
    let ids = everything.dial(1000.0, true);
    let builder = everything.layer_builder(&ids)?;
    builder.steps().into_iter().for_each(|step| builder.run(step));
    let parts: std::collections::BTreeMap<_, _> = builder.finish()?.into_iter().collect();
    let hits: usize = patterns.iter().take(1000).map(|pattern| everything.count(pattern) as usize).sum();
    line("flat text: hits of a search", hits as f64 / 1000.0, "hits", Bar::Nothing);
    for (ratio, reference) in SUCCINCT {
        for extraction in [true, false] {
            let flat = FlatText::open(built.base.clone(), [])?;
            for id in flat.dial(ratio, extraction) {
                flat.add_layer(parts[&id].clone())?;
            }
            verify(&text, &flat, &patterns);
            let rate = a_cpu_second(cpu_secs, patterns.len(), |at| {
                std::hint::black_box(flat.search(&patterns[at]).len());
            });
            let (what, bar) = match extraction {
                true => ("search, with samples for extraction", Bar::RatioAtLeast(3.0)),
                false => ("search alone", Bar::Nothing),
            };
            Figure::alone(format!("flat text at {ratio}x ({:.3}x): {what}", flat.ratio()), rate, "a CPU-second", bar)
                .beside(format!("C++ Succinct at {ratio}x, a reference figure, not run here"), reference)
                .print(true);
        }
    }
    Ok(())
}

/// What is found is what is there.
fn verify(text: &[u8], flat: &FlatText, patterns: &[Vec<u8>]) {
    for pattern in patterns.iter().step_by(patterns.len() / 20) {
        let found = flat.search(pattern);
        assert!(found.is_sorted() && found.len() as u64 == flat.count(pattern) && !found.is_empty());
        assert!(found.iter().all(|&at| text[at as usize..].starts_with(pattern)));
    }
}
