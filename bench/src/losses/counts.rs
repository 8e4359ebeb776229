//! What became of queries while processes died: done, wrong, failed or hung, and when each counts as which.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// Messages that are kept of failures.
const MESSAGES_MAX: usize = 20;
/// A query hangs after this, or after ten times what it takes undisturbed, whichever is more.
const HANGS_AFTER: Duration = Duration::from_secs(120);
const HANGS_AFTER_TIMES: u32 = 10;

/// How a query ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    /// With another answer than one process gives.
    Wrong(String),
    Failed(String),
    Hung,
}

/// When a query counts as hung that takes so long undisturbed.
pub(super) fn hangs_after(undisturbed: Option<Duration>) -> Duration {
    undisturbed.map_or(HANGS_AFTER, |took| (took * HANGS_AFTER_TIMES).max(HANGS_AFTER))
}

/// Whether an answer is that of one process: rows in any order, numbers but for their last digits, which depend on the order in which
/// they are summed up.
pub(super) fn is_same(answer: &str, alone: &str) -> bool {
    rows(answer) == rows(alone)
}

fn rows(answer: &str) -> Vec<String> {
    let mut rows: Vec<String> = answer.lines().map(|line| line.split(',').map(rounded).collect::<Vec<_>>().join(",")).collect();
    rows.sort();
    rows
}

fn rounded(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') => format!("{number:.6e}"),
        _ => cell.to_string(),
    }
}

/// What became of the queries of a phase.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counts {
    phase: &'static str,
    pub(super) done: u64,
    wrong: u64,
    failed: u64,
    hung: u64,
    /// Done, of all.
    pub(super) ratio: f64,
    /// Of processes.
    pub(super) kills: u64,
    /// Of these, with a query in flight.
    pub(super) kills_in_midst: u64,
    secs_median: f64,
    secs_max: f64,
    /// Failures and wrong answers, by what they said.
    messages: BTreeMap<String, u64>,
    #[serde(skip)]
    took: Vec<Duration>,
}

impl Counts {
    pub(super) fn of(phase: &'static str) -> Self {
        Self { phase, ..Self::default() }
    }

    pub(super) fn add(&mut self, query: &str, ended: Ended, took: Duration) {
        self.took.push(took);
        let message = match ended {
            Ended::Done => {
                self.done += 1;
                return;
            }
            Ended::Wrong(what) => {
                self.wrong += 1;
                format!("{query}: wrong: {what}")
            }
            Ended::Failed(what) => {
                self.failed += 1;
                format!("{query}: {what}")
            }
            Ended::Hung => {
                self.hung += 1;
                format!("{query}: hung")
            }
        };
        if self.messages.len() < MESSAGES_MAX || self.messages.contains_key(&message) {
            *self.messages.entry(message).or_default() += 1;
        }
    }

    /// Sums up.
    pub(super) fn closed(mut self) -> Self {
        self.took.sort();
        self.secs_median = self.took.get(self.took.len() / 2).map_or(0.0, Duration::as_secs_f64);
        self.secs_max = self.took.last().map_or(0.0, Duration::as_secs_f64);
        self.ratio = self.done as f64 / self.all().max(1) as f64;
        self
    }

    /// Wrong or hung: what must never be.
    pub(super) fn worst(&self) -> u64 {
        self.wrong + self.hung
    }

    /// A line for people, and what failed.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{:12} {} done, {} wrong, {} failed, {} hung ({:.1}%); {} kills, {} in the midst of queries; median {:.2} s, longest {:.2} s",
            self.phase,
            self.done,
            self.wrong,
            self.failed,
            self.hung,
            self.ratio * 100.0,
            self.kills,
            self.kills_in_midst,
            self.secs_median,
            self.secs_max
        );
        for (message, count) in &self.messages {
            text += &format!("\n  {count} x {message}");
        }
        text
    }

    fn all(&self) -> u64 {
        self.done + self.wrong + self.failed + self.hung
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_same_in_any_order_and_but_for_last_digits() {
        assert!(is_same("a,n\nx,0.30000000000000004\ny,2\n", "a,n\ny,2\nx,0.3\n"));
        assert!(!is_same("n\n1\n", "n\n2\n") && !is_same("n\n1\n", "n\n1\n1\n"));
    }

    #[test]
    fn a_query_hangs_after_ten_times_its_time_or_two_minutes() {
        assert_eq!(hangs_after(None).as_secs(), 120);
        assert_eq!(hangs_after(Some(Duration::from_secs(5))).as_secs(), 120);
        assert_eq!(hangs_after(Some(Duration::from_secs(20))).as_secs(), 200);
    }

    #[test]
    fn what_was_lost_is_counted_with_its_message() {
        let mut counts = Counts::of("losses");
        let second = Duration::from_secs(1);
        counts.add("q1", Ended::Done, second);
        counts.add("q1", Ended::Failed("no".to_string()), second);
        counts.add("q2", Ended::Hung, second * 3);
        let counts = counts.closed();
        assert_eq!((counts.all(), counts.worst(), counts.secs_max), (3, 1, 3.0));
        assert!((counts.ratio - 1.0 / 3.0).abs() < 1e-9 && counts.text().contains("1 x q1: no"));
    }
}
