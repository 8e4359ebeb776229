//! Runs and rows as text and as pictures.

use std::fmt::Write;

use forebay_chart::{Chart, Line};

use super::outcome::{ShardSample, ShardsRun};
use super::skew::SkewRow;

/// Samples a line of the table: a minute.
const EVERY: usize = 6;

/// A run minute by minute, then the moves with their reasons: what a person reads.
pub fn shards_table(run: &ShardsRun) -> String {
    let secs = |secs: Option<f64>| secs.map_or("never".to_string(), |secs| format!("{secs:.0} s after the load rose"));
    let mut text = format!("scenario {}, seed {}\n", run.scenario, run.seed);
    let _ = writeln!(text, "adapted  {}\ndrained  {}", secs(run.adapted_secs), secs(run.drained_secs));
    if let Some(repaired) = run.repaired_secs {
        let _ = writeln!(text, "repaired {repaired:.0} s after the loss");
    }
    let _ = writeln!(text, "storage  {:.3}x to {:.3}x to {:.3}x", run.storage_start, run.storage_most, run.storage_end);
    let _ = writeln!(text, "swing    {:.1} % of the target", run.swing * 100.0);
    if let Some(apart) = run.apart {
        let _ = writeln!(text, "apart    {:.1} %, replicas of one shard with a long queue", apart * 100.0);
    }
    let _ = writeln!(text, "\n  minute  offered/s  answered/s   waiting  longest wait  storage  overloaded");
    for samples in run.samples.chunks(EVERY) {
        let mean = |of: fn(&ShardSample) -> f64| samples.iter().map(of).sum::<f64>() / samples.len() as f64;
        let last = &samples[samples.len() - 1];
        let _ = writeln!(
            text,
            "{:8.0}  {:9.1}  {:10.1}  {:8}  {:10.1} s  {:6.3}x  {:10}",
            last.secs / 60.0,
            mean(|sample| sample.offered),
            mean(|sample| sample.answered),
            last.waiting,
            last.wait_secs_max,
            last.storage,
            last.overloaded
        );
    }
    let _ = writeln!(text, "\n  second  worker  shard  level     why");
    for moved in &run.moves {
        let level = format!("{} to {}", moved.from, moved.to);
        let _ = writeln!(text, "{:8.0}  {:6}  {:5}  {level:8}  {}", moved.secs, moved.worker, moved.shard, moved.why);
    }
    text
}

/// A run's samples, with a line of titles.
pub fn shards_csv(run: &ShardsRun) -> String {
    let mut csv = String::from("secs,offered,answered,waiting,wait_secs_max,storage,overloaded\n");
    for ShardSample { secs, offered, answered, waiting, wait_secs_max, storage, overloaded, .. } in &run.samples {
        let _ = writeln!(csv, "{secs},{offered},{answered},{waiting},{wait_secs_max},{storage},{overloaded}");
    }
    csv
}

/// What came, what was answered and what waited over time.
pub fn shards_chart(run: &ShardsRun) -> Chart {
    let line = |name: &str, dashed, of: fn(&ShardSample) -> f64| {
        let points = run.samples.iter().skip(1).map(|sample| (sample.secs / 60.0, of(sample).max(1.0))).collect();
        Line { name: name.into(), points, dashed }
    };
    let lines = vec![
        line("come a second", true, |sample| sample.offered),
        line("answered a second", false, |sample| sample.answered),
        line("wait", false, |sample| sample.waiting as f64),
        line("storage, % of the input", false, |sample| sample.storage * 100.0),
    ];
    let title = format!("Shards under load: {}", run.scenario);
    Chart { title, x: "minutes".into(), y: "requests".into(), from_zero: false, lines }
}

/// Rows as a person reads them: of each way what it answers, and what it sustains.
pub fn skew_table(rows: &[SkewRow]) -> String {
    let titles = ["shards", "storage", "offered/s", "ideal", "navigated", "selective", "even"];
    let mut text = titles.map(|title| format!("{title:>15}")).concat() + "  moves at the end\n";
    for row in rows {
        let ways = [&row.ideal, &row.navigated, &row.selective, &row.even];
        let ways = ways.map(|way| format!("{:>8.1}{:>7.1}", way.answered, way.sustained)).concat();
        let _ = writeln!(text, "{:15}{:14.2}x{:15.1}{ways}  {}", row.shards, row.storage, row.offered, row.navigated.moved);
    }
    text
}

/// Rows with a line of titles.
pub fn skew_csv(rows: &[SkewRow]) -> String {
    let mut csv = String::from("shards,storage,offered");
    ["ideal", "navigated", "selective", "even"].iter().for_each(|way| {
        let _ = write!(csv, ",{way}_answered,{way}_sustained");
    });
    csv.push('\n');
    for SkewRow { shards, storage, offered, ideal, navigated, selective, even, .. } in rows {
        let ways = [ideal, navigated, selective, even].map(|way| format!(",{},{}", way.answered, way.sustained));
        let _ = writeln!(csv, "{shards},{storage},{offered}{}", ways.concat());
    }
    csv
}

/// What is sustained over storage, a line a way.
pub fn skew_chart(rows: &[SkewRow]) -> Chart {
    let line = |name: &str, dashed, of: fn(&SkewRow) -> f64| {
        let points = rows.iter().map(|row| (row.storage, of(row).max(0.1))).collect();
        Line { name: name.into(), points, dashed }
    };
    let lines = vec![
        line("ideal", true, |row| row.ideal.sustained),
        line("navigated", false, |row| row.navigated.sustained),
        line("selective caching", false, |row| row.selective.sustained),
        line("even", false, |row| row.even.sustained),
    ];
    let title = format!("Skewed load on {} shards", rows.first().map_or(0, |row| row.shards));
    Chart { title, x: "storage over input".into(), y: "requests a second that are sustained".into(), from_zero: false, lines }
}
