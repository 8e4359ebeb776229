//! Pages say what the record says, and what was edited by hand shows.

use forebay_bench_figures::{Checkout, Record, Table, pages};

use crate::checkout::{BROKEN, Made, SECOND};

/// The checkout's own. `make figures-pages` writes the pages again.
#[test]
fn the_pages_of_this_checkout_say_what_its_figures_are() {
    let checkout = Checkout::own();
    let table = Table::read(&checkout.table()).unwrap();
    assert_eq!(pages::differing(&checkout, &table).unwrap(), Vec::<String>::new());
}

fn written(second: &str) -> Made {
    let made = Made::with_second(second);
    let record = made.measured(&Record::empty(), "t1", &["first", "second"], 2);
    pages::write(&made.checkout, &record).unwrap();
    made
}

fn differing(made: &Made) -> Vec<String> {
    pages::differing(&made.checkout, &made.table).unwrap()
}

#[test]
fn what_was_just_written_does_not_differ() {
    let made = written(SECOND);
    assert_eq!(differing(&made), Vec::<String>::new());
    assert!(made.text("README.md").starts_with("head\n") && made.text("README.md").ends_with("tail\n"));
}

#[test]
fn a_figure_that_is_edited_in_a_page_shows() {
    let made = written(SECOND);
    made.edit("README.md", "9 ops/s", "90 ops/s");
    assert_eq!(differing(&made), ["README.md does not say what bench/figures.json says"]);
}

#[test]
fn a_figure_that_is_edited_in_the_record_shows_though_the_page_is_edited_along() {
    let made = written(SECOND);
    made.edit("bench/figures.json", "\"median\": 9.0", "\"median\": 90.0");
    assert!(differing(&made)[0].starts_with("bench/figures.json is not what follows from its rounds"), "{:?}", differing(&made));
}

#[test]
fn a_failure_is_a_row_of_the_readme() {
    let readme = written(BROKEN).text("README.md");
    assert!(readme.contains("**failed** in 2 of 2 rounds") && readme.contains("no server"), "{readme}");
}

#[test]
fn a_page_names_the_commit_of_each_run_and_the_figures_of_the_smaller_one() {
    let made = written(SECOND);
    let record = Record::read(&made.checkout.record()).unwrap();
    pages::write(&made.checkout, &made.measured(&record, "t2", &["second"], 1)).unwrap();
    let page = made.text("docs/benchmarks.md");
    let line = |began: &str| page.lines().find(|line| line.starts_with(&format!("- {began}"))).unwrap().to_owned();
    assert!(line("t1").contains("`commit of t1`") && !line("t1").contains("of it"), "{page}");
    assert!(line("t2").contains("`commit of t2`") && line("t2").ends_with("of it `c`"), "{page}");
}

#[test]
fn a_page_without_markers_is_named() {
    let made = written(SECOND);
    made.edit("docs/limits.md", "<!-- limits:end -->", "");
    let error = pages::differing(&made.checkout, &made.table).unwrap_err().to_string();
    assert!(error.contains("limits:end") && error.contains("docs/limits.md"), "{error}");
}
