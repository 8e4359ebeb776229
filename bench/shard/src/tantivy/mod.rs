//! Searches beside Tantivy, a library of inverted indexes, in a process of its own: the same records, questions and hits, and about as many
//! stored bytes of both.

mod navigating;
mod peer;
mod questions;

use std::hint::black_box;
use std::time::Instant;

use forebay_bench_harness::{Bar, Figure, Rounds, cpu};
use forebay_shard::{Keys, QueryCounters, Shard};
use forebay_types::{Error, Result};

use self::peer::Peer;
use self::questions::{Kind, Question};
use crate::subject::Subject;
use crate::workload::Records;

/// What every figure stands beside.
const PEER: &str = "Tantivy 0.26.1";
/// Questions of a kind that a shard is asked for its dial to go by; it counts one of 16.
const COUNTED: usize = 128;

/// What Tantivy's index has of the records.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Each value as a term; all that is not a value or its beginning is a scan of the terms.
    Terms,
    /// Comments by trigrams as well.
    Trigrams,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Terms => "terms",
            Self::Trigrams => "trigrams",
        }
    }

    /// What is asked of it.
    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Terms => &Kind::ALL,
            Self::Trigrams => &[Kind::Substring, Kind::Regex],
        }
    }

    /// The attribute that it has trigrams of.
    fn grams(self) -> Option<usize> {
        match self {
            Self::Terms => None,
            Self::Trigrams => Some(questions::COMMENT),
        }
    }
}

/// What a round gave.
struct Took {
    /// Questions a second of CPU time.
    rate: f64,
    /// The middle time of one.
    p50_ms: f64,
}

/// What is measured, and how long.
pub(crate) struct Measure {
    /// Threads that build layers.
    pub(crate) threads: usize,
    /// CPU-seconds of each round at least.
    pub(crate) cpu_secs: f64,
    /// Rounds, in turns with the peer's.
    pub(crate) rounds: usize,
}

/// Each kind of search beside each form of index that can answer it.
pub(crate) fn figures(records: &Records, measure: &Measure) -> Result<()> {
    if measure.rounds == 0 {
        return Err(Error::invalid("--rounds is 1 at least"));
    }
    // Before minutes are spent on all else.
    let program = peer::program()?;
    let subject = Subject::build(records, measure.threads)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("records.jsonl");
    peer::write(records, &path)?;
    for form in [Form::Terms, Form::Trigrams] {
        let index = folder.path().join(form.name());
        std::fs::create_dir(&index)?;
        let peer = Peer::start(&program, &path, &index, form.grams().map(|place| records.attributes[place]))?;
        beside(form, records, &subject, peer, measure)?;
        std::fs::remove_dir_all(&index)?;
    }
    Ok(())
}

fn beside(form: Form, records: &Records, subject: &Subject, mut peer: Peer, measure: &Measure) -> Result<()> {
    let asked: Vec<(Kind, Vec<Question>)> = form.kinds().iter().map(|&kind| (kind, kind.draw(records))).collect();
    let bare = Shard::open(subject.base.clone(), [])?;
    let ratio = peer.bytes() as f64 / bare.info().input_bytes as f64;
    let counters = counters(&bare, &asked)?;
    let shard = subject.at(ratio, &counters)?;
    let (info, name) = (shard.info(), form.name());
    let bytes = (info.base_bytes + info.layer_bytes) as f64;
    let what = format!("stored beside Tantivy's {name}");
    Figure::new(what, bytes, "bytes", PEER, peer.bytes() as f64, Bar::RatioAtMost(1.05)).print(true);
    for (kind, questions) in &asked {
        let found = peer.learn(*kind, questions)?;
        let hits = same(&shard, *kind, questions, found)?;
        let (mut rates, mut p50s) = (Rounds::default(), Rounds::default());
        for round in 0..measure.rounds {
            // Who goes first has caches as the last one left them, so each does.
            let first = (round % 2 == 1).then(|| peer.run(*kind, measure.cpu_secs)).transpose()?;
            let ours = run(&shard, questions, measure.cpu_secs)?;
            let theirs = if let Some(took) = first { took } else { peer.run(*kind, measure.cpu_secs)? };
            rates.push(ours.rate, theirs.rate);
            p50s.push(ours.p50_ms, theirs.p50_ms);
        }
        let what = format!("{} beside Tantivy's {name} ({hits:.1} hits)", kind.name());
        let ((ours, theirs), (bar, p50_bar)) = (rates.medians(), kind.bars());
        Figure::new(format!("{what}: searches"), ours, "a CPU-second", PEER, theirs, bar).print(true);
        let (ours, theirs) = p50s.medians();
        Figure::new(format!("{what}: p50"), ours, "ms", PEER, theirs, p50_bar).print(true);
    }
    match form {
        // Shards are asked the same whatever the index has.
        Form::Terms => navigating::figures(&shard, (ratio, &counters), &asked, measure.cpu_secs * measure.rounds as f64),
        Form::Trigrams => Ok(()),
    }
}

/// What a shard counts when it is asked as often for each kind.
fn counters(shard: &Shard, asked: &[(Kind, Vec<Question>)]) -> Result<QueryCounters> {
    for (_, questions) in asked {
        for question in questions.iter().cycle().take(COUNTED) {
            black_box(shard.search(&question.query, None, None)?);
        }
    }
    Ok(shard.counters())
}

/// Both have found the same; says how much, of a question.
fn same(shard: &Shard, kind: Kind, questions: &[Question], found: Vec<Vec<u64>>) -> Result<f64> {
    if found.len() != questions.len() {
        return Err(Error::internal(format!("{PEER} has answered {} of {} questions", found.len(), questions.len())));
    }
    let mut hits = 0;
    for (question, theirs) in questions.iter().zip(found) {
        let (count, ours) = (theirs.len(), shard.search(&question.query, None, None)?.keys);
        if ours != Keys::U64(theirs) {
            let ours = ours.len();
            return Err(Error::internal(format!("{}: {} has {ours} hits here and {count} there", kind.name(), question.json)));
        }
        hits += count;
    }
    Ok(hits as f64 / questions.len() as f64)
}

/// Asks all questions until so much CPU time has gone, as the peer does.
fn run(shard: &Shard, questions: &[Question], cpu_secs: f64) -> Result<Took> {
    let (before, mut took) = (cpu::own(), Vec::new());
    loop {
        for question in questions {
            let began = Instant::now();
            black_box(shard.search(&question.query, None, None)?);
            took.push(began.elapsed());
        }
        let cpu = (cpu::own() - before).as_secs_f64();
        if cpu >= cpu_secs {
            took.sort_unstable();
            let p50_ms = took[took.len() / 2].as_secs_f64() * 1e3;
            return Ok(Took { rate: took.len() as f64 / cpu, p50_ms });
        }
    }
}
