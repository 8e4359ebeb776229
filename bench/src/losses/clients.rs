//! The load on a cluster that is being killed: queries as processes of the command line, each answer judged.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_types::{Error, Result};
use parking_lot::Mutex;

use super::counts::{Counts, Ended, hangs_after, is_same};
use super::processes::Processes;

/// A statement, its name, and what one process answers.
pub(super) struct Query {
    pub(super) name: String,
    pub(super) sql: String,
    pub(super) alone: String,
}

/// Clients that ask one query after the other, each a process of its own, until they are told to stop.
pub(super) struct Clients {
    stop: Arc<AtomicBool>,
    /// Queries that run now.
    in_flight: Arc<AtomicUsize>,
    threads: Vec<std::thread::JoinHandle<()>>,
    counts: Arc<Mutex<Counts>>,
    took: Arc<Mutex<HashMap<String, Duration>>>,
}

impl Clients {
    /// Starts so many. `usual` says what the queries take undisturbed.
    pub(super) fn start(
        phase: &'static str,
        count: usize,
        processes: &Processes,
        queries: &Arc<Vec<Query>>,
        usual: &Arc<HashMap<String, Duration>>,
    ) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let in_flight = Arc::<AtomicUsize>::default();
        let counts = Arc::new(Mutex::new(Counts::of(phase)));
        let took = Arc::<Mutex<HashMap<String, Duration>>>::default();
        let threads = (0..count).map(|client| {
            let (stop, in_flight, counts, took) =
                (Arc::clone(&stop), Arc::clone(&in_flight), Arc::clone(&counts), Arc::clone(&took));
            let (queries, usual) = (Arc::clone(queries), Arc::clone(usual));
            let ask = Ask::of(processes);
            std::thread::spawn(move || {
                // Each begins elsewhere, so that different queries run beside each other.
                let mut next = client * queries.len() / count;
                while !stop.load(Relaxed) {
                    let query = &queries[next % queries.len()];
                    next += 1;
                    in_flight.fetch_add(1, Relaxed);
                    let began = Instant::now();
                    let ended = ask.ended(query, hangs_after(usual.get(&query.name).copied()));
                    in_flight.fetch_sub(1, Relaxed);
                    let mut longest = took.lock();
                    let longest = longest.entry(query.name.clone()).or_default();
                    *longest = (*longest).max(began.elapsed());
                    counts.lock().add(&query.name, ended, began.elapsed());
                }
            })
        });
        let threads = threads.collect();
        Self { stop, in_flight, threads, counts, took }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    pub(super) fn note_kill(&self) {
        let mut counts = self.counts.lock();
        counts.kills += 1;
        counts.kills_in_midst += u64::from(self.in_flight() > 0);
    }

    /// Waits for the queries that run. Gives what became of all, and the longest time of each query.
    pub(super) fn stop(self) -> (Counts, HashMap<String, Duration>) {
        self.stop.store(true, Relaxed);
        for thread in self.threads {
            if thread.join().is_err() {
                self.counts.lock().add("client", Ended::Failed("a client panicked".to_string()), Duration::ZERO);
            }
        }
        let counts = std::mem::take(&mut *self.counts.lock()).closed();
        let took = std::mem::take(&mut *self.took.lock());
        (counts, took)
    }
}

/// What one process answers.
pub(super) fn alone(processes: &Processes, sql: &str) -> Result<String> {
    processes.ask(&["sql", "--csv", "--scheduler", "off", sql])
}

/// How a query is asked.
struct Ask(Box<dyn Fn(&str) -> Command + Send>);

impl Ask {
    fn of(processes: &Processes) -> Self {
        let make = processes.maker();
        Self(Box::new(move |sql| make(&["sql", "--csv", sql])))
    }

    fn ended(&self, query: &Query, hangs_after: Duration) -> Ended {
        match self.answer(&query.sql, hangs_after) {
            Ok(Some(Ok(answer))) if is_same(&answer, &query.alone) => Ended::Done,
            Ok(Some(Ok(answer))) => {
                let rows = (answer.lines().count(), query.alone.lines().count());
                Ended::Wrong(format!("{} lines where one process gives {}", rows.0, rows.1))
            }
            Ok(Some(Err(said))) => Ended::Failed(said),
            Ok(None) => Ended::Hung,
            Err(error) => Ended::Failed(format!("it could not be asked: {error}")),
        }
    }

    /// The output, or what it said when it failed; none when it took too long.
    fn answer(&self, sql: &str, hangs_after: Duration) -> Result<Option<std::result::Result<String, String>>> {
        let mut child = (self.0)(sql).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdout, stderr) = (read(child.stdout.take())?, read(child.stderr.take())?);
        let Some(success) = wait(&mut child, hangs_after)? else { return Ok(None) };
        let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
        let (answer, said) = (text(stdout), text(stderr));
        Ok(Some(if success { Ok(answer) } else { Err(message(&said)) }))
    }
}

/// Whether it ended well; none, and it is killed, when it takes too long.
fn wait(child: &mut Child, hangs_after: Duration) -> Result<Option<bool>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if began.elapsed() > hangs_after {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read(from: Option<impl Read + Send + 'static>) -> Result<std::thread::JoinHandle<String>> {
    let mut from = from.ok_or_else(|| Error::internal("the process has no output"))?;
    Ok(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A process that was killed has said what it has said.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }))
}

/// What a command says is wrong, without what it waited for.
fn message(said: &str) -> String {
    let from = said.find("forebay: ").unwrap_or_default();
    said[from..].trim().chars().take(400).collect()
}
