//! `forebay top`: the status over and over, with rates worked out from what changed between two looks.

use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_protocol::ClusterStatus;
use forebay_types::format_bytes;

use super::status::{ask, lines};
use crate::exit::Outcome;
use crate::output::Output;

/// Clears the terminal and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the status again and again with what happens a second, until Ctrl-C; once where no terminal is.
pub(crate) async fn run(client: &Client, interval: Duration) -> Outcome {
    let mut output = Output::new(false);
    let mut before: Option<(Instant, Totals)> = None;
    loop {
        let status = ask(client).await?;
        let (now, totals) = (forebay_runtime::now(), Totals::of(&status));
        let mut text = lines(&status);
        if let Some((then, old)) = &before {
            text.insert(1, totals.rates(old, now.duration_since(*then)));
        }
        if Output::is_terminal() {
            output.bytes(CLEAR.as_bytes())?;
        }
        for line in text {
            output.line(&line)?;
        }
        output.finish()?;
        if !Output::is_terminal() {
            return Ok(());
        }
        before = Some((now, totals));
        forebay_runtime::time::sleep(interval).await;
    }
}

/// Sums over all workers and mounts.
struct Totals {
    reads: u64,
    served: u64,
    hit: u64,
    received: u64,
}

impl Totals {
    fn of(status: &ClusterStatus) -> Self {
        let workers = || status.workers.iter().map(|(_, _, report)| report);
        Self {
            reads: workers().map(|report| report.reads).sum(),
            served: workers().map(|report| report.bytes_served).sum(),
            hit: workers().map(|report| report.bytes_hit).sum(),
            received: status.mounts.iter().map(|mount| mount.counters.bytes_in).sum(),
        }
    }

    /// What happened a second since `old`. A worker that restarted counts from zero again; its past is left out.
    fn rates(&self, old: &Self, time: Duration) -> String {
        let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / time.as_secs_f64().max(1e-3)) as u64;
        format!(
            "{} reads/s, {}/s served, {}/s of it from the tiers, {}/s from shared storage",
            rate(self.reads, old.reads),
            format_bytes(rate(self.served, old.served)),
            format_bytes(rate(self.hit, old.hit)),
            format_bytes(rate(self.received, old.received))
        )
    }
}
