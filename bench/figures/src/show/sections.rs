//! What pages say, from the record alone.

use super::number::{plain, ratio, with_unit};

use crate::{Better, Entry, Record, Run, Verdict};

const HEAD: &str = "| figure | what | Forebay | beside it | ratio | bar | |\n|---|---|---|---|---|---|---|\n";
const GIB: f64 = (1u64 << 30) as f64;

/// The README's section: figures that are chosen for it, and all that missed their bar or failed. `to` is the way from the page to
/// the checkout's root.
pub fn readme_section(record: &Record, to: &str) -> String {
    let is_shown = |entry: &&Entry| entry.is_run() && (entry.readme || is_bad(entry));
    let rows: String = record.figures.iter().filter(is_shown).map(row).collect();
    format!("{}\n\n{HEAD}{rows}", about(record, to))
}

/// The section of all figures, those that nobody has run among them.
pub fn list_section(record: &Record, to: &str) -> String {
    let rows: String = record.figures.iter().map(row).collect();
    let programs = record.figures.iter().map(|entry| format!("| `{}` | `{}` |\n", entry.name, entry.command));
    let programs: String = programs.collect();
    format!("{}\n\n{HEAD}{rows}\nWhat prints each:\n\n| figure | program |\n|---|---|\n{programs}", about(record, to))
}

/// The section of figures whose peer is a physical limit.
pub fn limits_section(record: &Record, to: &str) -> String {
    let rows: String = record.figures.iter().filter(|entry| entry.is_run()).filter_map(limit_row).collect();
    let head =
        "| figure | what | Forebay | physical limit, in the same run | share reached | program |\n|---|---|---|---|---|---|\n";
    format!("{}\n\n{head}{rows}", about(record, to))
}

fn is_bad(entry: &Entry) -> bool {
    matches!(entry.verdict, Verdict::Missed | Verdict::Failed)
}

fn about(record: &Record, to: &str) -> String {
    let mut text = format!(
        "Written by `make figures` from [bench/figures.json]({to}bench/figures.json): medians, and in brackets the least and the most \
         of all rounds; the peer is measured in the same rounds. {}",
        sums(record)
    );
    // The run that most figures are from needs no list of them.
    let main = record.runs.keys().max_by_key(|began| of_run(record, began).count());
    for (began, run) in record.runs.iter().rev() {
        let of = if Some(began) == main { String::new() } else { format!("; {}", names_of(record, began)) };
        text.push_str(&format!("\n- {}{of}", run_line(began, run)));
    }
    text
}

fn sums(record: &Record) -> String {
    let count = |verdict| record.figures.iter().filter(|entry| entry.verdict == verdict).count();
    let said = [
        (Verdict::Met, "met their bar"),
        (Verdict::Missed, "missed it"),
        (Verdict::ForTheRecord, "without a bar"),
        (Verdict::Failed, "failed"),
        (Verdict::NotRunYet, "not run yet"),
    ];
    let parts = said.iter().map(|(verdict, what)| (count(*verdict), what)).filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts.map(|(number, what)| format!("{number} {what}")).collect();
    format!("Of {} figures {}.", record.figures.len(), parts.join(", "))
}

fn names_of(record: &Record, began: &str) -> String {
    format!("of it {}", of_run(record, began).map(|entry| format!("`{}`", entry.name)).collect::<Vec<_>>().join(", "))
}

fn of_run<'a>(record: &'a Record, began: &'a str) -> impl Iterator<Item = &'a Entry> {
    record.figures.iter().filter(move |entry| entry.run.as_deref() == Some(began))
}

fn run_line(began: &str, run: &Run) -> String {
    let loads = || run.starts.iter().map(|start| start.load[0]);
    let (least, most) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
    let secs: f64 = run.starts.iter().map(|start| start.secs).sum();
    let others: f64 = run.starts.iter().map(|start| start.others_busy * start.secs).sum();
    let machine = &run.machine;
    format!(
        "{began}, commit `{}`{}, rounds: {}; {}, {} cores, {:.1} GiB, Linux {}; load average {} to {} when benches began, and \
         others took {:.0} % of the processors meanwhile",
        run.commit,
        if run.changed { " with changes" } else { "" },
        run.rounds,
        machine.cpu,
        machine.cores,
        machine.memory_bytes as f64 / GIB,
        machine.kernel,
        plain(if least.is_finite() { least } else { 0.0 }),
        plain(most),
        others / secs.max(f64::MIN_POSITIVE) * 100.0
    )
}

fn row(entry: &Entry) -> String {
    let ours = entry.value.map(|value| with_unit(&value, &entry.unit)).unwrap_or_default();
    let peer = entry.peer.as_ref().map(|peer| format!("{}, {}", with_unit(&peer.spread, &entry.unit), peer.says));
    let cells = [
        format!("`{}`", entry.name),
        entry.says.clone(),
        ours,
        peer.unwrap_or_default(),
        entry.ratio.as_ref().map(ratio).unwrap_or_default(),
        entry.bar.clone().unwrap_or_default(),
        outcome(entry),
    ];
    line(&cells)
}

