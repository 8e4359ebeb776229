//! The crate's front for those who ask: gets, searches and counts over one set of layers, which changes under them.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use arc_swap::Guard;
use bytes::Bytes;
use forebay_types::{Error, Result};
use zstd::zstd_safe::DCtx;

use crate::base::Base;
use crate::inverted::index::{IndexSlice, keys_of};
use crate::keys::Keys;
use crate::layers::build::LayerBuilder;
use crate::layers::id::LayerId;
use crate::layers::layered::Layered;
use crate::layers::{LayerSet, plan};
use crate::model::key::{Key, KeyType};
use crate::model::schema::Schema;
use crate::model::value::Value;
use crate::query::Searcher;
use crate::query::chains::{self, ChainScratch};
use crate::query::predicate::Query;
use crate::query::test::Test;
use crate::query::waited::{GoOn, Waited};
use crate::query::work;
use crate::record::Record;
use crate::record::blocks::{self, BLOCK_RECORDS, BlockPlace, BlockReader};
use crate::record::body;
use crate::sampling::{QueryCounters, Sampler};
use crate::sections::{DICTIONARY, KEYS, PSI, ROWS, WALKS};
use crate::window::Window;

/// A shard of records over the bytes of its parts.
///
/// Readers take no lock ([`Layered`]). Answers are the same with any layers.
pub struct Shard {
    layered: Layered,
    sampler: Sampler,
}

impl Deref for Shard {
    type Target = Layered;

    fn deref(&self) -> &Layered {
        &self.layered
    }
}

/// Some of the keys that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The keys, in order.
    pub keys: Keys,
    /// The key to go on after, if there are more.
    pub next: Option<Key>,
}

/// What a shard is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardInfo {
    /// The hash of the base: the same in all replicas.
    pub identity: u64,
    /// Records.
    pub records: u64,
    /// Bytes of keys, values, and a delimiter an attribute.
    pub input_bytes: u64,
    /// Bytes of the base part.
    pub base_bytes: u64,
    /// Bytes of the layers.
    pub layer_bytes: u64,
}

impl ShardInfo {
    /// All bytes to those of the input.
    pub fn ratio(&self) -> f64 {
        (self.base_bytes + self.layer_bytes) as f64 / self.input_bytes.max(1) as f64
    }
}

/// Buffers of a thread's gets.
struct Scratch {
    chains: ChainScratch,
    context: Option<DCtx<'static>>,
    raw: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> =
        RefCell::new(Scratch { chains: ChainScratch::default(), context: None, raw: Vec::new() });
}

impl Shard {
    /// Puts the parts together. Of the base the head is verified, and each other section when it is used first; layers are as a whole.
    pub fn open(base: Bytes, layers: impl IntoIterator<Item = Bytes>) -> Result<Self> {
        Self::open_named("", base, layers)
    }

    /// The same of a base that errors call by a name, as of its file: damage of it may be found later.
    pub fn open_named(name: &str, base: Bytes, layers: impl IntoIterator<Item = Bytes>) -> Result<Self> {
        let mut base = Base::open(base)?;
        base.sections.name = name.to_string();
        if base.numbers.flat == 1 {
            return Err(Error::invalid("this shard holds flat text, not records; open it as text"));
        }
        let sampler = Sampler::new(base.schema.attributes.len());
        Ok(Self { layered: Layered::new(base, layers)?, sampler })
    }

    /// What the records look like.
    pub fn schema(&self) -> &Schema {
        &self.base.schema
    }

    /// Sizes.
    pub fn info(&self) -> ShardInfo {
        ShardInfo {
            identity: self.base.identity,
            records: self.base.numbers.records,
            input_bytes: self.base.numbers.input_bytes,
            base_bytes: self.base.bytes as u64,
            layer_bytes: self.layers().iter().map(|layer| layer.bytes as u64).sum(),
        }
    }

    /// How often what was asked since the shard was opened.
    pub fn counters(&self) -> QueryCounters {
        self.sampler.read()
    }

    /// The record of `key`, or `None`.
    pub fn get(&self, key: &Key) -> Result<Option<Vec<Value>>> {
        let mut record = Record::new();
        let found = self.get_into(key, None, &mut record)?;
        found.then(|| record.values(&self.base.schema, None)).transpose()
    }

