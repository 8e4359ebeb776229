//! Rows of a comparison as a table and as a picture.

use std::fmt::Write;

use forebay_chart::{Chart, Line};

use crate::compare::Row;

/// The titles of [`csv`].
const TITLES: &str = "way,storage,planned,p50_ms,p95_ms,p99_ms,mean_ms,loads,deletes,stalled,misrouted,passed_through,busiest,\
                      utilisation,queries,accesses";

/// Rows as CSV, with a line of titles.
pub fn csv(rows: &[Row]) -> String {
    let mut text = format!("{TITLES}\n");
    for Row { way, outcome: o } in rows {
        let _ = writeln!(
            text,
            "{way},{:.4},{:.4},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{},{},{},{:.4},{:.4},{},{}",
            o.storage,
            o.planned,
            o.p50_ms,
            o.p95_ms,
            o.p99_ms,
            o.mean_ms,
            o.loads,
            o.deletes,
            o.stalled,
            o.misrouted,
            o.passed_through,
            o.busiest,
            o.utilisation,
            o.queries,
            o.accesses
        );
    }
    text
}

/// Storage against latency, a line a way from its median up to its 99th percentile.
pub fn chart(title: &str, rows: &[Row]) -> Chart {
    let line = |row: &Row| {
        let outcome = &row.outcome;
        let points = [outcome.p50_ms, outcome.p99_ms].map(|ms| (outcome.storage, ms.max(0.001)));
        Line { name: row.way.clone(), points: points.to_vec(), dashed: false }
    };
    Chart {
        title: title.to_string(),
        x: "replicas a segment".into(),
        y: "latency of queries, ms: p50 to p99".into(),
        from_zero: false,
        lines: rows.iter().map(line).collect(),
    }
}
