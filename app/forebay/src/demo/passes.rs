//! Runs the demo's queries in all of its ways, in an order that is fair to each, and checks every answer.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use forebay_tpch::{QUERIES, Tables, Tpch, check_answer, same_answer};
use forebay_types::{Result, ResultExt};

use super::cpu;
use super::engines;
use super::floor::TransferCost;
use super::ingest;
use super::report::{Answers, Report, Run};
use super::serve::Counted;
use super::stage::Stage;
use crate::cli::DemoArgs;
use crate::progress;

/// After this long no further round of warm and local is begun.
const ROUNDS_UNTIL: Duration = Duration::from_secs(135);
const ROUNDS: u32 = 3;

/// Runs the queries in all five ways.
pub(crate) async fn run(args: &DemoArgs, tables: &Tables, stage: &Stage, started: Instant) -> Result<Report> {
    let mut pass = Pass { queries: &args.queries.0, stage, answers: Answers::new(args.scale), first: HashMap::new() };

    read_once(&tables.folder)?;
    let direct_run = pass.cold("direct from S3", engines::direct(&stage.server.endpoint)).await?.1;

    let (ingest_run, cost) = ingest_then_compute(args, &mut pass).await?;

    let local = engines::local(&tables.folder).await?;
    let (forebay, cold) = pass.cold("Forebay, cold", engines::forebay(stage.client.clone())).await?;

    let (warm, local, rounds) = alternate(args, &mut pass, &forebay, &local, started).await?;
    let floors = pass.queries.iter().map(|&n| {
        let at = n - 1;
        (n, cost.floor(cold.per_query[at].bytes, local.per_query[at].secs, local.per_query[at].cpu_secs))
    });
    let floors = floors.collect();
    Ok(Report {
        scale: args.scale,
        data_bytes: tables.bytes,
        bandwidth: args.bandwidth,
        latency: args.latency,
        queries: args.queries.0.clone(),
        rounds,
        runs: [direct_run, ingest_run, cold, warm, local],
        floors,
        cost,
        answers: pass.answers,
    })
}

/// Copies everything, then runs the queries over the copies.
async fn ingest_then_compute(args: &DemoArgs, pass: &mut Pass<'_>) -> Result<(Run, TransferCost)> {
    let folder = &pass.stage.ingest_folder;
    let before = pass.stage.server.count().await?;
    let (started, cpu_before) = (forebay_runtime::now(), cpu::of_this_process());
    ingest::copy(&engines::s3(&pass.stage.server.endpoint)?, folder).await?;
    let (copy_secs, copy_cpu_secs) = (started.elapsed().as_secs_f64(), cpu::of_this_process() - cpu_before);
    let copied = since(before, pass.stage.server.count().await?);

    let mut run = pass.cold("ingest: then compute", engines::local(folder)).await?.1;
    std::fs::remove_dir_all(folder).context(|| folder.display())?;
    run.before_secs = copy_secs;
    run.bytes += copied.bytes;
    run.requests += copied.requests;
    let bytes = copied.bytes.max(1) as f64;
    let cost = TransferCost {
        bytes_per_sec: args.bandwidth.bytes_per_sec() as f64,
        latency_secs: args.latency.as_secs_f64(),
        receiver_cpu_per_byte: copy_cpu_secs / bytes,
        server_cpu_per_byte: copied.cpu_secs / bytes,
        cores: cpu::cores(),
    };
    Ok((run, cost))
}

