//! A shard that answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use forebay_navigation::{MERGE_LIMITS, Telling, Unmerged};
use forebay_protocol::{ShardHeld, ShardState};
use forebay_runtime::time::Instant;
use forebay_shard::{Key as RecordKey, at_hand, steps_of_get, worked};
use forebay_shard_store::{DatasetFile, LogObject, Store, Updates, while_waited};
use forebay_types::{Error, ErrorKind, Key, Result, format_bytes};
use parking_lot::Mutex;

use super::answer::{Questions, answer_all};
use super::dial::Dial;
use super::lanes::{Lanes, Queued, Turn};
use super::log::{Follower, Merging, Queue};
use super::spent::Spent;
use super::{Asked, BROUGHT_SOON, Manifest, Shards};
use crate::background::aside;

/// A shard that is open.
pub(super) struct Served {
    pub(super) id: u128,
    pub(super) part: Part,
    pub(super) lanes: Lanes,
    pub(super) store: ArcSwap<Store>,
    pub(super) bytes: AtomicU64,
    pub(super) dial: Dial,
    /// The log that it follows; none where nobody changes it.
    pub(super) log: Option<Follower>,
    /// Changes that wait.
    pub(super) queue: Queue,
    pub(super) merging: Merging,
    pub(super) marks: Marks,
    spent: Spent,
    /// The view's epoch and version, and the manifest, by which it has its place among the holders.
    placed: Mutex<Option<(u64, u64, u64)>>,
}

/// What was seen of it.
#[derive(Default)]
pub(super) struct Marks {
    /// Its layers were looked at since it is known what it is asked.
    pub(super) is_steered: AtomicBool,
    /// Its files are damaged, and about to go.
    pub(super) is_leaving: AtomicBool,
}

/// Which part of which dataset a shard is.
pub(super) struct Part {
    pub(super) folder: Key,
    pub(super) number: u32,
    /// The one that it was opened by.
    pub(super) manifest: Arc<Manifest>,
    pub(super) input_bytes: u64,
    /// What it came in.
    pub(super) files: Vec<DatasetFile>,
}

/// What an asker waits for an answer beyond the time that he says.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

impl Served {
    pub(super) fn new(asked: &Asked, store: Store) -> Self {
        let shard = asked.shard();
        let (base_bytes, input_bytes) = (shard.bytes(), shard.input_bytes);
        let log = asked.log().map(|place| Follower::new(asked.manifest.id.mount, place, shard.log_from));
        Self {
            id: asked.id(),
            part: Part {
                folder: asked.folder().clone(),
                number: asked.number,
                manifest: Arc::clone(&asked.manifest),
                input_bytes,
                files: shard.files.clone(),
            },
            lanes: Lanes::default(),
            store: ArcSwap::from_pointee(store),
            bytes: AtomicU64::new(0),
            dial: Dial::new(base_bytes, input_bytes),
            log,
            queue: Queue::default(),
            merging: Merging::default(),
            marks: Marks::default(),
            spent: Spent::new(steps_of_get(input_bytes, shard.records)),
            placed: Mutex::default(),
        }
    }

    /// Answers in the shard's turn, on a thread that may block.
    pub(super) async fn answer(&self, questions: Questions, deadline: Instant) -> Result<(Vec<u8>, Queued)> {
        if let Some(damage) = self.store.load().damage() {
            return Err(damage);
        }
        let presumed = self.presumed_steps(&questions);
        self.dial.arrived(presumed);
        // Who is told when may go elsewhere as well.
        let later = |error: Error| match error.kind() {
            ErrorKind::Retry => error.after(self.dial.again_after(self.lanes.steps())),
            _ => error,
        };
        let mut turn = self.lanes.line_up(presumed).map_err(later)?;
        let questions = Arc::new(questions);
        if !self.lanes.begins(&mut turn, questions.are_gets) {
            if !questions.are_gets {
                self.weigh(&turn, &questions, deadline).await?;
            }
            turn = self.lanes.wait(turn, questions.are_gets, deadline).await.map_err(later)?;
        }
        let (turn, store) = (Arc::new(turn), self.store.load_full());
        // There as long as somebody waits.
        let waits = Arc::new(());
        let waiting = Arc::downgrade(&waits);
        let is_waited = move || match waiting.strong_count() > 0 && forebay_runtime::time::instant() < deadline + ON_ITS_WAY {
            true => Ok(()),
            false => Err(Error::retry("the question takes longer than its asker waits: ask for less")),
        };
        let (log_from, asked) = (self.log_from(), Arc::clone(&questions));
        let work = move || {
            let (before, weighed) = (worked(), Arc::clone(&turn));
            let go_on = move || {
                // What is asked of it after its backward search is known to the queue from then on.
                weighed.weigh_up(worked() - before);
                is_waited()
            };
            let (verified, began) = (store.verified(), forebay_runtime::now());
            let answers = while_waited(go_on, || answer_all(&store, log_from, &asked, deadline));
            if let Some(damage) = store.damage() {
                return Err(damage);
            }
            let is_usual = store.verified() == verified;
            if !asked.are_gets {
                turn.weigh(worked() - before);
            }
            // Held by the work itself until here: a caller that goes away leaves no room for another one beside it.
            answers.map(|answers| (answers, began.elapsed(), turn.steps(), is_usual))
        };
        let (answers, took, steps, is_usual) = aside("a question", work).await?;
        drop(waits);
        self.dial.corrected(presumed, steps);
        match is_usual {
            true => self.took(&questions, steps, took),
            // What is verified once says nothing of what others wait for.
            false => self.spent.answered(&questions, steps, took.as_secs_f64() * 1e6),
        }
        Ok((answers, self.lanes.told(steps)))
    }

