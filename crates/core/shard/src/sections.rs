//! The sections of a base, each verified when it is used for the first time: what opens a base reads its head alone.
//!
//! A section is the least that is verified at once. What walks it loads a few bytes anywhere in it, tens of times for each record, and can
//! neither wait nor fail there; and whoever walks psi comes upon nearly every page of it within a few records.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use forebay_types::{Error, Result};

use crate::part::Part;

/// The sections of a base part, in order.
pub(crate) mod section {
    pub(crate) const NUMBERS: usize = 0;
    pub(crate) const SCHEMA: usize = 1;
    pub(crate) const ALPHABET: usize = 2;
    pub(crate) const COLUMNS: usize = 3;
    pub(crate) const ATTRIBUTES: usize = 4;
    pub(crate) const DIRECTORY: usize = 5;
    pub(crate) const PAYLOAD: usize = 6;
    pub(crate) const STARTS: usize = 7;
    pub(crate) const RECORDS: usize = 8;
    pub(crate) const DICTIONARY: usize = 9;
    pub(crate) const KEYS: usize = 10;
    pub(crate) const CODES: usize = 15;
}

/// Sections of a base; those behind are used by nobody.
const COUNT: usize = 16;
/// All of them, a bit each.
pub(crate) const ALL: u32 = (1 << COUNT) - 1;
/// What a base is opened by: the small ones, with what the other sections of keys are read by.
pub(crate) const HEAD: u32 = 1 << section::NUMBERS
    | 1 << section::SCHEMA
    | 1 << section::ALPHABET
    | 1 << section::COLUMNS
    | 1 << section::ATTRIBUTES
    | 1 << section::KEYS
    | 1 << section::CODES;
/// Keys by record, and records by key.
pub(crate) const KEYS: u32 = 0b1_1111 << section::KEYS;
/// Patterns to rows.
pub(crate) const PSI: u32 = 1 << section::DIRECTORY | 1 << section::PAYLOAD;
/// Records along psi.
pub(crate) const WALKS: u32 = PSI | 1 << section::STARTS;
/// Rows to records as well.
pub(crate) const ROWS: u32 = WALKS | 1 << section::RECORDS;
/// Blocks of the record text.
pub(crate) const DICTIONARY: u32 = 1 << section::DICTIONARY;
/// Stands beside the bits of sections: one of them is damaged.
const DAMAGED: u32 = 1 << 31;

thread_local! {
    /// Whether what may not wait was refused bytes; none where all may wait.
    static REFUSED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// A base's part, and which of its sections have verified.
pub(crate) struct Sections {
    pub(crate) part: Part,
    /// What errors call it; may be empty.
    pub(crate) name: String,
    verified: AtomicU32,
    /// One verifies a section, and all who need it wait for that.
    outcomes: [OnceLock<Result<()>>; COUNT],
}

impl Sections {
    pub(crate) fn new(part: Part) -> Self {
        Self { part, name: String::new(), verified: AtomicU32::new(0), outcomes: Default::default() }
    }

    /// Stands before each use of some sections. `Corrupt`, with the place in the file, from the first use of a damaged one on.
    #[inline]
    pub(crate) fn need(&self, wanted: u32) -> Result<()> {
        debug_assert_eq!(wanted & !ALL, 0, "a base has no such section");
        if self.verified.load(Ordering::Acquire) & wanted == wanted { Ok(()) } else { self.verify(wanted) }
    }

    #[cold]
    fn verify(&self, wanted: u32) -> Result<()> {
        if REFUSED.get().is_some() {
            REFUSED.set(Some(true));
            return Err(Error::retry("the shard's bytes are not verified yet: ask again"));
        }
        let missing = wanted & !self.verified.load(Ordering::Acquire);
        for index in (0..COUNT).filter(|index| missing >> index & 1 == 1) {
            let outcome = self.outcomes[index].get_or_init(|| self.part.verify(index).map_err(|error| self.named(error)));
            self.verified.fetch_or(if outcome.is_ok() { 1 << index } else { DAMAGED }, Ordering::Release);
            outcome.clone()?;
        }
        Ok(())
    }

    fn named(&self, error: Error) -> Error {
        if self.name.is_empty() { error } else { error.context(&self.name) }
    }

    /// The error of a damaged one, once it was needed.
    pub(crate) fn damage(&self) -> Option<Error> {
        let is_damaged = self.verified.load(Ordering::Acquire) & DAMAGED != 0;
        let damage = || self.outcomes.iter().find_map(|outcome| outcome.get()?.clone().err());
        is_damaged.then(damage).flatten()
    }

    /// Which have verified.
    pub(crate) fn verified(&self) -> VerifiedSections {
        VerifiedSections { identity: self.part.shard, sections: self.verified.load(Ordering::Acquire) & ALL }
    }

    /// Takes for verified what was so of the same base; nothing of another one.
    pub(crate) fn believe(&self, verified: VerifiedSections) {
        if verified.identity == self.part.shard {
            debug_assert_eq!(verified.sections & !ALL, 0, "damage is not handed on");
            self.verified.fetch_or(verified.sections, Ordering::Release);
        }
    }

    /// Bytes that were read to verify them.
    #[cfg(test)]
    fn verified_bytes(&self) -> usize {
        let is_verified = |index: &usize| self.outcomes[*index].get().is_some();
        (0..COUNT).filter(is_verified).map(|index| self.part.length_of(index)).sum()
    }
}

/// Which sections of a base have verified: for another opening of the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedSections {
    identity: u64,
    sections: u32,
}

