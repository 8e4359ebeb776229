//! All tables as text, and what stands above them.

use std::time::Duration;

use forebay_types::{format_bytes, format_duration};

use super::history::{History, Of, Rates};
use super::panes::Pane;
use super::sample::Sample;
use crate::output::format_table;

/// Everything, a line each.
pub(super) fn lines(sample: &Sample, history: &History) -> Vec<String> {
    let mut lines = vec![heading(sample)];
    lines.extend(history.now(&Of::Cluster).map(|rates| happening(&rates)));
    for pane in Pane::ALL {
        let rows: Vec<Vec<String>> = pane
            .lines(sample, history, pane.sorted())
            .into_iter()
            .map(|line| line.into_iter().map(|cell| cell.shown).collect())
            .collect();
        lines.push(String::new());
        if rows.is_empty() {
            lines.push(format!("no {} now", pane.name()));
            continue;
        }
        let titles: Vec<&str> = pane.columns().iter().map(|column| column.title).collect();
        let right: Vec<usize> = (0..titles.len()).filter(|at| pane.columns()[*at].is_number).collect();
        lines.extend(format_table(&titles, &right, &rows));
    }
    lines.extend(warnings(sample));
    lines
}

/// Whose cluster this is.
pub(super) fn heading(sample: &Sample) -> String {
    let status = &sample.status;
    let uptime = format_duration(Duration::from_secs(status.uptime.as_secs()));
    format!("forebay {}, up {uptime}, metadata in {}, epoch {}", status.forebay_version, status.metadata, status.epoch)
}

/// What happens a second.
pub(super) fn happening(rates: &Rates) -> String {
    format!(
        "{} reads/s, {}/s served, {}/s of it from the tiers, {}/s from shared storage",
        rates.reads,
        format_bytes(rates.served_bytes),
        format_bytes(rates.hit_bytes),
        format_bytes(rates.received_bytes)
    )
}

/// What is wrong with workers, in their words.
pub(super) fn warnings(sample: &Sample) -> Vec<String> {
    let of = |(info, _, report): &(forebay_protocol::WorkerInfo, _, forebay_protocol::WorkerReport)| {
        let id = info.id;
        report.warnings.iter().map(move |warning| format!("warning: {id}: {warning}")).collect::<Vec<_>>()
    };
    sample.status.workers.iter().flat_map(of).collect()
}
