//! What is shown of looks at a cluster that is made up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use forebay_protocol::{
    ClusterStatus, JobState, MountStatus, PlacementStatus, SegmentStatus, StorageCounters, TransferState, WorkerInfo,
    WorkerReport, WorkerState,
};
use forebay_types::{HostId, Mount, MountId, MountOptions, SegmentId, WorkerId};

use super::history::{History, KEPT, Of, Rates};
use super::panes::{Pane, Sorted};
use super::record::Record;
use super::sample::Sample;
use super::text;

const MIB: u64 = 1 << 20;

/// A worker that has served so much, a half of it from its tiers.
fn worker(id: u64, state: WorkerState, served: u64) -> (WorkerInfo, WorkerState, WorkerReport) {
    let info = WorkerInfo::new(WorkerId(id << 40), HostId("a host".to_string()), format!("10.0.0.{id}:7401"));
    let info = WorkerInfo { dram_bytes: 64 * MIB, turn: id, location: "rack".to_string(), ..info };
    let counters = StorageCounters { gets: 3, bytes_in: served / 4, ..StorageCounters::default() };
    let report = WorkerReport {
        dram: (64 * MIB, id * 8 * MIB, 0),
        reads: served / MIB,
        bytes_served: served,
        bytes_hit: served / 2,
        storage: vec![(MountId(1), counters)],
        ..WorkerReport::default()
    };
    (info, state, report)
}

fn segment(path: &str, popularity: f64) -> SegmentStatus {
    SegmentStatus {
        path: path.parse().unwrap(),
        index: 2,
        segment: SegmentId(9),
        popularity,
        operations: 4,
        reads: 8,
        bytes_read: 3 * MIB,
        planned: Vec::new(),
        held: vec![(WorkerId(1 << 40), MIB)],
        loading: Vec::new(),
        routing: vec![(WorkerId(1 << 40), 100)],
        in_table: false,
    }
}

fn job(id: &str, state: &str) -> JobState {
    JobState {
        id: id.to_string(),
        operation: 1,
        state: state.to_string(),
        error: String::new(),
        sql: "select 1\nfrom t".to_string(),
        priority: 0,
        tasks: 8,
        tasks_running: 2,
        tasks_done: 5,
        tasks_local: 5,
        tasks_with_input: 5,
        tasks_again: 0,
        tasks_copied: 0,
        bytes: 10 * MIB,
        bytes_done: 6 * MIB,
        bytes_passed: 0,
        rows: None,
        seconds: 1.5,
    }
}

/// A look after so many seconds: the first worker serves 8 MiB a second, the second one 2, and a third is lost.
fn look(began: Instant, seconds: u64) -> Sample {
    let (live, lost) = (WorkerState::Live, WorkerState::Lost);
    let workers = vec![worker(1, live, 8 * MIB * seconds), worker(2, live, 2 * MIB * seconds), worker(3, lost, 0)];
    let counters = StorageCounters { gets: 6 * seconds, bytes_in: 3 * MIB * seconds, ..StorageCounters::default() };
    let options = MountOptions::default();
    let mount = Mount { id: MountId(1), name: "lake".parse().unwrap(), url: "s3://bucket".to_string(), options };
    let status = ClusterStatus {
        forebay_version: "1.2.3".to_string(),
        epoch: 7,
        uptime: Duration::from_secs(61),
        metadata: "sqlite".to_string(),
        mounts: vec![MountStatus { mount, counters }],
        pins: Vec::new(),
        workers,
    };
    let segments = vec![segment("/lake/cold.parquet", 0.5), segment("/lake/hot.parquet", 9.0)];
    let transfer = TransferState {
        path: "/lake/next.parquet".to_string(),
        start: 0,
        bytes: MIB,
        worker: "w0000001".to_string(),
        seconds: 0.2,
    };
    Sample {
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        taken: began + Duration::from_secs(seconds),
        status: Box::new(status),
        placement: Box::new(PlacementStatus { segments, ..PlacementStatus::default() }),
        queues: BTreeMap::from([(WorkerId(1 << 40), 5)]),
        jobs: Some(vec![job("j1", "done"), job("j2", "running")]),
        transfers: Some(vec![transfer]),
    }
}

/// So many looks, a second apart, and the last of them.
fn looks(count: u64) -> (Sample, History) {
    let (began, mut history) = (forebay_runtime::now(), History::default());
    for seconds in 1..count {
        history.note(&look(began, seconds));
    }
    let last = look(began, count);
    history.note(&last);
    (last, history)
}

