//! All metrics of the process as text.

use crate::row::Row;
use crate::table::TABLE;

/// Shows the metrics of a role (`worker`, say) that have no labels from now on, at 0: for who asks by how much a counter grew, one that
/// appears with its first event has not grown.
pub fn begin(role: &str) {
    let is_of = |row: Row| {
        row.name.strip_prefix("forebay_").and_then(|rest| rest.strip_prefix(role)).is_some_and(|rest| rest.starts_with('_'))
    };
    TABLE.iter().filter(|metric| is_of(metric.row())).for_each(|metric| metric.begin());
}

/// All metrics of this process that have a value, in the order of the table.
pub fn text() -> String {
    let mut text = String::new();
    TABLE.iter().for_each(|metric| metric.write(&mut text));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_begins_shows_what_has_no_labels() {
        assert!(!text().contains("forebay_gateway_"));
        begin("gateway");
        let text = text();
        assert!(text.contains("\nforebay_gateway_received_bytes_total 0\n"), "{text}");
        assert!(!text.contains("forebay_gateway_requests_total"), "nobody knows the values of its labels yet");
    }
}
