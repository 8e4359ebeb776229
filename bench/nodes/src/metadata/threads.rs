//! Bar of the namespace itself: what lookups and creates of several threads come to together, with no socket and no message between.
//!
//! Its lock is used as by a worker: who only looks shares it, in one step with the walk to what it looks at, and who changes something has it alone.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use forebay_bench_harness::{Bar, Figure, median};
use forebay_nodes::{At, CreateOptions, Got, Namespace, NodeType, ROOT, Value};
use parking_lot::RwLock;

/// Values that are looked for, and the bytes of each.
const VALUES: usize = 100_000;
const VALUE_BYTES: usize = 64;
/// Bytes of names and values: more than any run makes.
const BYTES_MAX: u64 = 8 << 30;
/// What is looked for next is not beside what was looked for last.
const STRIDE: usize = 7919;

type Names = RwLock<Namespace>;

/// What each thread does.
#[derive(Clone, Copy)]
struct Work {
    what: &'static str,
    /// Calls of a thread to one that was asked for: each takes far less time than one over a socket.
    more: usize,
    /// The path of a thread's call.
    path: fn(usize, usize) -> String,
    call: fn(&Names, &str),
}

const LOOKUPS: Work = Work {
    what: "lookups",
    more: 40,
    path: |thread, at| format!("t/{}", (thread + at * STRIDE) % VALUES),
    call: |names, path| {
        let names = names.read();
        let found = match names.walk(ROOT, path) {
            Ok(At::Here(dir, name)) => names.get(dir, name),
            other => panic!("{other:?} is no way to a value"),
        };
        assert!(matches!(black_box(found), Ok(Got::Inline(bytes)) if bytes.len() == VALUE_BYTES));
    },
};

/// Each thread has a directory of its own, as jobs have.
const CREATES: Work = Work {
    what: "creates",
    more: 20,
    path: |thread, at| format!("d{thread}/{at}"),
    call: |names, path| {
        let (dir, name) = match names.read().walk(ROOT, path) {
            Ok(At::Here(dir, name)) => (dir, name),
            other => panic!("{other:?} is no way to a place"),
        };
        names.write().create(dir, name, CreateOptions::new(NodeType::File)).unwrap();
    },
};

/// On 2, 4 and 8 threads as far as there are processors. The peer is one thread, so many times; the limit is a namespace for each thread: what the
/// machine gives where nothing is shared.
pub fn all(requests: usize, rounds: usize) {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    for threads in [2, 4, 8].into_iter().filter(|threads| *threads <= cores.max(2)) {
        for work in [LOOKUPS, CREATES] {
            let calls = requests * work.more;
            let (mut one, mut shared, mut apart) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..rounds {
                one.push(rate(work, calls, 1, 1) * threads as f64);
                shared.push(rate(work, calls, threads, 1));
                apart.push(rate(work, calls, threads, threads));
            }
            let what = format!("namespace {}, {threads} threads", work.what);
            let peer = ("one thread, so many times", median(one));
            let figure = Figure::new(what, median(shared), "ops/s", peer.0, peer.1, Bar::RatioAtLeast(0.8));
            figure.within(median(apart)).print(true);
        }
    }
    let alone = (0..rounds).map(|_| alone(requests * CREATES.more)).collect();
    Figure::alone("namespace creates, time that one has the names alone", median(alone), "ns", Bar::Nothing).print(true);
}

/// Nanoseconds of a create while nobody else may look. However many threads there are, no more creates come about than fit one after the other; so
/// as many cores of a worker can be busy with them as a call by a socket takes times as long.
fn alone(calls: usize) -> f64 {
    let mut names = filled(1).into_inner();
    let dir = names.container_of(ROOT, "d0").unwrap();
    let files: Vec<String> = (0..calls).map(|at| at.to_string()).collect();
    let began = Instant::now();
    files.iter().for_each(|name| names.create(dir, name, CreateOptions::new(NodeType::File)).unwrap());
    began.elapsed().as_secs_f64() * 1e9 / calls as f64
}

/// Calls a second of so many threads, with one namespace or one each.
fn rate(work: Work, calls: usize, threads: usize, namespaces: usize) -> f64 {
    let all: Vec<Names> = (0..namespaces).map(|_| filled(threads)).collect();
    let start = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let (names, start) = (&all[thread % namespaces], &start);
                scope.spawn(move || {
                    let paths: Vec<String> = (0..calls).map(|at| (work.path)(thread, at)).collect();
                    start.wait();
                    paths.iter().for_each(|path| (work.call)(names, path));
                    // To be dropped when time is not taken any more.
                    paths
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let paths: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        let calls: usize = paths.iter().map(Vec::len).sum();
        calls as f64 / began.elapsed().as_secs_f64()
    })
}

/// A namespace with a table of values, and a directory for each thread.
fn filled(threads: usize) -> Names {
    let mut names = Namespace::new(1, BYTES_MAX);
    names.make_root();
    names.create(ROOT, "t", CreateOptions::new(NodeType::Table)).unwrap();
    for thread in 0..threads {
        names.create(ROOT, &format!("d{thread}"), CreateOptions::new(NodeType::Directory)).unwrap();
    }
    let table = names.container_of(ROOT, "t").unwrap();
    for number in 0..VALUES {
        names.put(table, &number.to_string(), Value::from(vec![7; VALUE_BYTES])).unwrap();
    }
    RwLock::new(names)
}