    /// Puts the record of `key`, or some of its attributes (by index, in the order asked for), into `out` as encoded bytes; false if there is none.
    pub fn get_into(&self, key: &Key, columns: Option<&[usize]>, out: &mut Record) -> Result<bool> {
        self.check_columns(columns)?;
        self.sampler.get(columns);
        work::begins(self.get_steps());
        self.base.need(KEYS)?;
        let Some(record) = self.base.keys.find(key) else { return Ok(false) };
        if columns.is_some_and(<[usize]>::is_empty) {
            out.clear();
            return Ok(true);
        }
        let set = self.layers.load();
        self.read(&set, record, columns, out)?;
        Ok(true)
    }

    /// Whether there is a record of `key`. No value is read for it.
    pub fn contains(&self, key: &Key) -> Result<bool> {
        self.base.need(KEYS)?;
        Ok(self.base.keys.find(key).is_some())
    }

    /// The first key in order.
    pub fn first_key(&self) -> Result<Option<Key>> {
        self.base.need(KEYS)?;
        Ok((self.base.records() > 0).then(|| self.base.keys.get(0)))
    }

    /// The last key in order.
    pub fn last_key(&self) -> Result<Option<Key>> {
        self.base.need(KEYS)?;
        Ok(self.base.records().checked_sub(1).map(|record| self.base.keys.get(record)))
    }

    /// Calls with the key and the values of each record above `after`, in the order of keys, until it returns false.
    pub fn scan(&self, after: Option<&Key>, mut call: impl FnMut(Key, &Record) -> Result<bool>) -> Result<()> {
        self.base.need(KEYS)?;
        let mut record = after.map_or(0, |key| self.base.keys.rank(key, true));
        // What no layer has the text of is read side by side: one after the other each step waits for memory.
        let walks = LayerBuilder::new(self.base.clone(), &[])?;
        let mut out = Record::new();
        while record < self.base.records() {
            let set = self.layers.load();
            let read = if self.has_text(&set, record) {
                self.read(&set, record, None, &mut out)?;
                call(self.base.keys.get(record), &out)?.then_some(1)
            } else {
                self.base.need(WALKS)?;
                walks.read_from(record, |record, out| call(self.base.keys.get(record), out))?
            };
            let Some(read) = read else { break };
            record += read;
        }
        Ok(())
    }

    fn has_text(&self, set: &LayerSet, record: u32) -> bool {
        let record = u64::from(record);
        matches!(set.plain.get((record >> set.plain_shift) as usize), Some(Some(_)))
            || matches!(set.blocks.get((record >> set.blocks_shift) as usize), Some(Some(_)))
    }

    fn check_columns(&self, columns: Option<&[usize]>) -> Result<()> {
        let count = self.base.schema.attributes.len();
        match columns.unwrap_or_default().iter().find(|column| **column >= count) {
            Some(column) => Err(Error::invalid(format!("there is no attribute {column}; the shard has {count}"))),
            None if columns.is_some_and(|columns| columns.len() > 128) => Err(Error::invalid("at most 128 columns a get")),
            None => Ok(()),
        }
    }

    /// Reads a record by the fastest layer that has it.
    fn read(&self, set: &LayerSet, record: u32, columns: Option<&[usize]>, out: &mut Record) -> Result<()> {
        let attributes = self.base.schema.attributes.len();
        if let Some(Some(plain)) = set.plain.get((u64::from(record) >> set.plain_shift) as usize) {
            let index = u64::from(record) & ((1 << set.plain_shift) - 1);
            body::read(plain.body(index as usize), attributes, columns, out);
            return Ok(());
        }
        SCRATCH.with_borrow_mut(|scratch| {
            if let Some(Some(slice)) = set.blocks.get((u64::from(record) >> set.blocks_shift) as usize)
                && !columns.is_some_and(|columns| self.are_sampled(set, record, columns))
            {
                self.base.need(DICTIONARY)?;
                let index = (u64::from(record) & ((1 << set.blocks_shift) - 1)) as u32;
                let first = record - record % BLOCK_RECORDS;
                let place = BlockPlace {
                    block: (index / BLOCK_RECORDS) as usize,
                    record: record - first,
                    count: BLOCK_RECORDS.min(self.base.records() - first),
                };
                let context = scratch.context.get_or_insert_with(blocks::unpacking);
                let mut reader = BlockReader { context, dictionary: &|| self.base.unpacker(), raw: &mut scratch.raw };
                return slice.read(place, &self.base.codes, columns, &mut reader, out);
            }
            self.base.need(WALKS)?;
            chains::read(&self.base, set, &mut scratch.chains, record, columns, out);
            Ok(())
        })
    }

