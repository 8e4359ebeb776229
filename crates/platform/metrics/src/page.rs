//! The list of metrics in the documents, which is the table in another form.

use std::fmt::Write;
use std::{env, fs};

use crate::table::rows;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/operations.md");
const BEGIN: &str = "<!-- The list is made of crates/platform/metrics/src/table.rs. -->\n";
const END: &str = "<!-- End of the list. -->\n";
/// Writes the list anew instead of comparing it.
const WRITE: &str = "FOREBAY_TEST_WRITE_METRICS";

fn list() -> String {
    let mut list = "| metric | type | labels | what it tells |\n|---|---|---|---|\n".to_string();
    for row in rows() {
        let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(list, "| `{}` | {} | {} | {} |", row.name, row.type_name(), labels.join(", "), row.help);
    }
    list
}

#[test]
fn the_page_lists_the_metrics_of_the_table() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the list has its begin");
    let (there, after) = rest.split_once(END).expect("the list has its end");
    if env::var_os(WRITE).is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}{}{END}{after}", list())).expect("the page can be written");
        return;
    }
    assert!(there == list(), "docs/operations.md lists other metrics than the table: {WRITE}=1 and this test write them anew");
}
