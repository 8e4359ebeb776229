//! `forebay record`: accesses of the running cluster, as its workers count them, to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_protocol::{ACCESSES_MAX, AccessMade, AccessWay, Accesses};
use forebay_runtime::time::{interval, sleep, timeout};
use forebay_simulation::{Access, AccessKind};
use forebay_types::{Error, ErrorKind, ForebayPath, MountId, MountName, Result, WorkerId};
use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{FuturesUnordered, StreamExt};
use indicatif::ProgressBar;
use serde::Serialize;

use super::is_dash;
use super::names::Names;
use crate::cli::RecordArgs;
use crate::config::Config;
use crate::connect::connect;
use crate::exit::{Failure, Outcome};
use crate::output::show;
use crate::progress;
use crate::roles::Signals;

/// How long a worker gathers accesses before it answers, where they are few.
const GATHERS: Duration = Duration::from_secs(1);
/// Time between two looks at which workers there are.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the last accesses are waited for.
const LAST_WITHIN: Duration = Duration::from_secs(10);
/// Answers that the last accesses of a worker have: as many as it remembers.
const LAST_ANSWERS: usize = 8;
/// Until Ctrl-C.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What was recorded, as JSON has it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Recorded {
    accesses: u64,
    lines: u64,
    lost: u64,
    workers: usize,
    seconds: f64,
}

struct Recording<'a> {
    client: &'a Client,
    args: &'a RecordArgs,
    to: BufWriter<Box<dyn Write>>,
    names: Option<Names>,
    mounts: BTreeMap<MountId, MountName>,
    began: Instant,
    /// What each worker that has answered is asked for next.
    next: BTreeMap<WorkerId, u64>,
    /// Those that did not answer when they were asked last.
    silent: BTreeMap<WorkerId, Error>,
    recorded: Recorded,
}

/// Records until its time is over, there is enough, or a signal; then it ends with what there is.
pub(crate) async fn run(config: &Config, args: RecordArgs) -> Outcome {
    let mut signals = Signals::new()?;
    let client = tokio::select! {
        client = connect(config) => client?,
        _ = signals.next() => return Err(Failure::Interrupted),
    };
    let mut recording = Recording::new(&client, &args)?;
    let bar = progress::spinner("record");
    let ended = recording.run(&mut signals, &bar).await;
    bar.finish_and_clear();
    ended?;
    recording.report()
}

impl<'a> Recording<'a> {
    fn new(client: &'a Client, args: &'a RecordArgs) -> Result<Self> {
        let to: Box<dyn Write> = match is_dash(&args.out) {
            true => Box::new(io::stdout()),
            false => Box::new(
                File::create(&args.out)
                    .map_err(|error| Error::from(error).context(format!("can't write {}", args.out.display())))?,
            ),
        };
        Ok(Self {
            client,
            args,
            to: BufWriter::with_capacity(256 << 10, to),
            names: args.anonymise.then(Names::default),
            mounts: BTreeMap::new(),
            began: forebay_runtime::now(),
            next: BTreeMap::new(),
            silent: BTreeMap::new(),
            recorded: Recorded::default(),
        })
    }

    async fn run(&mut self, signals: &mut Signals, bar: &ProgressBar) -> Outcome {
        let lasts = self.args.lasts.unwrap_or(FOR_EVER);
        tokio::select! {
            ended = self.follow(bar) => ended?,
            () = sleep(lasts) => {}
            _ = signals.next() => {}
        }
        if let Some(error) = self.silent.values().next().filter(|_| self.next.is_empty()) {
            return Err(error.clone().into());
        }
        tokio::select! {
            // Who is late is not waited for.
            last = timeout(LAST_WITHIN, self.take_last()) => last.unwrap_or(Ok(()))?,
            _ = signals.next() => {}
        }
        self.recorded.seconds = self.began.elapsed().as_secs_f64();
        self.flush()
    }

    /// Asks all workers again and again, until there is enough.
    async fn follow(&mut self, bar: &ProgressBar) -> Outcome {
        let (client, one_in) = (self.client, self.args.one_in);
        let mut asked: BTreeSet<WorkerId> = BTreeSet::new();
        let mut answers: FuturesUnordered<LocalBoxFuture<'_, (WorkerId, Result<Accesses>)>> = FuturesUnordered::new();
        let mut looks = interval(LOOK_EVERY);
        let mut is_told = false;
        loop {
            tokio::select! {
                Some((worker, answer)) = answers.next(), if !answers.is_empty() => {
                    asked.remove(&worker);
                    if let Some(next) = self.take(worker, answer)? {
                        asked.insert(worker);
                        answers.push(ask(client, worker, next, one_in).boxed_local());
                    }
                    if self.recorded.accesses >= self.args.most {
                        return Ok(());
                    }
                }
                _ = looks.tick() => {
                    let view = client.view();
                    for worker in view.workers.iter().map(|worker| worker.id) {
                        if asked.insert(worker) {
                            let since = self.next.get(&worker).copied().unwrap_or(0);
                            answers.push(ask(client, worker, since, one_in).boxed_local());
                        }
                    }
                    self.flush()?;
                    bar.set_message(format!("record: {} accesses at {} workers", self.recorded.accesses, self.next.len()));
                }
            }
            if !is_told && !self.next.is_empty() && client.view().workers.iter().all(|worker| self.next.contains_key(&worker.id))
            {
                bar.suspend(|| eprintln!("recording accesses at {} workers; Ctrl-C ends it", self.next.len()));
                is_told = true;
            }
        }
    }