/// Warm and local in turns, query by query, so that whatever else the machine does meets both alike; each query counts
/// with its median.
async fn alternate(
    args: &DemoArgs,
    pass: &mut Pass<'_>,
    forebay: &Tpch,
    local: &Tpch,
    started: Instant,
) -> Result<(Run, Run, u32)> {
    let rounds = args.rounds.unwrap_or(ROUNDS);
    let bar = progress::steps("Forebay, warm; local files", u64::from(rounds) * pass.queries.len() as u64);
    let (mut warm, mut locally) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if args.rounds.is_none() && round > 0 && started.elapsed() > ROUNDS_UNTIL {
            break;
        }
        let mut turn = (Run::default(), Run::default());
        for (at, &n) in pass.queries.iter().enumerate() {
            // Who goes first changes with every query and every round.
            if (at + round as usize).is_multiple_of(2) {
                pass.one("Forebay, warm", forebay, n, &mut turn.0).await?;
                pass.one("local files", local, n, &mut turn.1).await?;
            } else {
                pass.one("local files", local, n, &mut turn.1).await?;
                pass.one("Forebay, warm", forebay, n, &mut turn.0).await?;
            }
            bar.inc(1);
        }
        warm.push(turn.0);
        locally.push(turn.1);
    }
    bar.finish_and_clear();
    let rounds = warm.len() as u32;
    Ok((Run::median(&warm), Run::median(&locally), rounds))
}

/// Runs queries and measures them.
struct Pass<'a> {
    queries: &'a [usize],
    stage: &'a Stage,
    answers: Answers,
    /// What each query answered first: all others have to answer just that.
    first: HashMap<usize, Vec<RecordBatch>>,
}

impl Pass<'_> {
    /// Opens an engine that nobody has asked yet, and runs all queries: what it lists and reads to know its tables is a part of that.
    async fn cold(&mut self, what: &str, opening: impl Future<Output = Result<Tpch>>) -> Result<(Tpch, Run)> {
        let (before, started) = (self.stage.server.count().await?, forebay_runtime::now());
        let engine = opening.await?;
        let open_secs = started.elapsed().as_secs_f64();
        let opened = since(before, self.stage.server.count().await?);
        let mut run = self.all(what, &engine).await?;
        run.open_secs = open_secs;
        run.bytes += opened.bytes;
        run.requests += opened.requests;
        Ok((engine, run))
    }

    /// All queries, one after the other.
    async fn all(&mut self, what: &str, engine: &Tpch) -> Result<Run> {
        let bar = progress::steps(what, self.queries.len() as u64);
        let mut run = Run::default();
        for &n in self.queries {
            self.one(what, engine, n, &mut run).await?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(run)
    }

    /// One query. Only its planning and running are measured; its answer is checked afterwards.
    async fn one(&mut self, what: &str, engine: &Tpch, n: usize, run: &mut Run) -> Result<()> {
        let before = self.stage.server.count().await?;
        let (started, cpu_before) = (forebay_runtime::now(), cpu::of_this_process());
        let answer = engine.run(QUERIES[n - 1]).await.context(|| format!("{what}, query {n}"))?;
        let (secs, cpu_secs) = (started.elapsed().as_secs_f64(), cpu::of_this_process() - cpu_before);
        let counted = since(before, self.stage.server.count().await?);
        run.add(n, secs, cpu_secs, counted);
        self.check(what, n, &answer);
        Ok(())
    }

    fn check(&mut self, what: &str, n: usize, answer: &[RecordBatch]) {
        let published = if self.answers.checked { check_answer(n, answer) } else { Ok(()) };
        let first = self.first.entry(n).or_insert_with(|| answer.to_vec());
        let verdict = published.and_then(|()| same_answer(n, first, answer));
        if self.answers.checked || verdict.is_err() {
            self.answers.note(verdict.map_err(|wrong| format!("{what}: {wrong}")));
        }
    }
}

/// Reads all files, so that local files come from the page cache whenever the data was made.
fn read_once(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).context(|| folder.display())? {
        let path = entry.context(|| folder.display())?.path();
        if path.is_dir() {
            read_once(&path)?;
        } else {
            let read = File::open(&path).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
            read.context(|| path.display())?;
        }
    }
    Ok(())
}

fn since(before: Counted, now: Counted) -> Counted {
    Counted {
        bytes: now.bytes - before.bytes,
        requests: now.requests - before.requests,
        cpu_secs: now.cpu_secs - before.cpu_secs,
    }
}
