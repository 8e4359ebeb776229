//! How calls are timed: the middle time of one after the other, and the rate of many in flight.

use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt};

/// The middle time of `count` calls, one after the other, in microseconds.
pub async fn p50<F: Future<Output = ()>>(count: usize, mut call: impl FnMut(usize) -> F) -> f64 {
    for warm in 0..count / 10 {
        call(warm).await;
    }
    let mut times = Vec::with_capacity(count);
    for at in 0..count {
        let began = Instant::now();
        call(at).await;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    forebay_bench_harness::median(times)
}

/// Calls a second with so many in flight.
pub async fn rate<F: Future<Output = ()>>(count: usize, in_flight: usize, mut call: impl FnMut(usize) -> F) -> f64 {
    let began = Instant::now();
    let mut calls = FuturesUnordered::new();
    for at in 0..count {
        if calls.len() == in_flight {
            calls.next().await;
        }
        calls.push(call(at));
    }
    while calls.next().await.is_some() {}
    count as f64 / began.elapsed().as_secs_f64()
}