fn outcome(entry: &Entry) -> String {
    let of_rounds = || {
        let failed = entry.rounds.iter().filter(|point| point.error.is_some()).count();
        format!("{failed} of {} rounds", entry.rounds.len())
    };
    match entry.verdict {
        Verdict::Met => "met".to_owned(),
        Verdict::Missed => "**missed**".to_owned(),
        Verdict::ForTheRecord => String::new(),
        Verdict::NotRunYet => "not run yet".to_owned(),
        Verdict::Failed => format!("**failed** in {}: {}", of_rounds(), entry.error.as_deref().unwrap_or_default()),
    }
}

fn limit_row(entry: &Entry) -> Option<String> {
    let (limit, ours, peer, ratio) = (entry.limit.as_ref()?, entry.value?, entry.peer.as_ref()?, entry.ratio?);
    // A ratio of time tells how much longer, a share how much of the limit is had.
    let share = if entry.better == Better::More { ratio.median } else { 1.0 / ratio.median };
    Some(line(&[
        format!("`{}`", entry.name),
        entry.says.clone(),
        with_unit(&ours, &entry.unit),
        format!("{}: {}, {limit}", peer.says, with_unit(&peer.spread, &entry.unit)),
        format!("{:.0} %", share * 100.0),
        format!("`{}`", entry.command),
    ]))
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, Table};

    const TABLE: &str = "[[bench]]\nname = 'b'\npackage = 'prog'\nargs = ['x']\n\
        [[bench.figure]]\nname = 'hit'\nsays = 'a hit'\nline = { what = 'hit' }\nunit = 'us'\npeer = 'pread'\nbar = '<= 2x'\nlimit = 'the page cache'\n\
        [[bench.figure]]\nname = 'miss'\nsays = 'a miss'\nline = { what = 'miss' }\nunit = 'ops/s'\nbar = '>= 10 ops/s'\n\
        [[bench.figure]]\nname = 'broken'\nsays = 'a | pipe'\nline = { what = 'broken' }\nunit = 'ops/s'\n\
        [[bench.figure]]\nname = 'later'\nsays = 'nobody'\nline = { what = 'later' }\nunit = 'ops/s'\n";

    fn point(value: f64, peer: Option<f64>) -> Point {
        Point { value: Some(value), peer, error: None }
    }

    fn record() -> Record {
        let table = Table::parse(TABLE).unwrap();
        let rounds = |name: &str| match name {
            "hit" => vec![point(10.0, Some(5.0)), point(11.0, Some(5.5)), point(8.0, Some(5.0))],
            "miss" => vec![point(9.0, None)],
            "broken" => vec![point(1.0, None), Point::failed("no\nserver".to_owned())],
            _ => Vec::new(),
        };
        let entries = table.figures().map(|(bench, figure)| {
            let run = Some("2026".to_owned());
            Entry::judge(bench, figure, run, rounds(&figure.name))
        });
        Record { figures: entries.collect(), ..Record::empty() }
    }

    #[test]
    fn misses_and_failures_stand_in_the_readme_though_nobody_chose_them() {
        let page = readme_section(&record(), "");
        assert!(page.contains("| `miss` | a miss | 9 ops/s |  |  | >= 10 ops/s | **missed** |"), "{page}");
        assert!(page.contains("| `broken` | a \\| pipe | 1 ops/s |  |  |  | **failed** in 1 of 2 rounds: no server |"), "{page}");
        assert!(!page.contains("`hit`") && !page.contains("`later`"), "{page}");
        assert!(page.contains("Of 4 figures 1 met their bar, 1 missed it, 1 failed, 1 not run yet."), "{page}");
    }

    #[test]
    fn the_list_has_every_figure_and_its_program() {
        let page = list_section(&record(), "../");
        assert!(page.contains("(../bench/figures.json)"), "{page}");
        assert!(
            page.contains("| `hit` | a hit | 10 us (8 to 11) | 5 us (5 to 5.50), pread | 2x (1.60 to 2) | <= 2x | met |"),
            "{page}"
        );
        assert!(
            page.contains("| `later` | nobody |  |  |  |  | not run yet |") && page.contains("| `later` | `prog x` |"),
            "{page}"
        );
    }

    #[test]
    fn a_share_of_a_limit_is_the_part_that_is_reached_whichever_way_is_better() {
        let page = limits_section(&record(), "../");
        assert!(page.contains("| pread: 5 us (5 to 5.50), the page cache | 50 % | `prog x` |"), "{page}");
        assert_eq!(page.matches("\n| `").count(), 1, "only figures that have a limit and were measured: {page}");
    }
}
