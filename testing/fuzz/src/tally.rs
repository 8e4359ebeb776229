//! What a fuzzer has done, in one line of JSON when it ends, however it does; and the end of one that gets nowhere.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{keep, lasts, peak_bytes};

/// A fuzzer that gets nowhere for so long ends, and its process with it.
const STUCK_AFTER: Duration = Duration::from_secs(120);
/// How often that is looked at.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);
/// What a process ends with whose tests have failed.
const FAILED: i32 = 101;

/// What a fuzzer has done so far. When it is dropped it prints one line of JSON: a panic meanwhile counts as a crash.
pub struct Tally(Arc<Shared>);

struct Shared {
    what: String,
    began: Instant,
    peak_before: u64,
    hung: AtomicBool,
    done: Mutex<Done>,
}

struct Done {
    inputs: u64,
    edges: usize,
    slowest: Duration,
    /// When it last got anywhere, and the input that it has since.
    at: Instant,
    input: Vec<u8>,
}

impl Tally {
    /// Begins to count inputs of this kind.
    pub fn begin(what: &str) -> Self {
        let now = Instant::now();
        let done = Done { inputs: 0, edges: 0, slowest: Duration::ZERO, at: now, input: Vec::new() };
        let (what, hung, done) = (what.to_string(), AtomicBool::new(false), Mutex::new(done));
        let shared = Arc::new(Shared { what, began: now, peak_before: peak_bytes(), hung, done });
        let watched = Arc::downgrade(&shared);
        thread::spawn(move || {
            while let Some(shared) = watched.upgrade() {
                shared.end_if_stuck();
                drop(shared);
                thread::sleep(LOOKED_AT_EVERY);
            }
        });
        Self(shared)
    }

    /// Whether it has not gone on for as long as it is to.
    pub fn goes_on(&self) -> bool {
        self.0.began.elapsed() < lasts()
    }

    /// An input is given to who reads it.
    pub fn asks(&self, input: &[u8]) {
        let mut done = self.0.done();
        (done.at, done.input) = (Instant::now(), input.to_vec());
    }

    /// So many more inputs were taken, the slowest of them after this time, and have led to so many places in all.
    pub fn took(&self, inputs: u64, slowest: Duration, edges: usize) {
        let mut done = self.0.done();
        done.inputs += inputs;
        done.slowest = done.slowest.max(slowest);
        (done.at, done.edges) = (Instant::now(), edges);
    }

    /// What the process has grown by, at its highest.
    pub fn grown_bytes(&self) -> u64 {
        peak_bytes().saturating_sub(self.0.peak_before)
    }

    /// An input takes too long.
    ///
    /// # Panics
    /// Always.
    pub fn hang(&self, why: impl Display) -> ! {
        self.0.hung.store(true, Relaxed);
        panic!("{why}")
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let (failed, hung) = (thread::panicking(), self.0.hung.load(Relaxed));
        self.0.tell(u8::from(failed && !hung), u8::from(failed && hung));
    }
}

impl Shared {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing else can end a reader that never comes back.
    fn end_if_stuck(&self) {
        let done = self.done();
        if done.at.elapsed() < STUCK_AFTER {
            return;
        }
        let input = keep(&self.what, &done.input);
        drop(done);
        eprintln!("{}: nothing for {STUCK_AFTER:?}: the last input is in {input}", self.what);
        self.tell(0, 1);
        std::process::exit(FAILED);
    }

    #[expect(clippy::print_stdout, reason = "what a fuzzer has reached is its output")]
    fn tell(&self, crashes: u8, hangs: u8) {
        let (seconds, grown) = (self.began.elapsed().as_secs(), peak_bytes().saturating_sub(self.peak_before));
        let done = self.done();
        let (inputs, edges, slowest) = (done.inputs, done.edges, done.slowest);
        println!(
            "{{\"fuzz\":{:?},\"seconds\":{seconds},\"inputs\":{inputs},\"edges\":{edges},\"crashes\":{crashes},\"hangs\":{hangs},\
             \"grown_bytes\":{grown},\"slowest_ms\":{}}}",
            self.what,
            slowest.as_millis()
        );
    }
}
