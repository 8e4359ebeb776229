//! Shards that no disk here has: gets and equalities are answered from ranges of their cold files, through the tiers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use forebay_metrics::table;
use forebay_navigation::{FarCost, Residence, residence};
use forebay_protocol::ShardState;
use forebay_runtime::time::Instant as Deadline;
use forebay_shard::{ColdRange, ColdTail, Key as RecordKey, Value};
use forebay_shard_store::{Answered, DatasetCold, FarAnswer, FarQuestion, Store, Wanted, data_key};
use forebay_types::{Error, ErrorKind, ObjectVersion, OperationId, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::answer::{Answers, Questions, What};
use super::bring::below;
use super::lanes::{Lanes, Queued};
use super::served::Served;
use super::{Asked, Shards};
use crate::background::aside;
use crate::origin::MountDoor;

/// Far shards of which the tail is remembered.
pub(super) const FAR_MAX: usize = 256;
/// Calls that are answered at a time, of a shard: each waits for shared storage most of the time.
const CALLS_AT_ONCE: usize = 64;
/// Questions of a call that are answered at a time.
const QUESTIONS_AT_ONCE: usize = 8;
/// Updates of a far shard in memory, beyond which it is better off here, where it may come.
const UPDATE_BYTES_MAX: usize = 4 << 20;
/// Bytes that one answer may bring: a list of more keys than these can hold is none that is asked for rarely.
const RANGE_BYTES_MAX: u64 = 1 << 20;

/// A far shard: what is known of its cold file, and the log that it follows.
pub(super) struct Far {
    pub(super) served: Served,
    tail: ColdTail,
    version: ObjectVersion,
    cost: Mutex<FarCost>,
    began: Instant,
    /// There is room for it here, once others have made it.
    may_come: bool,
    is_coming: AtomicBool,
}

impl Far {
    /// How it stands, as a dataset's shard of that number.
    pub(super) fn state(&self, number: u32) -> ShardState {
        let why = match self.may_come {
            true => "it is asked too rarely to be brought: answered by ranges of its cold file",
            false => "it is larger than `shard-bytes`: gets and equalities are answered by ranges of its cold file",
        };
        ShardState { bytes: 0, size_milli: 0, why: why.to_string(), ..self.served.state(number) }
    }
}

/// What an answer took of shared storage, and the operation that it is part of.
#[derive(Clone, Copy)]
struct Took {
    operation: OperationId,
    requests: u64,
    bytes: u64,
}

impl Shards {
    /// Answers questions from afar, and says how long the queue is; none where the shard has to be here, or is.
    pub(super) async fn ask_far(
        self: &Arc<Self>,
        asked: &Arc<Asked>,
        came: Instant,
        deadline: Deadline,
        questions: &Questions,
    ) -> Result<Option<(Vec<u8>, Queued)>> {
        let Some(file) = &asked.shard().cold else { return Ok(None) };
        let is_here = self.served.lock().contains_key(&asked.id()) || self.kept.has(asked.id());
        if !is_here && self.kept.may_fit(asked.shard().bytes()) && self.is_pinned_here(asked) {
            return Ok(None);
        }
        let Some(planned) = (!is_here).then(|| plan(asked, questions)).transpose()?.flatten() else { return Ok(None) };
        let known = self.far.lock().get(&asked.id()).cloned();
        let place = where_to(known.as_deref(), &planned, asked, self.kept.bytes_max);
        if place == Residence::Brought {
            return Ok(None);
        }
        let late = || Error::retry("shared storage did not answer in time: ask again");
        let answers = self.far_answers(asked, file, known, came, deadline, (planned, questions));
        let answered = forebay_runtime::time::timeout_at(deadline, answers).await.map_err(|_| late())?;
        match answered {
            Ok(None) => Ok(None),
            Ok(Some((far, answers))) => {
                if place == Residence::FarUntilBrought {
                    self.bring_meanwhile(asked, &far);
                }
                Ok(Some((answers, far.served.lanes.told(far.served.presumed_steps(questions)))))
            }
            // The files of the shard itself say the same, where this one is damaged or gone.
            Err(error)
                if !matches!(error.kind(), ErrorKind::Retry | ErrorKind::Closed) && self.moved_to(&asked.manifest).is_none() =>
            {
                tracing::warn!(folder = %asked.folder(), shard = asked.number, %error, "a cold file is of no use: the shard is brought where there is room");
                self.far.lock().pop(&asked.id());
                match self.kept.may_fit(asked.shard().bytes()) {
                    true => Ok(None),
                    false => Err(self.neither_far_nor_here(asked, error).await),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// What is told where a shard has no room here, and its cold file is of no use: another worker may have the shard, and files of a later
    /// merge may be sound.
    async fn neither_far_nor_here(&self, asked: &Asked, error: Error) -> Error {
        let looked = match self.origin.mount(asked.manifest.id.mount).await {
            Ok(door) => self.look_for_newer(&door, &asked.manifest).await,
            Err(error) => Err(error),
        };
        if let Err(error) = looked {
            tracing::debug!(folder = %asked.folder(), %error, "later manifests can't be read");
        }
        Error::retry(format!(
            "{}: a cold file is of no use, and this worker has no room for its shard (`shard-bytes`): {error}",
            asked.folder()
        ))
    }

    async fn far_answers(
        self: &Arc<Self>,
        asked: &Asked,
        file: &DatasetCold,
        known: Option<Arc<Far>>,
        came: Instant,
        deadline: Deadline,
        (planned, questions): (Vec<Planned>, &Questions),
    ) -> Result<Option<(Arc<Far>, Vec<u8>)>> {
        let door = self.origin.mount(asked.manifest.id.mount).await?;
        let far = if let Some(far) = known { far } else { self.open_far(&door, asked, file).await? };
        let steps = far.served.presumed_steps(questions);
        let _turn = far.served.lanes.enter(steps, planned.iter().all(Planned::is_get), deadline).await?;
        let hashes = || planned.iter().filter_map(Planned::record).collect();
        self.catch_up(&far.served, came, hashes).await?;
        if far.may_come && far.served.store.load().update_bytes() > UPDATE_BYTES_MAX {
            return Ok(None);
        }
        let count = planned.len() as u64;
        // A call is one operation of those that popularity counts.
        let operation = OperationId(forebay_runtime::random());
        let answers = stream::iter(planned).map(|planned| self.far_answer(&door, &far, operation, planned));
        let answers = answers.buffered(QUESTIONS_AT_ONCE);
        let answers: Vec<Option<(Said, Took)>> = answers.try_collect().await?;
        debug_assert_eq!(answers.len() as u64, count, "an answer a question");
        let mut all = Answers::default();
        let mut took = Took { operation, requests: 0, bytes: 0 };
        for answer in answers {
            let Some((answer, of_answer)) = answer else { return Ok(None) };
            match answer {
                Said::Line(answer) => all.push(&answer)?,
                Said::Record(bytes) => all.push_record(|out| {
                    out.extend_from_slice(&bytes);
                    Ok(())
                })?,
            }
            took.requests += of_answer.requests;
            took.bytes += of_answer.bytes;
        }
        let mut cost = far.cost.lock();
        *cost = cost.with(far.began.elapsed().as_secs_f64(), count, took.requests, took.bytes);
        drop(cost);
        table::WORKER_SHARD_FAR.only().add(count);
        Ok(Some((far, all.into_bytes())))
    }

    /// The first request to a cold file: its tail, with the version that all others are of.
    async fn open_far(&self, door: &Arc<MountDoor>, asked: &Asked, file: &DatasetCold) -> Result<Arc<Far>> {
        let known = || self.far.lock().get(&asked.id()).cloned();
        let asking = self.turns.opening.join(asked.id());
        let _turn = asking.turn().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        assert!(file.tail_bytes <= file.bytes, "a manifest is checked where it is read");
        let key = below(asked.folder(), &data_key(&file.object))?;
        let (info, bytes) = self.origin.read_range(door, &key, file.bytes - file.tail_bytes..file.bytes).await?;
        if info.version.size != file.bytes {
            return Err(Error::corrupt(format!("{key}: it has {} bytes, not {}", info.version.size, file.bytes)));
        }
        let columns = &asked.manifest.dataset.columns;
        let tail = ColdTail::open(&bytes, file.bytes, &columns.schema()).map_err(|error| error.context(&key))?;
        let mut served = Served::new(asked, Store::far(columns.clone()));
        served.lanes = Lanes::of(CALLS_AT_ONCE);
        // Looks into the log are of this one, and none of the same shard's when it is here.
        served.id = !asked.id();
        let began = forebay_runtime::now();
        let cost = Mutex::new(FarCost::default().with(0.0, 0, 1, file.tail_bytes));
        let (may_come, is_coming) = (self.kept.may_fit(asked.shard().bytes()), AtomicBool::new(false));
        let far = Arc::new(Far { served, tail, version: info.version, cost, began, may_come, is_coming });
        self.far.lock().put(asked.id(), Arc::clone(&far));
        Ok(far)
    }

    /// None where the cold file can't say.
    async fn far_answer(
        &self,
        door: &Arc<MountDoor>,
        far: &Arc<Far>,
        operation: OperationId,
        planned: Planned,
    ) -> Result<Option<(Said, Took)>> {
        let log_from = far.served.log.as_ref().map_or(1, |log| log.from);
        let mut took = Took { operation, requests: 0, bytes: 0 };
        let question = match planned {
            Planned::Wrong(answer) => return Ok(Some((Said::Line(answer), took))),
            Planned::Record(key, wanted) => {
                let record = self.far_record(door, far, &key, &mut took).await?;
                let mut bytes = Vec::new();
                far.served.store.load().send_far(log_from, &key, &wanted, record.as_deref(), &mut bytes)?;
                return Ok(Some((Said::Record(bytes), took)));
            }
            Planned::Question(question) => question,
        };
        let said = match &question {
            FarQuestion::Get { key, .. } => FarAnswer::Record(self.far_record(door, far, key, &mut took).await?),
            FarQuestion::Updated { .. } => FarAnswer::Keys(Vec::new()),
            FarQuestion::Equal { attribute, value, .. } => {
                let Some(directory) = far.tail.directory(*attribute, value)? else { return Ok(None) };
                let bytes = self.far_bytes(door, far, &directory, &mut took).await?;
                let bucket = far.tail.bucket(*attribute, &directory, &bytes)?;
                if bucket.bytes.end - bucket.bytes.start > RANGE_BYTES_MAX {
                    return Ok(None);
                }
                let bytes = self.far_bytes(door, far, &bucket, &mut took).await?;
                FarAnswer::Keys(far.tail.keys(*attribute, &bucket, &bytes, value)?)
            }
        };
        let store = far.served.store.load();
        Ok(Some((Said::Line(store.answer_far(log_from, &question, said)), took)))
    }

    /// The record of a key as the cold file has it.
    async fn far_record(
        &self,
        door: &Arc<MountDoor>,
        far: &Arc<Far>,
        key: &RecordKey,
        took: &mut Took,
    ) -> Result<Option<Vec<Value>>> {
        let Some(range) = far.tail.block(key) else { return Ok(None) };
        let bytes = self.far_bytes(door, far, &range, took).await?;
        let (far, key) = (Arc::clone(far), key.clone());
        aside("unpacking a block", move || far.tail.record(&range, &bytes, &key)).await
    }

    /// A range of a cold file, through the tiers.
    async fn far_bytes(&self, door: &Arc<MountDoor>, far: &Far, range: &ColdRange, took: &mut Took) -> Result<Vec<u8>> {
        let (bytes, missed) = self.origin.read_version(door, took.operation, &far.version, range.bytes.clone()).await?;
        took.requests += missed.fetched.len() as u64;
        took.bytes += missed.fetched.iter().map(|run| run.bytes().end - run.bytes().start).sum::<u64>();
        Ok(bytes)
    }

    /// Has a shard brought while it is answered from afar; nobody waits for it.
    fn bring_meanwhile(self: &Arc<Self>, asked: &Arc<Asked>, far: &Arc<Far>) {
        if far.is_coming.swap(true, Relaxed) {
            return;
        }
        let (shards, asked, far) = (Arc::clone(self), Arc::clone(asked), Arc::clone(far));
        self.background.spawn(async move {
            match shards.served(&asked).await {
                Ok(_) => _ = shards.far.lock().pop(&asked.id()),
                Err(error) => {
                    tracing::debug!(folder = %asked.folder(), shard = asked.number, %error, "a shard stays far away");
                    // It is tried again when answers have cost as much once more.
                    *far.cost.lock() = FarCost::default();
                    far.is_coming.store(false, Relaxed);
                }
            }
        });
    }
}

/// An answer as it is sent.
enum Said {
    Line(Answered),
    Record(Vec<u8>),
}

/// What becomes of a question.
enum Planned {
    Question(FarQuestion),
    Record(RecordKey, Arc<Wanted>),
    Wrong(Answered),
}

impl Planned {
    fn is_get(&self) -> bool {
        !matches!(self, Self::Question(FarQuestion::Equal { .. } | FarQuestion::Updated { .. }))
    }

    fn is_equality(&self) -> bool {
        matches!(self, Self::Question(FarQuestion::Equal { .. }))
    }

    /// The hash of the record that is asked for.
    fn record(&self) -> Option<u64> {
        match self {
            Self::Question(FarQuestion::Get { key, .. }) | Self::Record(key, _) => Some(forebay_shard::key_hash(key)),
            _ => None,
        }
    }
}

/// None where one of the questions needs all of the shard.
fn plan(asked: &Asked, questions: &Questions) -> Result<Option<Vec<Planned>>> {
    let columns = &asked.manifest.dataset.columns;
    let lines = match &questions.what {
        What::Lines(lines) => lines,
        What::Records(keys, wanted) => {
            let wanted = Arc::new(wanted.clone());
            return Ok(Some(keys.iter().map(|key| Planned::Record(key.clone(), Arc::clone(&wanted))).collect()));
        }
    };
    let is_excluded = asked.shard().excluding(columns);
    let mut planned = Vec::with_capacity(lines.len());
    for line in lines {
        match FarQuestion::parse(columns, line, &is_excluded) {
            Ok(Some(question)) => planned.push(Planned::Question(question)),
            Ok(None) => return Ok(None),
            Err(error) => planned.push(Planned::Wrong(Answered::failed(&error))),
        }
    }
    Ok(Some(planned))
}

fn where_to(known: Option<&Far>, planned: &[Planned], asked: &Asked, room_bytes: u64) -> Residence {
    let cost = known.map_or(0.0, |far| far.cost.lock().at(far.began.elapsed().as_secs_f64()));
    let gets = planned.iter().filter(|planned| planned.record().is_some()).count() as u64;
    let equalities = planned.iter().filter(|planned| planned.is_equality()).count() as u64;
    residence(cost, gets, equalities, asked.shard().bytes(), room_bytes)
}
