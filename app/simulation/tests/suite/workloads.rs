//! Workloads by themselves: how logs are read and refused, and how long queries are.

use forebay_simulation::{FIGURES, Recorded, Synthetic, figure, skew_of_trace};

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

#[test]
fn a_trace_shows_how_its_reads_fall_by_popularity_and_by_age() {
    // Of four objects the first one is read as often as the others together, and last.
    let log = "1,a,1\n2,b,1\n3,c,1\n4,d,1\n5,a,1\n6,a,1\n";
    let chart = skew_of_trace("a log", &Recorded::parse(log).expect("it is a log"));
    let [popular, new] = chart.lines.as_slice() else { panic!("two curves: {chart:?}") };
    assert_eq!(popular.points[1], (25.0, 50.0));
    assert_eq!(new.points[1], (25.0, 100.0 * 4.0 / 6.0), "all but the last two were the newest when they were read");
    for line in [popular, new] {
        assert_eq!(line.points.last(), Some(&(100.0, 100.0)), "{}", line.name);
    }
    let unsorted = skew_of_trace("a log", &Recorded::parse("5,b,1\n1,a,1\n6,b,1\n").expect("it is a log"));
    assert_eq!(unsorted.lines[1].points[1], (50.0, 100.0), "b is read after a, and is the newest from then on");
}

#[test]
fn a_figure_that_there_is_not_names_those_that_there_are() {
    let error = figure("13", 1).expect_err("nobody knows what it shows");
    assert!(FIGURES.iter().all(|(name, _)| error.message().contains(name)), "{error}");
}
