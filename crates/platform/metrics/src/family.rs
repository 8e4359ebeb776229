//! A metric's series: one for each set of values that its labels have had.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::row::Row;
use crate::value::{Counter, Gauge, Histogram, Value};
use crate::write::{Listed, write_series};

/// Series of one metric at most. What is recorded beyond them is shown nowhere: a scraper that is flooded shows nothing at all.
const SERIES_MAX: usize = 10_000;

/// Counters of one name.
pub type Counters<const LABELS: usize> = Family<Counter, LABELS>;
/// Gauges of one name.
pub type Gauges<const LABELS: usize> = Family<Gauge, LABELS>;
/// Histograms of one name.
pub type Histograms<const LABELS: usize> = Family<Histogram, LABELS>;

/// A row of the table with its values in this process.
pub struct Family<V, const LABELS: usize> {
    row: Row,
    /// In the order of their labels' values.
    series: RwLock<Vec<Series<V, LABELS>>>,
}

/// The values of the labels, and the metric's value for them.
type Series<V, const LABELS: usize> = ([Box<str>; LABELS], Arc<V>);

impl<V: Value, const LABELS: usize> Family<V, LABELS> {
    pub(crate) const fn new(row: Row) -> Self {
        assert!(row.labels.len() == LABELS, "a value a label");
        Self { row, series: RwLock::new(Vec::new()) }
    }

    /// The value for these values of the labels, in the order of the row. There must be few different ones.
    pub fn with(&self, labels: [&str; LABELS]) -> Arc<V> {
        let find = |series: &Vec<Series<V, LABELS>>| series.binary_search_by(|(have, _)| compare(have, labels));
        {
            let series = self.series.read();
            if let Ok(at) = find(&series) {
                return Arc::clone(&series[at].1);
            }
        }
        let mut series = self.series.write();
        match find(&series) {
            Ok(at) => Arc::clone(&series[at].1),
            Err(at) => {
                let value = Arc::new(V::new(self.row.kind));
                if series.len() < SERIES_MAX {
                    series.insert(at, (labels.map(Box::from), Arc::clone(&value)));
                }
                value
            }
        }
    }

    /// Shows these series and no others, for what is asked for when somebody scrapes. Each set of labels comes once.
    pub fn show(&self, all: impl IntoIterator<Item = ([String; LABELS], V)>) {
        let series =
            all.into_iter().take(SERIES_MAX).map(|(labels, value)| (labels.map(String::into_boxed_str), Arc::new(value)));
        let mut series: Vec<_> = series.collect();
        series.sort_by(|(one, _), (other, _)| one.cmp(other));
        *self.series.write() = series;
    }
}

impl<V: Value> Family<V, 0> {
    /// The one value of a metric without labels.
    pub fn only(&self) -> Arc<V> {
        self.with([])
    }
}

fn compare<const LABELS: usize>(have: &[Box<str>; LABELS], wanted: [&str; LABELS]) -> std::cmp::Ordering {
    have.iter().map(|value| &**value).cmp(wanted)
}

impl<V: Value, const LABELS: usize> Listed for Family<V, LABELS> {
    fn row(&self) -> Row {
        self.row
    }

    fn begin(&self) {
        if let Ok(labels) = <[&str; LABELS]>::try_from([].as_slice()) {
            self.with(labels);
        }
    }

    fn write(&self, text: &mut String) {
        let series = self.series.read();
        write_series(text, &self.row, series.iter().map(|(labels, value)| (labels.as_slice(), &**value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Kind;

    const ROW: Row = Row { name: "forebay_test_total", kind: Kind::Counter, help: "Of a test.", labels: &["one", "two"] };

    #[test]
    fn labels_that_only_together_read_the_same_are_different_series() {
        let family = Counters::<2>::new(ROW);
        family.with(["ab", "c"]).add(1);
        family.with(["a", "bc"]).add(2);
        family.with(["ab", "c"]).add(4);
        let mut text = String::new();
        family.write(&mut text);
        let of = |labels: &str, number| format!("forebay_test_total{{{labels}}} {number}\n");
        let series = of("one=\"a\",two=\"bc\"", 2) + &of("one=\"ab\",two=\"c\"", 5);
        assert_eq!(text, "# HELP forebay_test_total Of a test.\n# TYPE forebay_test_total counter\n".to_string() + &series);
    }

    #[test]
    fn the_number_of_series_has_an_end() {
        let family = Counters::<2>::new(ROW);
        (0..SERIES_MAX + 5).for_each(|number| family.with([&number.to_string(), ""]).add(1));
        assert_eq!(family.series.read().len(), SERIES_MAX);
    }

    #[test]
    fn what_is_shown_replaces_what_was_there() {
        let family = Counters::<2>::new(ROW);
        family.with(["gone", ""]).add(1);
        family.show([(["z".to_string(), String::new()], Counter::at(2)), (["b".to_string(), String::new()], Counter::at(3))]);
        let mut text = String::new();
        family.write(&mut text);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, ["forebay_test_total{one=\"b\",two=\"\"} 3", "forebay_test_total{one=\"z\",two=\"\"} 2"]);
        family.show([]);
        text.clear();
        family.write(&mut text);
        assert_eq!(text, "", "a metric without series is not named");
    }
}