    /// Weighs searches that have to wait, unless others are being weighed: what is behind them has to know what is before it.
    async fn weigh(&self, turn: &Turn, questions: &Arc<Questions>, deadline: Instant) -> Result<()> {
        let Some(weighing) = self.lanes.weighs() else { return Ok(()) };
        let (asked, store) = (Arc::clone(questions), self.store.load_full());
        let work = move || {
            let steps = asked.steps(&store);
            // Held until here, also where nobody waits for it any more.
            drop(weighing);
            Ok(steps)
        };
        // Who has waited too long is told so when he waits for his turn.
        if let Ok(steps) = forebay_runtime::time::timeout_at(deadline, aside("weighing a question", work)).await {
            turn.weigh(steps?);
        }
        Ok(())
    }

    /// Answers gets here and now; none where they may take long, as of bytes that are not verified yet, or as many are being answered so as may,
    /// and of files that were found to be damaged: who asks in its turn has them brought anew.
    pub(super) fn answer_at_hand(&self, questions: &Questions, deadline: Instant) -> Option<Result<(Vec<u8>, Queued)>> {
        let store = self.store.load();
        if store.damage().is_some() {
            return None;
        }
        let steps = self.presumed_steps(questions);
        let turn = self.is_quick(questions).then(|| self.lanes.enter_now(steps))??;
        debug_assert!(questions.are_gets, "searches take their time");
        let began = forebay_runtime::now();
        let answers = at_hand(|| answer_all(&store, self.log_from(), questions, deadline))?;
        self.dial.arrived(steps);
        self.took(questions, steps, began.elapsed());
        drop(turn);
        Some(answers.map(|answers| (answers, self.lanes.told(steps))))
    }

    fn log_from(&self) -> u64 {
        self.log.as_ref().map_or(1, |log| log.from)
    }

    fn took(&self, questions: &Questions, steps: u64, took: Duration) {
        let us = took.as_secs_f64() * 1e6;
        self.dial.took(us, steps);
        self.spent.answered(questions, steps, us);
    }

    /// Whether questions are gets that are presumed to be answered at once.
    pub(super) fn is_quick(&self, questions: &Questions) -> bool {
        self.spent.is_quick(questions)
    }

    /// Steps that questions are presumed to take, before their backward searches.
    pub(super) fn presumed_steps(&self, questions: &Questions) -> u64 {
        self.spent.presumed(questions)
    }

    /// Whether its layers may be for nothing in particular still, and it was asked something since.
    pub(super) fn may_be_steered(&self) -> bool {
        !self.marks.is_steered.load(Relaxed) && self.spent.calls() > 0
    }

    /// Whether a place among the holders was found before by the same view and manifest; from now on it was.
    pub(super) fn is_placed(&self, by: (u64, u64, u64)) -> bool {
        self.placed.lock().replace(by) == Some(by)
    }

    /// How it stands, as a dataset's shard of that number.
    pub(super) fn state(&self, number: u32) -> ShardState {
        let (why, is_changing, size_milli) = self.dial.told();
        ShardState {
            shard: number,
            bytes: self.bytes.load(Relaxed),
            size_milli,
            is_changing,
            answered: self.spent.calls(),
            queue: self.lanes.calls(),
            why,
            claim: None,
            calls_per_min: self.dial.calls_per_min(),
        }
    }

    /// The same for a worker that is to copy it.
    pub(super) fn held(&self) -> ShardHeld {
        let bytes = (self.dial.now() * self.part.input_bytes as f64) as u64;
        ShardHeld { bytes, queue: self.lanes.calls() }
    }

    /// What is asked from now on is answered from another state of its files, with the same changes on top. Gives the one before: letting go of
    /// what is mapped of large files takes milliseconds.
    pub(super) fn replace(&self, store: Store) -> Arc<Store> {
        let replace = || {
            let before = self.store.load();
            store.adopt_verified(&before);
            store.adopt_updates(&before);
            self.store.swap(Arc::new(store))
        };
        if let Some(log) = &self.log { log.hold(replace) } else { replace() }
    }

    /// Has what the same shard in files from before a merge was told of its log since then: nobody waits until that is read again.
    pub(super) fn go_on_from(&self, before: &Self) {
        if let (Some(log), Some(other)) = (&self.log, &before.log) {
            log.go_on_from(other, || self.store.load().adopt_updates_from(&before.store.load(), log.from));
        }
    }

