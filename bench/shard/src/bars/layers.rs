//! Bars of changing the dial under load: what layers cost to make and to drop, and what a reader feels of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_bench_harness::cpu::ThreadTime;
use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::{Key, LayerId, LayerKind, Shard, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Store};
use forebay_types::Result;

use super::Bench;
use crate::measure::resident_bytes;
use crate::subject::{Mix, construct};
use crate::workload::{ATTRIBUTES, Records, Skew};

/// Adding layers (one pass over the text, in parallel) and dropping them, with a reader that goes on.
pub(crate) fn layers(bench: &Bench) -> Result<()> {
    let subject = &bench.subject;
    let input = bench.records.input_bytes() as f64;
    let open = || Shard::open(subject.base.clone(), []);
    let everything: Vec<LayerId> = subject.layers.keys().copied().collect();
    let pass = &subject.pass;
    line(
        format!("all {} layers, {:.2}x of the input, in parallel", everything.len(), pass.bytes as f64 / input),
        pass.secs,
        "s",
        Bar::Nothing,
    );

    // One pass: every record read along its chains, one after the other.
    let shard = open()?;
    let clock = ThreadTime::now();
    shard.scan(None, |_, record| Ok(!record.is_empty()))?;
    let one_pass = clock.elapsed().as_secs_f64();
    use LayerKind::{Blocks, Index, IsaAttribute, Plain, Postings, SaAttribute, SaRate};
    for (name, kinds, bar) in [
        ("layers of samples", &[IsaAttribute, SaAttribute, SaRate][..], Bar::RatioAtMost(1.0)),
        ("postings", &[Postings], Bar::Nothing),
        ("layers of record text", &[Blocks, Plain], Bar::Nothing),
        ("all layers", &[IsaAttribute, SaAttribute, SaRate, Blocks, Plain, Index, Postings], Bar::Nothing),
    ] {
        let ids: Vec<LayerId> = everything.iter().copied().filter(|id| kinds.contains(&id.kind)).collect();
        let clock = ThreadTime::now();
        std::hint::black_box(run_here(&shard, &ids)?);
        let secs = clock.elapsed().as_secs_f64();
        let what = format!("{name} ({}), one thread", ids.len());
        Figure::new(what, secs, "CPU-seconds", "one read of all records along psi", one_pass, bar).print(true);
    }

    // A reader on one core while layers are built on the other.
    let operations = bench.operations(Skew::Uniform);
    let shard = open()?;
    let before = operations.rate(Mix::Half, &shard, bench.cpu_secs * 2.0);
    let done = AtomicBool::new(false);
    let during = std::thread::scope(|scope| -> Result<f64> {
        let builder = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::hint::black_box(construct(&shard, &everything, 1)?);
            }
            Ok::<_, forebay_types::Error>(())
        });
        let rate = operations.rate(Mix::Half, &shard, bench.cpu_secs * 4.0);
        done.store(true, Ordering::Relaxed);
        builder.join().expect("the builder")?;
        Ok(rate)
    })?;
    Figure::alone("half and half while layers are built on the other core", during, "a CPU-second", Bar::RatioAtLeast(0.8))
        .beside("the same alone", before)
        .print(true);
    drops(&bench.records)
}

/// One thread's work, so that its CPU time is all of it.
fn run_here(shard: &Shard, ids: &[LayerId]) -> Result<usize> {
    let builder = shard.layer_builder(ids)?;
    for step in builder.steps() {
        builder.run(step)?;
    }
    Ok(builder.finish()?.len())
}

/// Dropping layers of a shard on disk, with a reader that goes on: until questions don't see it, until the folder hasn't it,
/// and until the memory is back.
fn drops(records: &Records) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lineitem.shard");
    let all = std::iter::once(Column::new("key", ColumnKind::Int))
        .chain(ATTRIBUTES.iter().map(|name| Column::new(*name, ColumnKind::Binary)));
    let mut building = Store::build(&path, Columns::new(all.collect(), "key")?, 3.0)?;
    let rows = records.len().min(300_000);
    for row in 0..rows {
        let values = (0..ATTRIBUTES.len()).map(|attribute| Value::Bytes(records.value(row, attribute).to_vec())).collect();
        building.push(Key::U64(records.keys[row]), values)?;
    }
    building.finish()?;
    let store = Store::open_to_change(&path)?;
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| -> Result<()> {
        let reader = scope.spawn(|| {
            let mut row = 0;
            while !stop.load(Ordering::Relaxed) {
                row = (row + 7919) % rows;
                assert!(store.get(&Key::U64(records.keys[row]), None)?.is_some());
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, forebay_types::Error>(())
        });
        // All pages of the plain records are in memory once each record was read.
        while answered.load(Ordering::Relaxed) < rows as u64 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let layers = store.layers();
        let plain: Vec<LayerId> = layers.iter().map(|layer| layer.id).filter(|id| id.kind == LayerKind::Plain).collect();
        let bytes: usize = layers.iter().filter(|layer| plain.contains(&layer.id)).map(|layer| layer.bytes).sum();
        let resident = resident_bytes();
        let (mut hidden, mut durable) = (Duration::ZERO, Duration::ZERO);
        for &id in &plain {
            let started = Instant::now();
            let dropped = store.drop_layers(&[id])?;
            hidden = hidden.max(dropped);
            durable = durable.max(started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(900));
        let back = resident.saturating_sub(resident_bytes());
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("the reader")?;
        let count = plain.len();
        line(
            format!("dropping a layer under a reader, longest of {count}"),
            hidden.as_secs_f64() * 1e3,
            "ms",
            Bar::ValueAtMost(1.0),
        );
        line("the same until the folder hasn't it", durable.as_secs_f64() * 1e3, "ms", Bar::Nothing);
        let what = format!("memory back within a second, of {bytes} bytes in memory");
        line(what, back as f64 / bytes.max(1) as f64, "of it", Bar::ValueAtLeast(0.9));
        Ok(())
    })?;
    Ok(())
}