    /// What workers have gathered and not told yet; those that did not answer last are not waited for.
    async fn take_last(&mut self) -> Outcome {
        let workers: Vec<WorkerId> = self.next.keys().filter(|worker| !self.silent.contains_key(*worker)).copied().collect();
        for worker in workers {
            for _ in 0..LAST_ANSWERS {
                let since = self.next[&worker];
                let answer = self.client.accesses(worker, since, self.args.one_in, Duration::ZERO).await;
                let told = answer.as_ref().map_or(0, |accesses| accesses.next.saturating_sub(since));
                self.take(worker, answer)?;
                if told < ACCESSES_MAX as u64 || self.recorded.accesses >= self.args.most {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes an answer down; gives what to ask for next. None of a worker that did not answer, which is asked at the next look.
    fn take(&mut self, worker: WorkerId, answer: Result<Accesses>) -> Outcome<Option<u64>> {
        let accesses = match answer {
            Ok(accesses) => accesses,
            Err(error) if matches!(error.kind(), ErrorKind::Denied | ErrorKind::Invalid) => return Err(error.into()),
            Err(error) => {
                self.silent.insert(worker, error);
                return Ok(None);
            }
        };
        self.silent.remove(&worker);
        // Before the first answer nothing was recorded, and so nothing is lost.
        if self.next.insert(worker, accesses.next).is_some() {
            self.recorded.lost += accesses.lost;
        }
        let elapsed = self.began.elapsed();
        for made in &accesses.made {
            let access = self.access(made, elapsed);
            // What clients say that they read is as large as they like.
            if access.check().is_err() {
                self.recorded.lost += 1;
                continue;
            }
            let line = access.line()?;
            writeln!(self.to, "{line}").map_err(|error| self.unwritten(error))?;
            self.recorded.lines += 1;
            self.recorded.accesses += u64::from(access.times);
        }
        Ok(Some(accesses.next))
    }

    fn access(&mut self, made: &AccessMade, elapsed: Duration) -> Access {
        let (op, way) = match made.way {
            AccessWay::Answered => (AccessKind::Read, Some("answered")),
            AccessWay::InPlace => (AccessKind::Read, Some("in place")),
            AccessWay::AtHand => (AccessKind::Read, Some("at hand")),
            AccessWay::Decoded => (AccessKind::Read, Some("decoded")),
            AccessWay::Written => (AccessKind::Write, None),
            AccessWay::Deleted => (AccessKind::Delete, None),
        };
        let path = match self.mount(made.mount) {
            Some(name) => ForebayPath::new(name, made.key.clone()).to_string(),
            None => format!("/mount number {}/{}", made.mount.0, made.key),
        };
        Access {
            at_us: elapsed.saturating_sub(made.ago).as_micros() as u64,
            op,
            path: self.names.as_ref().map_or_else(|| path.clone(), |names| names.hidden(&path)),
            start: made.start,
            bytes: made.bytes,
            times: made.times,
            operation: made.operation.map(|operation| operation.0),
            way: way.map(str::to_string),
        }
    }

    fn mount(&mut self, mount: MountId) -> Option<MountName> {
        if !self.mounts.contains_key(&mount) {
            self.mounts.extend(self.client.view().mounts.iter().map(|mount| (mount.id, mount.name.clone())));
        }
        self.mounts.get(&mount).cloned()
    }

    fn flush(&mut self) -> Outcome {
        self.to.flush().map_err(|error| self.unwritten(error))
    }

    fn unwritten(&self, error: io::Error) -> Failure {
        match is_dash(&self.args.out) {
            true => Failure::of_stdout(error),
            false => Failure::Failed(Error::from(error).context(format!("can't write {}", self.args.out.display()))),
        }
    }

    fn report(mut self) -> Outcome {
        self.recorded.workers = self.next.len();
        let Recorded { accesses, lines, lost, workers, .. } = self.recorded;
        for (worker, error) in &self.silent {
            eprintln!("forebay: accesses at worker {worker} may be missing: {error}");
        }
        if lost > 0 {
            eprintln!(
                "forebay: {lost} accesses are lost, as they were too many at once: record fewer objects, as with --one-in 10"
            );
        }
        if is_dash(&self.args.out) {
            return Ok(());
        }
        let out = self.args.out.display();
        show(self.args.json, &self.recorded, |output| {
            output.line(&format!("{accesses} accesses at {workers} workers, in {lines} lines of {out}"))
        })
    }
}

async fn ask(client: &Client, worker: WorkerId, since: u64, one_in: u32) -> (WorkerId, Result<Accesses>) {
    (worker, client.accesses(worker, since, one_in, GATHERS).await)
}