/// Does what may not wait until bytes are verified. None where it needed some that are not, or are damaged: what it gave is no answer then.
pub fn at_hand<T>(work: impl FnOnce() -> T) -> Option<T> {
    struct Before(Option<bool>);
    impl Drop for Before {
        fn drop(&mut self) {
            REFUSED.set(self.0);
        }
    }
    let _before = Before(REFUSED.replace(Some(false)));
    let done = work();
    (REFUSED.get() == Some(false)).then_some(done)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use forebay_types::ErrorKind;

    use super::*;
    use crate::model::key::{Key, KeyType};
    use crate::model::schema::Schema;
    use crate::model::value::{Value, ValueType};
    use crate::query::predicate::Query;
    use crate::{Builder, BuiltShard, LayerKind, Shard};

    const RECORDS: u64 = 2000;

    /// The sections that it needs, layers to have beside the base, and what is asked.
    type Ask<'a> = (u32, &'a [LayerKind], &'a dyn Fn(&Shard) -> Result<()>);

    fn values(key: u64) -> Vec<Value> {
        vec![Value::Text(format!("word {key} of many")), Value::Int((key % 7) as i64)]
    }

    fn build() -> BuiltShard {
        let schema = Schema::new("key", KeyType::U64).with("word", ValueType::Text).with("number", ValueType::Int);
        let mut builder = Builder::new(schema).unwrap();
        (0..RECORDS).for_each(|key| builder.push(&Key::U64(key * key), &values(key)).unwrap());
        builder.finish(3.0).unwrap()
    }

    fn open(base: impl Into<Bytes>, built: &BuiltShard, with: &[LayerKind]) -> Result<Shard> {
        let layers = built.layers.iter().filter(|(id, _)| with.contains(&id.kind)).map(|(_, part)| part.clone());
        Shard::open_named("a/base", base.into(), layers)
    }

    /// The base with a flipped bit in the middle of a section; none of one that is empty.
    fn damaged(base: &[u8], index: usize) -> Option<Vec<u8>> {
        let number = |at: usize| u64::from_le_bytes(base[at..at + 8].try_into().unwrap()) as usize;
        let (from, length) = (number(48 + index * 24), number(56 + index * 24));
        let mut base = base.to_vec();
        base[from..from + length].get_mut(length / 2).map(|byte| *byte ^= 4)?;
        Some(base)
    }

    fn get_all(shard: &Shard) -> Result<()> {
        for key in 0..RECORDS {
            assert_eq!(shard.get(&Key::U64(key * key))?, Some(values(key)));
        }
        Ok(())
    }

    #[test]
    fn a_base_is_opened_by_its_head() {
        let built = build();
        let shard = open(built.base.clone(), &built, &[]).unwrap();
        let sections = &shard.base.sections;
        let head: usize = (0..COUNT).filter(|index| HEAD >> index & 1 == 1).map(|index| sections.part.length_of(index)).sum();
        assert_eq!(sections.verified_bytes(), head);
        assert!(head * 10 < built.base.len(), "{head} of {} bytes", built.base.len());
        get_all(&shard).unwrap();
        let walked = sections.verified_bytes();
        assert!(walked > head);
        shard.verify().unwrap();
        let all: usize = (0..COUNT).map(|index| sections.part.length_of(index)).sum();
        assert!(walked < all, "nobody wanted rows or blocks");
        assert_eq!(sections.verified_bytes(), all);
    }

    #[test]
    fn a_flipped_byte_of_a_section_is_found_at_the_first_use_of_that_and_not_before() {
        let built = build();
        assert!(built.layers.iter().any(|(id, _)| id.kind == LayerKind::Blocks && id.slice == 0), "there are blocks to read");
        let blocks = [LayerKind::Blocks];
        let mut seen = 0;
        for index in 0..COUNT {
            let Some(base) = damaged(&built.base, index) else { continue };
            let uses = |wanted: u32| wanted >> index & 1 == 1;
            seen |= 1 << index;
            if uses(HEAD) {
                assert_eq!(open(base, &built, &[]).err().map(|error| error.kind()), Some(ErrorKind::Corrupt));
                continue;
            }
            let query = Query::contains(0, b"7 of");
            let asks: [Ask<'_>; 6] = [
                (KEYS, &[], &|shard| shard.last_key().map(|key| assert_eq!(key, Some(Key::U64((RECORDS - 1).pow(2)))))),
                (KEYS, &[], &|shard| shard.contains(&Key::U64(9)).map(|is_there| assert!(is_there))),
                (PSI, &[], &|shard| shard.count_steps(&query).map(|steps| assert!(steps > 0))),
                (KEYS | WALKS, &[], &get_all),
                (ROWS, &[], &|shard| shard.count(&query).map(|count| assert_eq!(count, RECORDS / 10))),
                (KEYS | DICTIONARY, &blocks, &|shard| shard.get(&Key::U64(0)).map(|record| assert_eq!(record, Some(values(0))))),
            ];
            for (needs, with, ask) in asks {
                let shard = open(base.clone(), &built, with).unwrap();
                assert!(shard.damage().is_none(), "nothing was used yet");
                match (uses(needs), ask(&shard)) {
                    (false, outcome) => outcome.unwrap(),
                    (true, outcome) => {
                        let error = outcome.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Corrupt);
                        assert!(error.message().starts_with("a/base: "), "{error}");
                        assert!(error.message().contains(&format!("section {index}, ")), "{error}");
                        assert!(ask(&shard).is_err(), "and it stays so");
                    }
                }
                assert_eq!(shard.damage().is_some(), uses(needs), "section {index}");
            }
            assert!(open(base, &built, &[]).unwrap().verify().is_err());
        }
        assert_eq!(
            seen & (PSI | ROWS | KEYS | DICTIONARY | HEAD),
            PSI | ROWS | KEYS | DICTIONARY | HEAD,
            "each was damaged once"
        );
    }

    #[test]
    fn what_may_not_wait_is_refused_until_its_sections_have_verified() {
        let built = build();
        let shard = open(built.base.clone(), &built, &[]).unwrap();
        let get = || shard.get(&Key::U64(4));
        assert!(at_hand(get).is_none());
        assert!(shard.damage().is_none() && shard.verified().sections & KEYS != KEYS, "nothing was verified for it");
        assert_eq!(get().unwrap(), Some(values(2)));
        assert_eq!(at_hand(get).unwrap().unwrap(), Some(values(2)));
        let count = || shard.count(&Query::contains(0, b"7 of"));
        assert!(at_hand(count).is_none(), "rows were of no use for a get");
        let bad = open(damaged(&built.base, section::STARTS).unwrap(), &built, &[]).unwrap();
        bad.get(&Key::U64(4)).unwrap_err();
        assert!(at_hand(|| bad.get(&Key::U64(4))).is_none());
    }

    #[test]
    fn what_has_verified_is_believed_of_the_same_base_alone() {
        let built = build();
        let [shard, again] = [(); 2].map(|()| open(built.base.clone(), &built, &[]).unwrap());
        get_all(&shard).unwrap();
        again.believe(shard.verified());
        assert_eq!(at_hand(|| again.get(&Key::U64(4))).unwrap().unwrap(), Some(values(2)));
        let schema = Schema::new("key", KeyType::U64).with("word", ValueType::Text);
        let mut builder = Builder::new(schema).unwrap();
        builder.push(&Key::U64(4), &[Value::Text("another".into())]).unwrap();
        let other = Shard::open(builder.finish(0.0).unwrap().base, []).unwrap();
        other.believe(shard.verified());
        assert!(at_hand(|| other.get(&Key::U64(4))).is_none());
    }
}
