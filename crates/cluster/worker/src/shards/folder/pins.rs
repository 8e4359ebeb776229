//! Shards that are pinned: they go to make room for nothing, also after a restart, before anybody asks for them.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use forebay_types::{Error, Key, MountId, Result, ResultExt};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// What the file beside a shard's folder ends with that says who has pinned it.
const ENDING: &str = "pin";

/// By what a shard is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::shards) struct Pin {
    pub(in crate::shards) mount: MountId,
    /// The dataset, and the manifest that says so.
    pub(in crate::shards) folder: Key,
    pub(in crate::shards) manifest: u64,
    /// The shard's number in it.
    pub(in crate::shards) shard: u32,
}

impl Pin {
    /// Whether both are of the same shard, in whatever files.
    fn is_of(&self, other: &Self) -> bool {
        (self.mount, &self.folder, self.shard) == (other.mount, &other.folder, other.shard)
    }
}

/// The pins of shards that are on disk.
pub(in crate::shards) struct Pins {
    folder: PathBuf,
    all: Mutex<HashMap<u128, Pin>>,
}

impl Pins {
    /// Finds those that a process before this one left, of shards that are still there.
    pub(super) fn open(folder: &Path, is_there: impl Fn(u128) -> bool) -> Result<Self> {
        let pins = Self { folder: folder.to_path_buf(), all: Mutex::default() };
        if !folder.exists() {
            return Ok(pins);
        }
        for entry in fs::read_dir(folder).context(|| folder.display())? {
            let path = entry.context(|| folder.display())?.path();
            if path.extension().is_none_or(|ending| ending != ENDING) {
                continue;
            }
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let id = u128::from_str_radix(name, 16).ok().filter(|id| name.len() == 32 && is_there(*id));
            let pin = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Pin>(&bytes).ok());
            match (id, pin) {
                (Some(id), Some(pin)) => _ = pins.all.lock().insert(id, pin),
                // Half of one was written, or its shard has gone: a shard that is pinned is pinned again when it is asked for.
                _ => remove(&path)?,
            }
        }
        Ok(pins)
    }

    /// Whether a shard is pinned.
    pub(in crate::shards) fn has(&self, id: u128) -> bool {
        self.all.lock().contains_key(&id)
    }

    /// All of them.
    pub(in crate::shards) fn all(&self) -> Vec<(u128, Pin)> {
        self.all.lock().iter().map(|(id, pin)| (*id, pin.clone())).collect()
    }

    /// A shard is pinned, or not any more; the same shard in other files, as before a merge, is not.
    pub(in crate::shards) fn set(&self, id: u128, of: &Pin, is_pinned: bool) -> Result<()> {
        let mut all = self.all.lock();
        let others: Vec<(u128, u64)> =
            all.iter().filter(|(other, pin)| **other != id && pin.is_of(of)).map(|(other, pin)| (*other, pin.manifest)).collect();
        if others.iter().any(|(_, manifest)| *manifest > of.manifest) {
            // Who asks holds to an older dataset: what it says of pins is over.
            return Ok(());
        }
        let mut gone: Vec<u128> = others.into_iter().map(|(other, _)| other).collect();
        // What holds from now on first: a disk that is full keeps no shard from being pinned, or let go.
        gone.iter().for_each(|other| _ = all.remove(other));
        let before = if is_pinned { all.insert(id, of.clone()) } else { all.remove(&id) };
        debug_assert_eq!(all.contains_key(&id), is_pinned, "what is kept is what was said");
        debug_assert!(all.values().filter(|pin| pin.is_of(of)).count() <= 1, "a shard is pinned in one place");
        gone.extend(before.as_ref().filter(|_| !is_pinned).map(|_| id));
        let mut done = Ok(());
        for other in gone {
            done = done.and(remove(&self.path(other)));
        }
        if is_pinned && before.as_ref() != Some(of) {
            let path = self.path(id);
            let bytes = serde_json::to_vec(of).map_err(|error| Error::internal(error.to_string()))?;
            fs::write(&path, bytes).context(|| path.display())?;
        }
        done
    }

    /// A shard is not pinned any more, unless it was pinned anew.
    pub(in crate::shards) fn take_away(&self, id: u128, pin: &Pin) -> Result<()> {
        let mut all = self.all.lock();
        if all.get(&id) == Some(pin) && all.remove(&id).is_some() { remove(&self.path(id)) } else { Ok(()) }
    }

    /// A shard is gone, and its pin with it.
    pub(in crate::shards) fn forget(&self, id: u128) -> Result<()> {
        match self.all.lock().remove(&id) {
            Some(_) => remove(&self.path(id)),
            None => Ok(()),
        }
    }

    fn path(&self, id: u128) -> PathBuf {
        self.folder.join(format!("{id:032x}.{ENDING}"))
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::from(error).context(path.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(folder: &str, shard: u32) -> Pin {
        Pin { mount: MountId(7), folder: Key::new(folder).unwrap(), manifest: 3, shard }
    }

    #[test]
    fn pins_are_found_again_as_long_as_their_shards_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path(), |_| true).unwrap();
        for id in 1..=3u128 {
            pins.set(id, &pin("a", id as u32), true).unwrap();
        }
        pins.set(2, &pin("a", 2), false).unwrap();
        fs::write(folder.path().join(format!("{:032x}.pin", 9)), "half").unwrap();
        let again = Pins::open(folder.path(), |id| id != 3).unwrap();
        assert_eq!(again.all(), [(1, pin("a", 1))]);
        assert!(again.has(1) && !again.has(2) && !again.has(3) && !again.has(9));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "files of no use are removed");
        again.forget(1).unwrap();
        again.forget(1).unwrap();
        assert!(Pins::open(folder.path(), |_| true).unwrap().all().is_empty());
    }

    #[test]
    fn of_a_shard_that_was_merged_the_files_before_are_not_pinned() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path(), |_| true).unwrap();
        pins.set(1, &pin("a", 0), true).unwrap();
        pins.set(2, &pin("a", 1), true).unwrap();
        pins.set(3, &pin("b", 0), true).unwrap();
        pins.set(4, &Pin { manifest: 4, ..pin("a", 0) }, true).unwrap();
        assert!(!pins.has(1) && pins.has(2) && pins.has(3) && pins.has(4));
        pins.set(1, &pin("a", 0), true).unwrap();
        assert!(!pins.has(1) && pins.has(4), "who holds to the manifest before says nothing of the one that is");
        pins.take_away(4, &pin("a", 0)).unwrap();
        assert!(pins.has(4), "it was pinned anew");
        pins.set(5, &Pin { manifest: 5, ..pin("a", 0) }, false).unwrap();
        assert!(!pins.has(4) && !pins.has(5));
    }
}
