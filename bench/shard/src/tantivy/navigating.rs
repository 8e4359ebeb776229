//! What the slowest searches take while the dial moves beside them: layers are made by another thread, come, and go again.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, line};
use forebay_shard::{LayerId, QueryCounters, Shard};
use forebay_types::{Error, Result};

use super::questions::{Kind, Question};
use crate::subject::construct;

/// What the dial goes up by, as a part of the input.
const MORE: f64 = 0.1;
/// Searches at least, so that one in a hundred is one of several.
const SEARCHES_MIN: usize = 500;

/// Of each kind of question: p99 alone, and beside a dial that moves between `ratio` and a little more.
pub(super) fn figures(
    shard: &Shard,
    (ratio, counters): (f64, &QueryCounters),
    asked: &[(Kind, Vec<Question>)],
    secs: f64,
) -> Result<()> {
    let there: Vec<LayerId> = shard.layers().iter().map(|layer| layer.id).collect();
    let more: Vec<LayerId> = shard.dial(ratio + MORE, counters).into_iter().filter(|id| !there.contains(id)).collect();
    if more.is_empty() {
        return Err(Error::internal(format!("the shard has no layers to get beyond {ratio}x")));
    }
    for (kind, questions) in asked {
        let alone = p99_ms(shard, questions, secs)?;
        let over = AtomicBool::new(false);
        let (during, moves) = std::thread::scope(|scope| -> Result<(f64, u64)> {
            let moving = scope.spawn(|| moves(shard, &more, &over));
            let during = p99_ms(shard, questions, secs);
            over.store(true, Relaxed);
            let moves = moving.join().expect("who moves the dial ends with a result")?;
            Ok((during?, moves))
        })?;
        let what = format!("{} while its dial moves beside it", kind.name());
        Figure::new(format!("{what}: p99"), during, "ms", "alone", alone, Bar::Nothing).print(true);
        line(format!("{what}: times that layers came and went"), moves as f64, "times", Bar::Nothing);
    }
    Ok(())
}

/// Makes layers, adds and drops them, until it is over.
fn moves(shard: &Shard, more: &[LayerId], over: &AtomicBool) -> Result<u64> {
    let mut moves = 0;
    while !over.load(Relaxed) {
        for part in construct(shard, more, 1)?.into_values() {
            shard.add_layer(part)?;
        }
        shard.replace_layers(more, &[]);
        moves += 1;
    }
    Ok(moves)
}

/// Of all questions, one after the other, for so long at least.
fn p99_ms(shard: &Shard, questions: &[Question], secs: f64) -> Result<f64> {
    let (began, mut took) = (Instant::now(), Vec::<Duration>::new());
    for question in questions.iter().cycle() {
        if took.len() >= SEARCHES_MIN && began.elapsed().as_secs_f64() >= secs {
            break;
        }
        let asked = Instant::now();
        black_box(shard.search(&question.query, None, None)?);
        took.push(asked.elapsed());
    }
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).ok_or_else(|| Error::internal("there is nothing to ask"))?;
    Ok(p99.as_secs_f64() * 1e3)
}
