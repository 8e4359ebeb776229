//! The table of docs/resilience.md: the last soak, between two markers.

use std::io::{self, Error};
use std::path::Path;

use super::Verdict;
use super::growth::Growth;
use crate::report::Outcome;
use crate::table;

/// What stands before and behind the table.
const BEGIN: &str = "<!-- soak: begin, written by `make soak SOAK_ARGS=--write` -->";
const END: &str = "<!-- soak: end -->";
const HEAD: &str = "\
| minutes, a fault each | verdict | calls | calls that failed | minutes whose reads were not back within 10 s | limit on memory | seed, commit |
|---|---|---|---|---|---|---|";
const HEAD_OF_PROCESSES: &str = "\
| process | MiB of its own, at last | MiB an hour | over hours | descriptors at rest, at first and at last | tasks | threads |
|---|---|---|---|---|---|---|";

/// Puts what a soak came to into a page, in the place of the one before.
pub fn write(page: &Path, verdict: &Verdict) -> io::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let changed = with(&text, verdict).ok_or_else(|| Error::other(format!("{}: no markers", page.display())))?;
    std::fs::write(page, changed)
}

fn with(text: &str, verdict: &Verdict) -> Option<String> {
    let processes: Vec<String> = verdict.growth.iter().map(of_process).collect();
    let rows = [HEAD, &of(verdict), "", HEAD_OF_PROCESSES, &processes.join("\n")].join("\n");
    table::put(text, BEGIN, END, rows.trim_end())
}

fn of(verdict: &Verdict) -> String {
    let Verdict { minutes, operations, failed, late, seed, commit, .. } = verdict;
    let reason = verdict.reason.as_deref().map(|reason| format!(": {}", reason.replace(['|', '\n'], " "))).unwrap_or_default();
    let outcome = match verdict.outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed => format!("**failed**: {}{reason}", verdict.violations),
        Outcome::NotRun | Outcome::NotTried => format!("**not run**{reason}"),
    };
    let limit = match (verdict.memory_limit, &verdict.no_limit) {
        (Some(bytes), _) => format!("{} MiB", bytes >> 20),
        (None, why) => format!("none: {}", why.as_deref().unwrap_or_default().replace(['|', '\n'], " ")),
    };
    format!("| {minutes} | {outcome} | {operations} | {failed} | {late} | {limit} | {seed}, {commit} |")
}

fn of_process(growth: &Growth) -> String {
    let Growth { process, mib, hours, .. } = growth;
    let slope = growth.mib_per_hour.map_or("not told".to_owned(), |slope| format!("{slope:.2}"));
    let [descriptors, tasks, threads] = [growth.descriptors, growth.tasks, growth.threads]
        .map(|thirds| thirds.map_or("not told".to_owned(), |(first, last)| format!("{first}, {last}")));
    format!("| {process} | {mib:.1} | {slope} | {hours:.2} | {descriptors} | {tasks} | {threads} |")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(minutes: u64) -> Verdict {
        let (descriptors, tasks, threads) = (Some((31, 30)), Some((44, 40)), None);
        let process = "coordinator".to_owned();
        let growth = Growth { process, hours: 1.2, mib_per_hour: Some(0.25), mib: 61.0, descriptors, tasks, threads };
        Verdict {
            seed: 7,
            commit: "0123456789ab",
            minutes,
            no_limit: Some("a | b".to_owned()),
            operations: 5,
            failed: 1,
            growth: vec![growth],
            ..Verdict::default()
        }
    }

    #[test]
    fn a_soak_takes_the_place_of_the_one_before() {
        let page = format!("# Page\n\n{BEGIN}\n{END}\n\nThe rest.\n");
        let first = with(&page, &verdict(20)).unwrap();
        assert!(first.contains("| 20 | passed | 5 | 1 | 0 | none: a   b | 7, 0123456789ab |"), "{first}");
        assert!(first.contains("| coordinator | 61.0 | 0.25 | 1.20 | 31, 30 | 44, 40 | not told |"), "{first}");
        let second = with(&first, &verdict(120)).unwrap();
        assert!(second.contains("| 120 | passed |") && !second.contains("| 20 |"), "{second}");
        assert!(second.starts_with("# Page\n") && second.ends_with("\nThe rest.\n"), "{second}");
        assert_eq!(with("# Page\n", &verdict(1)), None);
    }

    #[test]
    fn one_that_failed_says_so() {
        let failed = Verdict { outcome: Outcome::Failed, violations: 3, ..verdict(20) };
        assert!(of(&failed).contains("| **failed**: 3 |"), "{}", of(&failed));
        let reason = Some("no |\nstore".to_owned());
        let not_run = Verdict { outcome: Outcome::NotRun, reason, ..verdict(20) };
        assert!(of(&not_run).contains("| **not run**: no   store |"), "{}", of(&not_run));
    }
}
