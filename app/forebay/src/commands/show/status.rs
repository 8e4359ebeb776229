//! `forebay status`: processes, tiers, mounts and pins, in the lines that `top` shows as well; and `forebay savings`.

use forebay_api::{Price, Savings, Status, state_name, storage_requests};
use forebay_client::Client;
use forebay_protocol::{ClusterStatus, ControlReply, ControlRequest, WorkerReport};
use forebay_types::{Result, format_bytes, format_duration};

use super::super::mount::describe;
use crate::exit::{Failure, Outcome};
use crate::output::{format_table, show};

pub(crate) async fn run(client: &Client, json: bool) -> Outcome {
    let status = ask(client).await?;
    show(json, &Status::of(&status), |output| output.lines(&lines(&status)))
}

pub(crate) async fn ask(client: &Client) -> Result<Box<ClusterStatus>> {
    match client.control(ControlRequest::Status).await? {
        ControlReply::Status(status) => Ok(status),
        other => Err(other.unexpected()),
    }
}

/// The status for people.
pub(crate) fn lines(status: &ClusterStatus) -> Vec<String> {
    let mut lines = vec![format!(
        "forebay {}, up {}, metadata in {}, epoch {}",
        status.forebay_version,
        format_duration(std::time::Duration::from_secs(status.uptime.as_secs())),
        status.metadata,
        status.epoch
    )];
    section(
        &mut lines,
        "worker",
        &["worker", "address", "location", "state", "dram", "decoded", "disk", "segments", "reads", "served", "from tiers"],
        &[5, 7, 8, 9, 10],
        status.workers.iter().map(|(info, state, report)| {
            let share = (report.bytes_hit * 100).checked_div(report.bytes_served).unwrap_or(0);
            vec![
                info.id.to_string(),
                info.address.clone(),
                info.location.clone(),
                state_name(*state, info.draining, report).to_string(),
                format!("{} of {}", format_bytes(report.dram.1), format_bytes(report.dram.0)),
                decoded(report),
                format!("{} of {}", format_bytes(report.disk.1), format_bytes(report.disk.0)),
                report.segments.to_string(),
                report.reads.to_string(),
                format_bytes(report.bytes_served),
                format!("{share} %"),
            ]
        }),
    );
    let mounts = status.mounts.iter().map(|mount| {
        vec![
            format!("/{}/", mount.mount.name),
            mount.mount.url.clone(),
            storage_requests(&mount.counters).to_string(),
            format_bytes(mount.counters.bytes_in),
            format_bytes(mount.counters.bytes_out),
            describe(&mount.mount),
        ]
    });
    section(&mut lines, "mount", &["mount", "url", "requests", "received", "sent", "options"], &[2, 3, 4], mounts);
    lines.extend(status.pins.iter().map(|pin| format!("pinned: {pin}")));
    for (info, _, report) in &status.workers {
        lines.extend(weighed(report).map(|saves| format!("decoded: {}: {saves}", info.id)));
        lines.extend(report.warnings.iter().map(|warning| format!("warning: {}: {warning}", info.id)));
    }
    lines
}

/// Bytes of decoded columns, and what they may take.
fn decoded(report: &WorkerReport) -> String {
    match report.form_room_bytes {
        0 => format_bytes(report.form_bytes),
        room => format!("{} of {}", format_bytes(report.form_bytes), format_bytes(room)),
    }
}

/// Why they may take that, where there are some and something was measured.
fn weighed(report: &WorkerReport) -> Option<String> {
    let is_measured = report.form_saves_ps > 0 || report.block_saves_ps > 0;
    let [columns, blocks] = [report.form_saves_ps, report.block_saves_ps].map(|saves| saves as f64 * f64::from(1 << 20) / 1e6);
    (report.form_bytes > 0 && is_measured)
        .then(|| format!("a MiB more of memory saves {columns:.1} us a second as columns, and {blocks:.1} as cached blocks"))
}

fn section(lines: &mut Vec<String>, what: &str, titles: &[&str], right: &[usize], rows: impl Iterator<Item = Vec<String>>) {
    lines.push(String::new());
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        lines.push(format!("no {what} yet"));
    } else {
        lines.extend(format_table(titles, right, &rows));
    }
}

/// Shows what shared storage was spared.
pub(crate) async fn savings(client: &Client, price: Price, json: bool) -> Outcome {
    if !price.is_one() {
        return Err(Failure::Usage("prices are numbers from 0 to 10^12: --per-gb 0.02 --per-1000-requests 0.0004".to_string()));
    }
    let savings = Savings::of(&*ask(client).await?, price);
    show(json, &savings, |output| output.lines(&savings.lines()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_decoded_columns_is_shown_with_what_it_goes_by() {
        let silent = WorkerReport { form_bytes: 3 << 20, ..WorkerReport::default() };
        assert_eq!((decoded(&silent).as_str(), weighed(&silent)), ("3.00 MiB", None));
        let told = WorkerReport { form_room_bytes: 8 << 20, form_saves_ps: 1_000, block_saves_ps: 500, ..silent };
        assert_eq!(decoded(&told), "3.00 MiB of 8.00 MiB");
        let why = "a MiB more of memory saves 1048.6 us a second as columns, and 524.3 as cached blocks";
        assert_eq!(weighed(&told).as_deref(), Some(why));
        assert_eq!(weighed(&WorkerReport { form_bytes: 0, ..told }), None, "there are none");
    }
}
