//! Workloads by themselves: how logs are read and refused, and how long queries are.

use forebay_simulation::{Recorded, Synthetic};

#[test]
fn a_log_is_read_with_or_without_titles() {
    let log = "timestamp,path,bytes\n2.0,b,5\n1.0,a,10\n1.0,c,1\n\n1.0,a,12\n";
    let recorded = Recorded::parse(log).expect("it is a log");
    assert_eq!(recorded.paths, ["b", "a", "c"]);
    assert_eq!(recorded.bytes, [5, 12, 1]);
    let queries: Vec<(u64, Vec<u32>)> = recorded.queries.iter().map(|query| (query.at, query.segments.clone())).collect();
    assert_eq!(queries, [(0, vec![1, 2]), (1_000_000, vec![0])]);
    assert_eq!(recorded.mean_accesses(), 1.5);
}

#[test]
fn a_log_that_is_none_names_its_line() {
    for (log, place) in
        [("1,a,5\nnow,a,5\n", "line 2"), ("1,a\n", "line 1"), ("1,a,-3\n", "line 1"), ("t,p,b\nNaN,a,1", "line 2")]
    {
        let error = Recorded::parse(log).expect_err("it is no log");
        assert!(error.message().contains(place), "{log:?}: {error}");
    }
    assert!(Recorded::parse("timestamp,path,bytes\n").is_err());
}

#[test]
fn queries_are_longer_with_more_to_read() {
    let of = |segments| Synthetic::new(segments, 0.99).mean_accesses();
    assert_eq!(of(1), 1.0);
    assert!(of(10) < of(100) && of(100) < of(1000) && of(1000) < 6.4, "{}", of(1000));
}
