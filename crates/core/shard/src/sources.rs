//! What a dataset that follows objects does when these change: which are read, and what becomes of the keys that came from those that
//! are gone.
//!
//! Sources have an order, that in which they were read: of several that have a record of the same key the last one counts.

use std::collections::{BTreeMap, HashMap};

use crate::model::key::Key;

/// An object at a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceVersion {
    /// Its path.
    pub path: String,
    /// Its version; empty for one that was perhaps not read to its end, which no object has.
    pub tag: String,
}

/// What has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceChanges<'a> {
    /// Objects that are no source yet, in the order of the listing.
    pub added: Vec<&'a str>,
    /// Objects that were read at another version, or not to their end, in the order of the listing.
    pub replaced: Vec<&'a str>,
    /// Sources that are not there any more, each once, in the order of the sources.
    pub gone: Vec<&'a str>,
}

/// What there is, against what was read. A path stands once in a listing; among the sources several times where reading it was cut short.
pub fn plan_sources<'a>(listing: &'a [SourceVersion], sources: &'a [SourceVersion]) -> SourceChanges<'a> {
    let mut read: HashMap<&str, Vec<&str>> = HashMap::new();
    for source in sources {
        read.entry(&source.path).or_default().push(&source.tag);
    }
    let mut changes = SourceChanges::default();
    for object in listing {
        match read.remove(object.path.as_str()) {
            None => changes.added.push(&object.path),
            Some(tags) if !object.tag.is_empty() && tags == [object.tag.as_str()] => {}
            Some(_) => changes.replaced.push(&object.path),
        }
    }
    // What the listing has was taken out.
    let gone = sources.iter().map(|source| source.path.as_str()).filter(|path| read.remove(path).is_some());
    changes.gone = gone.collect();
    changes
}

/// Whether a path is one of those that a pattern stands for: `*` is any text without `/`, `?` one character other than `/`.
pub fn is_like(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if is_name_like(pattern, name) => {}
            _ => return false,
        }
    }
}

fn is_name_like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last `*`, and how much of the name it and all before it have.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, read));
                at += 1;
            }
            (Some(wanted), _) if *wanted == '?' || *wanted == name[read] => (at, read) = (at + 1, read + 1),
            (_, Some((of, taken))) => {
                star = Some((of, taken + 1));
                (at, read) = (of + 1, taken + 1);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

/// Keys of sources that have gone, until it is known whether another source has them.
#[derive(Clone, Debug, Default)]
pub struct LeftKeys {
    /// With the place of the last source that goes and has the key.
    keys: BTreeMap<Key, usize>,
}

impl LeftKeys {
    /// The source at a place goes, which has these keys.
    pub fn leave(&mut self, place: usize, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            let last = self.keys.entry(key).or_insert(place);
            *last = place.max(*last);
        }
    }

    /// These keys are in a source that is read now and comes after all others: they stay.
    pub fn come(&mut self, keys: &[Key]) {
        keys.iter().for_each(|key| {
            self.keys.remove(key);
        });
    }

    /// The source at a place stays, which has these keys; the last one is told of first, and all that go before it. Gives those of which its
    /// record counts from now on, and did not before.
    pub fn stay(&mut self, place: usize, keys: &[Key]) -> Vec<Key> {
        let counts_now = |key: &&Key| self.keys.remove(*key).is_some_and(|last| last > place);
        keys.iter().filter(counts_now).cloned().collect()
    }

    /// Whether nothing has to become of any key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys that no source has any more, in order.
    pub fn into_deleted(self) -> Vec<Key> {
        self.keys.into_keys().collect()
    }
}
