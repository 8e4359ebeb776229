//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use crate::row::Row;
use crate::value::Value;

/// A metric of the table, whatever its type and labels.
pub(crate) trait Listed: Sync {
    fn row(&self) -> Row;

    /// Shows it from now on where it has no labels.
    fn begin(&self);

    /// Appends all of it, where there is anything.
    fn write(&self, text: &mut String);
}

/// The head of a metric, once, and its series.
pub(crate) fn write_series<'a, V: Value + 'a>(
    text: &mut String,
    row: &Row,
    series: impl Iterator<Item = (&'a [Box<str>], &'a V)>,
) {
    let mut series = series.peekable();
    if series.peek().is_none() {
        return;
    }
    let Row { name, help, labels, .. } = row;
    let head = format!("# HELP {name} {}\n# TYPE {name} {}\n", escaped(help, false), row.type_name());
    text.push_str(&head);
    for (values, value) in series {
        value.write(&mut |suffix, label, number| {
            let own = labels.iter().copied().zip(values.iter().map(|value| &**value));
            let pairs: Vec<_> = own.chain(label).map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
            let (open, close) = if pairs.is_empty() { ("", "") } else { ("{", "}") };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name}{suffix}{open}{}{close} {number}", pairs.join(","));
        });
    }
}

fn escaped(text: &str, in_quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if in_quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Kind;
    use crate::value::Gauge;

    #[test]
    fn values_of_labels_are_escaped_as_the_format_wants_it() {
        let row = Row { name: "forebay_test", kind: Kind::Gauge, help: "A \\ and\na line.", labels: &["mount"] };
        let (labels, gauge, mut text) = ([Box::from("a\"b\\c\nd")], Gauge::at(1.5), String::new());
        write_series(&mut text, &row, std::iter::once((&labels[..], &gauge)));
        let expected =
            "# HELP forebay_test A \\\\ and\\na line.\n# TYPE forebay_test gauge\nforebay_test{mount=\"a\\\"b\\\\c\\nd\"} 1.5\n";
        assert_eq!(text, expected);
    }
}
