//! Ways as text and as a picture.

use std::fmt::Write;

use forebay_chart::{Chart, Line};

use super::RepairWay;

/// Minutes before and after the loss that are drawn.
const MINUTES: (f64, f64) = (-3.0, 17.0);

/// Ways as a person reads them.
pub fn repair_table(ways: &[RepairWay]) -> String {
    let secs = |secs: Option<f64>| secs.map_or("never".to_string(), |secs| format!("{secs:.0} s"));
    let titles = ["stored", "moved", "repaired", "restored", "offered/s", "before/s", "during/s"];
    let mut text = format!("{:24}{}\n", "way", titles.map(|title| format!("{title:>11}")).concat());
    for way in ways {
        let RepairWay { way: name, stored, moved, offered, before, during, .. } = way;
        let times = [way.repaired_secs, way.restored_secs].map(|time| format!("{:>11}", secs(time))).concat();
        let _ = writeln!(text, "{name:24}{stored:>10.2}x{moved:>10.3}x{times}{offered:>11.1}{before:>11.1}{during:>11.1}");
    }
    text
}

/// What each way answered over time, with a line of titles.
pub fn repair_csv(ways: &[RepairWay]) -> String {
    let mut csv = String::from("way,secs,answered\n");
    for way in ways {
        for (secs, answered) in &way.answered {
            let _ = writeln!(csv, "\"{}\",{secs},{answered}", way.way);
        }
    }
    csv
}

/// What each way answers of what comes, over time (figure 7).
pub fn repair_chart(ways: &[RepairWay]) -> Chart {
    let line = |way: &RepairWay| {
        let percent = way.answered.iter().map(|(secs, answered)| (secs / 60.0, answered / way.offered * 100.0));
        let points = percent.filter(|(minute, _)| *minute >= MINUTES.0 && *minute <= MINUTES.1).collect();
        Line { name: way.way.into(), points, dashed: false }
    };
    Chart {
        title: "One of twelve workers is lost".into(),
        x: "minutes from the loss".into(),
        y: "percent of requests that are answered".into(),
        from_zero: true,
        lines: ways.iter().map(line).collect(),
    }
}
