//! The table of docs/resilience.md: a row a cell, between two markers.

use std::io::{self, Error};
use std::path::Path;

use crate::cells::{CELLS, Cell};
use crate::report::{Outcome, Report};

/// What stands before and behind the table.
const BEGIN: &str = "<!-- storm: begin, written by `make storm STORM_ARGS=--write` -->";
const END: &str = "<!-- storm: end -->";
const HEAD: [&str; 2] = [
    "| cell | verdict | calls | calls that failed | reads p99 before, during | reads back after | last failed write after | seed, commit |",
    "|---|---|---|---|---|---|---|---|",
];
const NOT_RUN: &str = "not run";

/// Puts rows of these reports into a page. Rows of cells that were not run now stay as they are.
pub fn write(page: &Path, reports: &[Report]) -> io::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let changed = with_rows(&text, reports).ok_or_else(|| Error::other(format!("{}: no markers", page.display())))?;
    std::fs::write(page, changed)
}

/// Cells that a page says nothing of: they were not run, or not brought to their end.
pub fn missing(page: &Path) -> io::Result<Vec<Cell>> {
    let text = std::fs::read_to_string(page)?;
    missing_in(&text).ok_or_else(|| Error::other(format!("{}: no markers", page.display())))
}

fn missing_in(text: &str) -> Option<Vec<Cell>> {
    let rows = between(text, BEGIN, END)?;
    let is_there = |cell: &Cell| {
        let first = format!("| {} | ", cell.name);
        let verdict = rows.lines().find_map(|line| line.strip_prefix(&first));
        verdict.is_some_and(|verdict| !verdict.trim_start_matches('*').starts_with(NOT_RUN))
    };
    Some(CELLS.iter().copied().filter(|cell| !is_there(cell)).collect())
}

fn with_rows(text: &str, reports: &[Report]) -> Option<String> {
    let old = between(text, BEGIN, END)?;
    let row_of = |name: &str| {
        let made = reports.iter().rev().find(|report| report.fault == name).map(row);
        let first = format!("| {name} |");
        made.or_else(|| old.lines().find(|line| line.starts_with(&first)).map(str::to_owned))
            .unwrap_or_else(|| format!("{first} {NOT_RUN} |{}", " |".repeat(6)))
    };
    let rows = CELLS.iter().map(|cell| row_of(cell.name));
    let table: Vec<String> = HEAD.iter().map(|line| (*line).to_owned()).chain(rows).collect();
    put(text, BEGIN, END, &table.join("\n"))
}

/// What stands between two markers.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    Some(text.split_once(begin)?.1.split_once(end)?.0)
}

/// Puts a table between two markers.
pub(crate) fn put(text: &str, begin: &str, end: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n\n{table}\n\n{end}{after}"))
}

fn row(report: &Report) -> String {
    let verdict = match report.outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed => {
            let mut rules: Vec<String> = report.first_violations.iter().map(|one| format!("{:?}", one.rule)).collect();
            rules.sort();
            rules.dedup();
            format!("**failed**: {} ({})", report.violations, rules.join(", "))
        }
        Outcome::NotTried => format!("not tried: {}", report.reason.as_deref().unwrap_or_default()),
        Outcome::NotRun => format!("**not run**: {}", report.reason.as_deref().unwrap_or_default().replace(['|', '\n'], " ")),
    };
    if matches!(report.outcome, Outcome::NotTried | Outcome::NotRun) {
        return format!("| {} | {verdict} |{}", report.fault, " |".repeat(6));
    }
    let note = report.note.map(|note| format!(" ({note})")).unwrap_or_default();
    let failed: u64 = report.errors.values().sum();
    let times = report.recovery.map(|recovery| {
        let [before, during] = [recovery.reads_p99_before_us, recovery.reads_p99_during_us].map(millis);
        let writes = if recovery.writes_back_us == 0 { "none".to_owned() } else { millis(Some(recovery.writes_back_us)) };
        format!("{before}, {during} | {} | {writes}", millis(recovery.reads_back_us))
    });
    let (fault, calls, times) = (&report.fault, report.operations, times.unwrap_or_default());
    format!("| {fault} | {verdict}{note} | {calls} | {failed} | {times} | {}, {} |", report.seed, report.commit)
}

fn millis(us: Option<u64>) -> String {
    us.map_or("never".to_owned(), |us| format!("{:.1} ms", us as f64 / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        format!("# Page\n\n{BEGIN}\n{END}\n\nThe rest.\n")
    }

    #[test]
    fn a_cell_that_was_not_run_is_not_passed() {
        let passed = Report::new("calm", 7, Outcome::Passed);
        let hindered = Report::not_tried("clock-worker-back", 7, "needs libfaketime");
        let text = with_rows(&page(), &[passed, hindered]).unwrap();
        assert!(text.starts_with("# Page\n") && text.ends_with("\nThe rest.\n"), "{text}");
        assert!(text.contains("| calm | passed |") && text.contains("| disk-full | not run |"), "{text}");
        assert!(text.contains("| clock-worker-back | not tried: needs libfaketime |"), "{text}");
    }

    #[test]
    fn cells_are_missing_until_they_came_to_their_end() {
        let not_run = Report::not_run("memory", 7, "worker-0 does not come up".to_owned(), None);
        let failed = Report::new("partition", 7, Outcome::Failed);
        let text = with_rows(&page(), &[Report::new("calm", 7, Outcome::Passed), not_run, failed]).unwrap();
        let missing = missing_in(&text).unwrap();
        assert_eq!(missing.len(), CELLS.len() - 2);
        assert!(missing.iter().all(|cell| !["calm", "partition"].contains(&cell.name)));
    }

    #[test]
    fn rows_of_other_faults_stay() {
        let first = with_rows(&page(), &[Report::new("calm", 7, Outcome::Passed)]).unwrap();
        let second = with_rows(&first, &[Report::new("partition", 8, Outcome::Failed)]).unwrap();
        assert!(second.contains("| calm | passed |") && second.contains("| partition | **failed**"), "{second}");
    }

    #[test]
    fn a_fault_whose_cell_did_not_start_says_so_and_keeps_no_older_row() {
        let first = with_rows(&page(), &[Report::new("calm", 7, Outcome::Passed)]).unwrap();
        let failed = Report::not_run("calm", 8, "worker-0 does not come up | see\nits log".to_owned(), None);
        let second = with_rows(&first, &[failed, Report::new("memory", 8, Outcome::Passed)]).unwrap();
        assert!(second.contains("| calm | **not run**: worker-0 does not come up   see its log |"), "{second}");
        assert!(second.contains("| memory | passed |"), "{second}");
    }

    #[test]
    fn an_upgrade_of_one_binary_says_that_it_was_none() {
        let report = Report { note: Some("of one binary"), ..Report::new("rolling-upgrade", 7, Outcome::Passed) };
        let text = with_rows(&page(), &[report]).unwrap();
        assert!(text.contains("| rolling-upgrade | passed (of one binary) |"), "{text}");
    }

    #[test]
    fn a_page_without_markers_is_refused() {
        assert_eq!(with_rows("# Page\n", &[]), None);
    }
}