    /// Whether a walk to some attributes is shorter than unpacking a block, in which those that are numbered are at hand.
    fn are_sampled(&self, set: &LayerSet, record: u32, columns: &[usize]) -> bool {
        !self.base.codes.have_all(columns) && columns.iter().all(|column| set.isa[*column].get(record as usize).is_some())
    }

    /// The keys where `query` holds, in order: at most `limit`, those above `after`. With a limit it takes about as long as it
    /// takes to come upon so many records, or to find all hits, whichever is less.
    pub fn search(&self, query: &Query, limit: Option<usize>, after: Option<&Key>) -> Result<Page> {
        self.search_while(query, limit, after, &|| Ok(()))
    }

    /// The same as long as `go_on` says so; its error where it ends before.
    pub fn search_while(&self, query: &Query, limit: Option<usize>, after: Option<&Key>, go_on: &GoOn<'_>) -> Result<Page> {
        self.base.need(KEYS)?;
        let (set, query) = (self.layers.load(), query.alone());
        // One more than is asked for tells whether there are more.
        let count = limit.map_or(usize::MAX, |limit| limit.saturating_add(1));
        let window = Window { from: after.map_or(0, |key| self.base.keys.rank(key, true)), count };
        if let Some(mut entries) = self.search_index(&set, query, after, window)? {
            let is_more = limit.is_some_and(|limit| entries.len() > limit);
            entries.truncate(limit.unwrap_or(usize::MAX));
            let next = entries.last().filter(|_| is_more).map(|entry| self.key_of_entry(*entry));
            return Ok(Page { keys: self.keys_of_entries(entries), next });
        }
        let mut records = self.with_searcher(&set, go_on, |searcher| searcher.first(query, window))?;
        let is_more = limit.is_some_and(|limit| records.len() > limit);
        records.truncate(limit.unwrap_or(usize::MAX));
        let next = records.last().filter(|_| is_more).map(|record| self.base.keys.get(*record));
        Ok(Page { keys: self.base.keys.get_all(&records), next })
    }

    /// Answers an equality, or several of one attribute, from the index of that, if all slices are there.
    fn search_index(&self, set: &LayerSet, query: &Query, after: Option<&Key>, window: Window) -> Result<Option<Vec<u64>>> {
        let Some((attribute, values)) = query.equalities() else { return Ok(None) };
        let Some(slices) = set.index.get(attribute).filter(|slices| !slices.is_empty() && slices.iter().all(Option::is_some))
        else {
            return Ok(None);
        };
        let mut wanted = vec![Vec::new(); values.len()];
        for (value, bytes) in values.into_iter().zip(&mut wanted) {
            if !self.base.schema.attributes[attribute].value_type.encode(value, bytes)? {
                return Ok(None);
            }
        }
        // What is wanted twice is there once.
        wanted.sort_unstable();
        wanted.dedup();
        // The entries are keys if those are numbers, and records otherwise.
        let lowest = match (self.base.key_type(), after) {
            (KeyType::U64, Some(Key::U64(after))) => after.checked_add(1),
            (KeyType::U64, _) => Some(0),
            (KeyType::Bytes, _) => Some(u64::from(window.from)),
        };
        let (mut entries, mut pieces) = (Vec::new(), 0);
        if let Some(lowest) = lowest {
            for bytes in &wanted {
                let hash = IndexSlice::hash(bytes);
                for slice in slices.iter().flatten() {
                    let before = entries.len();
                    slice.find(hash, bytes, lowest, window.count, &mut entries);
                    pieces += usize::from(entries.len() > before);
                }
            }
        }
        if pieces > 1 {
            entries.sort_unstable();
            entries.truncate(window.count);
        }
        self.sampler.search(attribute, entries.len() as u64);
        work::begins(work::of_hits(&self.base, entries.len() as u64));
        Ok(Some(entries))
    }