fn column(pane: Pane, sorted: Sorted, shown: usize) -> Vec<String> {
    let (sample, history) = looks(3);
    pane.lines(&sample, &history, sorted).into_iter().map(|mut line| line.swap_remove(shown).shown).collect()
}

#[test]
fn rates_are_what_came_between_two_looks() {
    let first = looks(1).1;
    assert_eq!(first.now(&Of::Cluster), None, "there is nothing to compare with");
    let (_, history) = looks(3);
    let cluster =
        Rates { reads: 10, served_bytes: 10 * MIB, hit_bytes: 5 * MIB, received_bytes: 3 * MIB, sent_bytes: 0, requests: 6 };
    assert_eq!(history.now(&Of::Cluster), Some(cluster));
    let of_first = history.now(&Of::Worker(WorkerId(1 << 40))).unwrap();
    assert_eq!((of_first.served_bytes, of_first.received_bytes), (8 * MIB, 2 * MIB));
    assert_eq!(history.series(&Of::Mount("lake".to_string()), |rates| rates.requests), [6, 6]);
}

#[test]
fn what_counts_from_zero_again_has_done_nothing_and_what_is_gone_is_forgotten() {
    let (began, mut history) = (forebay_runtime::now(), History::default());
    for (at, seconds) in [(0, 50), (1, 2)] {
        let mut sample = look(began, seconds);
        sample.taken = began + Duration::from_secs(at);
        history.note(&sample);
    }
    assert_eq!(history.now(&Of::Cluster).unwrap().served_bytes, 0);
    let mut sample = look(began, 3);
    sample.status.workers.truncate(1);
    history.note(&sample);
    assert!(history.now(&Of::Worker(WorkerId(1 << 40))).is_some());
    assert_eq!(history.now(&Of::Worker(WorkerId(2 << 40))), None);
    let (_, long) = looks(KEPT as u64 + 50);
    assert_eq!(long.series(&Of::Cluster, |rates| rates.reads).len(), KEPT, "it does not grow for ever");
}

#[test]
fn tables_are_sorted_by_numbers_as_numbers_and_by_names_as_names() {
    let down = |column| Sorted { column, is_down: true };
    let up = |column| Sorted { column, is_down: false };
    // Bytes a second: 8 MiB are more than 2 MiB, and both more than none.
    let addresses = |sorted| column(Pane::Workers, sorted, 1);
    assert_eq!(addresses(down(7)), ["10.0.0.1:7401", "10.0.0.2:7401", "10.0.0.3:7401"]);
    assert_eq!(addresses(up(7)), ["10.0.0.3:7401", "10.0.0.2:7401", "10.0.0.1:7401"]);
    assert_eq!(addresses(up(2))[2], "10.0.0.3:7401", "lost comes behind live");
    assert_eq!(column(Pane::Segments, Pane::Segments.sorted(), 0), ["/lake/hot.parquet", "/lake/cold.parquet"]);
    assert_eq!(column(Pane::Jobs, Pane::Jobs.sorted(), 0), ["j2", "j1"], "what runs comes first");
    assert_eq!(column(Pane::Jobs, up(0), 8)[0], "select 1 from t");
}