    /// Whether a key's record is in this shard, if anywhere.
    pub(super) fn holds(&self, key: &RecordKey) -> bool {
        self.part.manifest.dataset.shard_of(key) == self.part.number as usize
    }

    /// Has what begins from now on see what the next object of the log says.
    pub(super) fn take_over(&self, number: u64, mut object: LogObject) -> Result<()> {
        if let Some(log) = self.log_with_room()? {
            let mut updates = updates_of(number, &mut object);
            log.take_over(number, object, |_| self.add(&mut updates));
        }
        Ok(())
    }

    /// The same of an object with these bytes, which shared storage may not have yet.
    pub(super) fn take_over_kept(&self, number: u64, mut object: LogObject, bytes: &[u8]) -> Result<()> {
        if let Some(log) = self.log_with_room()? {
            let mut updates = updates_of(number, &mut object);
            log.take_over_kept(number, object, bytes, |_| self.add(&mut updates));
        }
        Ok(())
    }

    /// The word came that shared storage has an object of the log, with it: has what begins from now on see what it says, where it is the next one
    /// and may be taken.
    pub(super) fn hear(&self, number: u64, bytes: &[u8], may_take: bool) -> Result<Telling> {
        let Some(log) = self.log.as_ref().filter(|log| number <= log.read().next) else { return Ok(Telling::Look) };
        let schema = self.store.load().records()?.schema();
        let mut object = LogObject::decode(bytes, number, &schema, self.part.folder.as_str())?;
        if !matches!(object, LogObject::Calls(_) | LogObject::Kept(..)) {
            return Ok(Telling::Look);
        }
        // What is here already is not made ready once more.
        let may_take = may_take && log.read().next == number;
        let mut updates = if may_take { updates_of(number, &mut object) } else { None };
        Ok(log.hear(number, object, bytes, may_take, |_| self.add(&mut updates)))
    }

    /// The changes of an object come with its first call.
    fn add(&self, updates: &mut Option<Updates>) {
        if let Some(updates) = updates.take() {
            self.store.load().add(updates);
        }
    }

    fn log_with_room(&self) -> Result<Option<&Follower>> {
        // Writers stop at half of it, by their own count.
        match self.store.load().update_bytes() as u64 > 2 * MERGE_LIMITS.shard_bytes {
            true => Err(self.no_room()),
            false => Ok(self.log.as_ref()),
        }
    }

    /// Has it known which keys have records, for those who hold others up when they look: to verify the keys of a large shard takes a while.
    pub(super) async fn have_keys(&self) -> Result<()> {
        let store = self.store.load_full();
        if let Some(known) = at_hand(|| store.verify_keys()) {
            return known;
        }
        let verified = aside("verifying keys", move || store.verify_keys()).await;
        verified.map_err(|error| self.instead_of(error))
    }

    /// What is told in the place of an error: where its files are damaged, that they come again.
    pub(super) fn instead_of(&self, error: Error) -> Error {
        if self.store.load().damage().is_none() {
            return error;
        }
        let (folder, number) = (&self.part.folder, self.part.number);
        Error::retry(format!("{folder} shard {number}: its files here are damaged, and brought anew: ask again"))
            .after(BROUGHT_SOON)
    }

    /// Why it takes nothing more.
    pub(super) fn no_room(&self) -> Error {
        Error::retry(format!(
            "{} shard {}: {} of changes, of {} of all shards here, are not merged into files yet, which goes on: ask again, or `forebay \
             shard merge` the datasets",
            self.part.folder,
            self.part.number,
            format_bytes(MERGE_LIMITS.shard_bytes),
            format_bytes(MERGE_LIMITS.all_bytes),
        ))
    }

    /// What was changed in it since its files were made, as of a shard that is this worker's to merge.
    pub(super) fn unmerged(&self) -> Unmerged {
        Unmerged {
            input_bytes: self.part.input_bytes,
            bytes: self.store.load().update_bytes() as u64,
            objects: self.log.as_ref().map_or(0, |log| log.read().next - log.from),
            is_mine: true,
            is_merging: self.merging.is_under_way(),
            is_put_off: self.merging.is_put_off(),
        }
    }
}

/// The changes of an object, made ready while nobody is held up by the log's lock: each get looks at that.
fn updates_of(number: u64, object: &mut LogObject) -> Option<Updates> {
    Some(Updates::new(number, object.take_changes()))
}

impl Shards {
    /// Answers gets of a shard that is here and has heard of all changes, and says how long its queue is; none where something has to be
    /// waited for, or may take long.
    pub(super) fn at_hand(&self, asked: &Asked, questions: &Questions, deadline: Instant) -> Result<Option<(Vec<u8>, Queued)>> {
        let Some(served) = self.find(asked.id()).filter(|served| served.is_quick(questions)) else { return Ok(None) };
        self.place(&served, asked);
        if let Some(log) = &served.log {
            let Some(door) = self.origin.mounts.find(log.mount()) else { return Ok(None) };
            if !self.is_fresh(&door, log, || questions.records(&asked.manifest.dataset.columns)) {
                return Ok(None);
            }
        }
        served.answer_at_hand(questions, deadline).transpose()
    }
}
