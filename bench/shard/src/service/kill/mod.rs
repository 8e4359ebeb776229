//! A worker is killed under load.

pub(crate) mod repair;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, line, median};
use forebay_types::{Error, Result};
use tokio::sync::Mutex;

use super::data::{Data, literal};
use super::rig::{Rig, Settings};
use super::wait::until_at_rest;
use crate::workload::Skew;

const ASKERS: usize = 8;
/// p99 is told of so much time.
const WINDOW: Duration = Duration::from_millis(500);
/// p99 is back when it is at most so many times what it was, and stays so.
const BACK: f64 = 2.0;
/// How long the load goes on after the kill.
const AFTER: Duration = Duration::from_secs(20);

/// What askers saw: when a get ended, and how long it took.
#[derive(Default)]
struct Seen {
    wrong: AtomicU64,
    failed: AtomicU64,
    took: Mutex<Vec<(Instant, Duration)>>,
}

pub(crate) async fn figures(data: &Data, seconds: u64) -> Result<()> {
    let mut rig = Rig::start(Settings::default()).await?;
    let shards = rig.create(data, "kill.shards", 8, vec![0.9, 0.5]).await?;
    until_at_rest(&shards, data).await?;
    let (seen, stop) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let keys = data.gets(Skew::Zipf, 100_000, 3);
    let asker = |asker: usize| {
        let (shards, seen, stop, keys) = (&shards, &seen, &stop, &keys);
        async move {
            let mine = keys.iter().skip(asker).step_by(ASKERS).cycle().take_while(|_| !stop.load(Relaxed));
            for key in mine {
                let began = Instant::now();
                match shards.get(&literal(*key)?, None).await {
                    Ok(answer) if data.is_right(*key, answer.as_ref()) => {}
                    Ok(_) => _ = seen.wrong.fetch_add(1, Relaxed),
                    Err(_) => _ = seen.failed.fetch_add(1, Relaxed),
                }
                seen.took.lock().await.push((Instant::now(), began.elapsed()));
            }
            Ok::<_, Error>(())
        }
    };
    let began = Instant::now();
    let killing = async {
        // The first seconds are of an askers' beginning.
        tokio::time::sleep(Duration::from_secs(seconds.max(2) * 2)).await;
        let killed = Instant::now();
        drop(rig.workers.remove(0));
        tokio::time::sleep(AFTER).await;
        stop.store(true, Relaxed);
        killed
    };
    let (asked, killed) = futures::join!(futures::future::try_join_all((0..ASKERS).map(asker)), killing);
    asked?;
    let took = seen.took.lock().await;
    let before = median(windows(&took, began + Duration::from_secs(1), killed)?);
    let after = windows(&took, killed, killed + AFTER - WINDOW)?;
    let last = after.iter().rposition(|p99| *p99 > BACK * before);
    let back = last.map_or(0.0, |at| (at + 1) as f64 * WINDOW.as_secs_f64());
    let what = format!("kill -9 of one of 4 workers under {} gets a second", rate(&took, began, killed));
    let count = |value: &AtomicU64| value.load(Relaxed) as f64;
    line(format!("{what}: wrong"), count(&seen.wrong), "answers", Bar::ValueAtMost(0.0));
    line(format!("{what}: failed"), count(&seen.failed), "answers", Bar::ValueAtMost(0.0));
    line(format!("{what}: p99 within {BACK}x of before again"), back, "s", Bar::ValueAtMost(10.0));
    let worst = after.iter().copied().fold(0.0, f64::max);
    let what = format!("{what}: worst p99 of half a second after it");
    Figure::new(what, worst, "ms", "p99 before", before, Bar::Nothing).print(true);
    Ok(())
}

fn rate(took: &[(Instant, Duration)], from: Instant, to: Instant) -> u64 {
    let count = took.iter().filter(|(ended, _)| (from..to).contains(ended)).count();
    (count as f64 / (to - from).as_secs_f64()) as u64
}

/// The p99 of each window, in milliseconds; a window in which nothing ended took as long as it is.
fn windows(took: &[(Instant, Duration)], from: Instant, to: Instant) -> Result<Vec<f64>> {
    let count = ((to - from).as_secs_f64() / WINDOW.as_secs_f64()) as u32;
    if count == 0 {
        return Err(Error::invalid("the load is too short to tell p99: --seconds"));
    }
    let p99 = |window: u32| {
        let (from, to) = (from + WINDOW * window, from + WINDOW * (window + 1));
        let mut ended: Vec<_> = took.iter().filter(|(ended, _)| (from..to).contains(ended)).map(|(_, took)| *took).collect();
        ended.sort();
        ended.get(ended.len() * 99 / 100).map_or(WINDOW.as_secs_f64(), Duration::as_secs_f64) * 1e3
    };
    Ok((0..count).map(p99).collect())
}