#[test]
fn everything_is_told_as_text() {
    let (sample, history) = looks(3);
    let text = text::lines(&sample, &history).join("\n");
    for words in [
        "forebay 1.2.3, up 61s, metadata in sqlite, epoch 7",
        "10 reads/s, 10.0 MiB/s served, 5.00 MiB/s of it from the tiers, 3.00 MiB/s from shared storage",
        "/lake/",
        "/lake/hot.parquet",
        "/lake/next.parquet",
        "5/8",
        "lost",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let mut alone = sample;
    (alone.jobs, alone.transfers) = (None, Some(Vec::new()));
    let text = text::lines(&alone, &history).join("\n");
    assert!(text.contains("no transfers now") && text.contains("no jobs now"), "{text}");
}

#[test]
fn programs_get_an_object_a_look() {
    let (sample, history) = looks(3);
    let json = serde_json::to_value(Record::of(&sample, &history)).unwrap();
    assert_eq!((&json["unix_ms"], &json["rates"]["reads"]), (&3000.into(), &10.into()));
    let worker = WorkerId(1 << 40).to_string();
    assert_eq!(json["workers"][&worker]["served_bytes"], 8 * MIB);
    assert_eq!((&json["queues"][&worker], &json["mounts"]["lake"]["requests"]), (&5.into(), &6.into()));
    assert_eq!(json["status"]["workers"].as_array().unwrap().len(), 3);
    assert_eq!(json["placement"]["segments"][0]["path"], "/lake/cold.parquet");
    let (sample, history) = looks(1);
    assert!(serde_json::to_value(Record::of(&sample, &history)).unwrap()["rates"].is_null());
}

#[cfg(feature = "top")]
mod drawn {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::draw::{Picture, draw};
    use super::super::view::{Press, View};
    use super::*;

    /// What stands on a terminal of this size.
    fn picture(view: &View, history: &History, sample: Option<&Sample>, wrong: Option<&str>) -> String {
        let mut terminal = Terminal::new(TestBackend::new(140, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &Picture { view, history, sample, wrong })).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..140_u16).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..24).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_picture_has_rates_workers_and_keys() {
        let (sample, history) = looks(4);
        let drawn = picture(&View::default(), &history, Some(&sample), None);
        for words in [
            "forebay 1.2.3, up 61s",
            "10 reads/s",
            "served 10.0 MiB/s",
            "from the tiers 5.00 MiB/s",
            "from shared storage 3.00 MiB/s",
            "1 workers 3",
            "5 jobs 2",
            "out/s▼",
            "8.00 MiB of 64.0 MiB",
            "50%",
            "███",
            "q quit",
        ] {
            assert!(drawn.contains(words), "{words:?} is not in\n{drawn}");
        }
        let at = |address: &str| drawn.find(address).unwrap();
        assert!(at("10.0.0.1:7401") < at("10.0.0.2:7401"), "the busiest comes first:\n{drawn}");
    }

    #[test]
    fn keys_choose_what_is_seen() {
        let (sample, history) = looks(3);
        let mut view = View::default();
        let mut press = |presses: &[Press]| {
            for press in presses {
                let lines = view.pane().count(&sample);
                assert!(view.press(*press, lines), "nobody quits");
            }
            picture(&view, &history, Some(&sample), None)
        };
        // By the rate of bytes that come in, and that the other way round.
        let sorted = press(&[Press::Right, Press::Reverse]);
        assert!(sorted.contains("in/s▲") && sorted.find("10.0.0.3").unwrap() < sorted.find("10.0.0.1").unwrap(), "{sorted}");
        let segments = press(&[Press::NextPane, Press::NextPane]);
        assert!(segments.contains("popularity▼") && segments.contains("/lake/hot.parquet"), "{segments}");
        assert!(press(&[Press::Pane(3)]).contains("/lake/next.parquet"));
        assert!(press(&[Press::PaneBefore, Press::PaneBefore]).contains("s3://bucket"));
        let workers = press(&[Press::PaneBefore, Press::Left]);
        assert!(workers.contains("out/s▼"), "each table keeps its order: {workers}");
        assert!(press(&[Press::Help]).contains("sort by another column"));
        assert!(press(&[Press::Help, Press::Pause]).contains("paused"));
    }

    #[test]
    fn the_line_that_is_chosen_is_one_of_the_table() {
        let (mut view, lines) = (View::default(), 3);
        for (press, row) in [(Press::Down, 1), (Press::PageDown, 2), (Press::Up, 1), (Press::Last, 2), (Press::First, 0)] {
            assert!(view.press(press, lines));
            assert_eq!(view.row, row, "{press:?}");
        }
        view.press(Press::Last, lines);
        view.press(Press::Redraw, 1);
        assert_eq!(view.row, 0, "lines may have gone");
        view.press(Press::Down, 0);
        assert_eq!(view.row, 0);
        view.press(Press::Pane(17), lines);
        assert_eq!(view.pane(), Pane::Workers);
        assert!(!view.press(Press::Quit, lines));
    }

    #[test]
    fn a_coordinator_that_is_away_is_told_of_beside_what_was_seen_last() {
        let (sample, history) = looks(3);
        let drawn = picture(&View::default(), &history, Some(&sample), Some("the coordinator does not answer"));
        assert!(drawn.contains("the coordinator does not answer") && drawn.contains("10.0.0.1:7401"), "{drawn}");
        let waiting = picture(&View::default(), &History::default(), None, None);
        assert!(waiting.contains("waiting for the coordinator"), "{waiting}");
    }
}