    fn key_of_entry(&self, entry: u64) -> Key {
        match self.base.key_type() {
            KeyType::U64 => Key::U64(entry),
            KeyType::Bytes => self.base.keys.get(entry as u32),
        }
    }

    fn keys_of_entries(&self, entries: Vec<u64>) -> Keys {
        keys_of(self.base.key_type(), entries, |record| match self.base.keys.get(record) {
            Key::Bytes(key) => key,
            Key::U64(_) => Vec::new(),
        })
    }

    /// How many records there are where `query` holds.
    pub fn count(&self, query: &Query) -> Result<u64> {
        self.count_while(query, &|| Ok(()))
    }

    /// The same as long as `go_on` says so; its error where it ends before.
    pub fn count_while(&self, query: &Query, go_on: &GoOn<'_>) -> Result<u64> {
        self.with_searcher(&self.layers.load(), go_on, |searcher| searcher.count(query))
    }

    /// Steps that a get is estimated to take, in those of the base alone.
    pub fn get_steps(&self) -> u64 {
        work::steps_of_get(self.base.numbers.symbols, self.base.numbers.records)
    }

    /// Steps that a search is estimated to take: its backward search is made for that, and tells how many rows there are to find.
    pub fn search_steps(&self, query: &Query, limit: Option<usize>) -> Result<u64> {
        self.base.need(PSI)?;
        let count = limit.map_or(usize::MAX, |limit| limit.saturating_add(1));
        Ok(work::of_search(&self.base, &Test::of(&self.base, query.alone())?, count))
    }

    /// The same for a count.
    pub fn count_steps(&self, query: &Query) -> Result<u64> {
        self.base.need(PSI)?;
        Ok(work::of_count(&self.base, &Test::of(&self.base, query)?))
    }

    fn with_searcher<T>(&self, set: &LayerSet, go_on: &GoOn<'_>, call: impl FnOnce(&Searcher<'_>) -> Result<T>) -> Result<T> {
        self.base.need(ROWS)?;
        let read = |record: u32, columns: &[usize], out: &mut Record| self.read(set, record, Some(columns), out);
        call(&Searcher { base: &self.base, set, sampler: &self.sampler, read: &read, waited: Waited::new(go_on) })
    }

    /// `length` bytes of one value from byte `offset` on; fewer at its end. `None` without such a record, or for null.
    pub fn extract(&self, key: &Key, attribute: usize, offset: usize, length: usize) -> Result<Option<Vec<u8>>> {
        let mut record = Record::new();
        if !self.get_into(key, Some(&[attribute]), &mut record)? {
            return Ok(None);
        }
        Ok(record.bytes(0).map(|bytes| bytes.iter().skip(offset).take(length).copied().collect()))
    }

    /// Begins to fill a slice with what queries compute anyway. It is used as far as it is filled.
    pub fn begin_filling(&self, id: LayerId) -> Result<()> {
        loop {
            let present = self.layers.load();
            let mut next = (**present).clone();
            next.begin_filling(&self.base, id)?;
            let seen = self.layers.compare_and_swap(&present, Arc::new(next));
            // Else another change came first.
            if Arc::ptr_eq(&Guard::into_inner(seen), &present) {
                return Ok(());
            }
        }
    }

    /// The part of a slice that queries have filled, for [`add_layer`](Layered::add_layer); `None` while values are missing.
    pub fn seal(&self, id: LayerId) -> Option<Bytes> {
        self.layers.load().seal(&self.base, id).map(Bytes::from)
    }

    /// The layers that bring the shard to `ratio` of its input, or as near below as slices allow, chosen by throughput
    /// gained a byte for queries such as those counted.
    pub fn dial(&self, ratio: f64, counters: &QueryCounters) -> Vec<LayerId> {
        plan::dial(&self.base, ratio, counters)
    }

    /// A builder of the layers `ids`.
    pub fn layer_builder(&self, ids: &[LayerId]) -> Result<LayerBuilder> {
        LayerBuilder::new(self.base.clone(), ids)
    }
}
