//! What rounds leave in the record.

use forebay_bench_figures::{Entry, Record, Verdict};

use crate::checkout::{BROKEN, Made, SECOND};

fn entry<'a>(record: &'a Record, name: &str) -> &'a Entry {
    record.figures.iter().find(|entry| entry.name == name).unwrap()
}

#[test]
fn benches_take_turns_and_every_round_is_kept() {
    let made = Made::with_second(SECOND);
    let record = made.measured(&Record::empty(), "t1", &["first", "second"], 3);
    assert_eq!(made.text("order"), "first one\nsecond\n".repeat(3));
    let a = entry(&record, "a");
    assert_eq!((a.rounds.len(), a.verdict, a.ratio.unwrap().median), (3, Verdict::Met, 2.0));
    assert_eq!((entry(&record, "b").verdict, entry(&record, "c").verdict), (Verdict::Missed, Verdict::ForTheRecord));
    let starts = &record.runs["t1"].starts;
    assert_eq!(starts.iter().map(|start| start.round).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3]);
    assert!(starts.iter().all(|start| start.error.is_none() && start.load[0] >= 0.0));
}

#[test]
fn a_bench_that_fails_is_in_the_record_with_its_reason() {
    let record = Made::with_second(BROKEN).measured(&Record::empty(), "t1", &["first", "second"], 2);
    let c = entry(&record, "c");
    assert_eq!((c.verdict, c.rounds.len(), c.value), (Verdict::Failed, 2, None));
    assert!(c.error.as_ref().unwrap().contains("no server"), "{c:?}");
    assert!(record.runs["t1"].starts.iter().any(|start| start.bench == "second" && start.error.is_some()));
    assert_eq!(entry(&record, "a").verdict, Verdict::Met, "the others are measured all the same");
}

#[test]
fn figures_that_are_not_run_again_keep_their_own_run() {
    let made = Made::with_second(SECOND);
    let all = made.measured(&Record::empty(), "t1", &["first", "second"], 2);
    let again = made.measured(&all, "t2", &["second"], 4);
    assert_eq!((entry(&again, "a"), entry(&again, "b")), (entry(&all, "a"), entry(&all, "b")));
    assert_eq!((entry(&again, "c").run.as_deref(), entry(&again, "c").rounds.len()), (Some("t2"), 4));
    assert_eq!(again.runs["t1"].commit, "commit of t1");
    assert!(again.runs["t1"].starts.iter().all(|start| start.bench == "first"), "starts of figures that are gone are gone");
}

#[test]
fn a_run_that_no_figure_is_from_any_more_is_dropped() {
    let made = Made::with_second(SECOND);
    let first = made.measured(&Record::empty(), "t1", &["first", "second"], 1);
    let second = made.measured(&first, "t2", &["first", "second"], 1);
    assert_eq!(second.runs.keys().collect::<Vec<_>>(), ["t2"]);
}

#[test]
fn rounds_of_another_command_are_no_rounds_of_this_one() {
    let mut made = Made::with_second(SECOND);
    let record = made.measured(&Record::empty(), "t1", &["first", "second"], 1);
    made.table.benches[0].args = vec!["two".to_owned()];
    let followed = record.follow(&made.table);
    assert_eq!(entry(&followed, "a").verdict, Verdict::NotRunYet);
    assert_eq!(entry(&followed, "c").verdict, Verdict::ForTheRecord);
}

#[test]
fn a_new_bar_is_held_against_the_rounds_that_are_there() {
    let mut made = Made::with_second(SECOND);
    let record = made.measured(&Record::empty(), "t1", &["first"], 1);
    made.table.benches[0].figures[0].bar = Some("<= 1.5x".parse().unwrap());
    assert_eq!(entry(&record.follow(&made.table), "a").verdict, Verdict::Missed);
}

#[test]
fn what_is_written_is_read_again_as_it_was() {
    let record = Made::with_second(BROKEN).measured(&Record::empty(), "t1", &["first", "second"], 2);
    assert_eq!(Record::parse(&record.text()).unwrap(), record);
}

#[test]
fn a_broken_record_says_so_and_what_to_do() {
    for text in ["", "{", "[]", "{\"about\":\"x\",\"runs\":{},\"figures\":[{\"name\":1}]}"] {
        let error = Record::parse(text).unwrap_err().to_string();
        assert!(error.contains("no record of figures") && error.contains("make figures"), "{error}");
    }
}
