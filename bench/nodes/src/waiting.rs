//! What waiting for a socket costs: the smallest program that can be called, and the same one that looks for messages again and again instead, with
//! a core of its own.

use forebay_bench_harness::{Bar, Figure, median};

use crate::echo::{Echo, SMALL};

/// Messages that go together.
const TOGETHER: usize = 16;

/// One message at a time, and 16 by one write, over TCP and by a Unix socket.
pub fn all(requests: usize, rounds: usize) {
    let echo = Echo::start();
    let sizes = (SMALL, SMALL);
    for (unix, way) in [(false, "tcp"), (true, "unix")] {
        let [mut waited, mut polled, mut waited_together, mut polled_together]: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            waited.push(echo.plain(sizes, 1, unix).p50(requests));
            polled.push(echo.polling(sizes, 1, unix).p50(requests));
            waited_together.push(echo.plain(sizes, TOGETHER, unix).rate(requests) * TOGETHER as f64);
            polled_together.push(echo.polling(sizes, TOGETHER, unix).rate(requests) * TOGETHER as f64);
        }
        let print = |what: &str, unit, ours, theirs| {
            let what = format!("{way}, a message of {SMALL} B there and back, {what}: the other side polls");
            Figure::new(what, median(ours), unit, "it waits", median(theirs), Bar::Nothing).print(true);
        };
        print("p50", "us", polled, waited);
        print("16 by one write", "messages/s", polled_together, waited_together);
    }
}
