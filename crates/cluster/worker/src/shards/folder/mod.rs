//! The files of shards on disk, and room for them.
//!
//! Owns: which shards are on disk whole, the bytes that they take or have reserved within the folder's bound and what the disk tier lends,
//! and which of them are pinned.
//!
//! Never does: read a shard, or make room by one that is on its way, held or pinned.
//!
//! Start with [`Kept::open`]; then [`Kept::make_room`], [`Kept::begin`] and [`Kept::place`], the way of a shard to here.

mod pins;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use forebay_types::{Error, Result, ResultExt, format_bytes};
use parking_lot::Mutex;

pub(super) use pins::Pin;
use pins::Pins;

/// What an unfinished shard's folder ends with.
const UNFINISHED: &str = "new";

/// Shards on disk, each in a folder that is named by what it is made of.
pub(super) struct Kept {
    folder: PathBuf,
    /// Bytes that shards may take here, without what is lent.
    pub(super) bytes_max: u64,
    /// What the disk tier lends beside that.
    lent_bytes: AtomicU64,
    all: Mutex<HashMap<u128, OnDisk>>,
    /// Those that somebody brings or opens.
    held: Mutex<HashSet<u128>>,
    /// Those that stay until an operator says otherwise.
    pub(super) pins: Pins,
}

/// A shard that does not go as long as this is there.
pub(super) struct Held<'a> {
    kept: &'a Kept,
    id: u128,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let was_held = self.kept.held.lock().remove(&self.id);
        debug_assert!(was_held, "a shard is let go once");
    }
}

struct OnDisk {
    /// What it takes, or will take.
    bytes: u64,
    used: Instant,
    /// All of it is there.
    is_whole: bool,
}

impl Kept {
    /// Finds what a process before this one left, and removes what it did not finish.
    pub(super) fn open(folder: &Path, bytes_max: u64) -> Result<Self> {
        let mut all = HashMap::new();
        if folder.exists() {
            for entry in fs::read_dir(folder).context(|| folder.display())? {
                let path = entry.context(|| folder.display())?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                match u128::from_str_radix(name, 16) {
                    Ok(id) if name.len() == 32 => {
                        all.insert(id, OnDisk { bytes: bytes_of(&path)?, used: forebay_runtime::now(), is_whole: true });
                    }
                    _ if path.extension().is_some_and(|ending| ending == UNFINISHED) => remove(&path)?,
                    _ => {}
                }
            }
        }
        let lent_bytes = AtomicU64::new(0);
        let pins = Pins::open(folder, |id| all.contains_key(&id))?;
        Ok(Self { folder: folder.to_path_buf(), bytes_max, lent_bytes, all: Mutex::new(all), held: Mutex::default(), pins })
    }

    /// Has a shard stay, once it is here: one that was placed and is not served yet would otherwise be the first to go. Only one at
    /// a time brings or opens a shard.
    pub(super) fn hold(&self, id: u128) -> Held<'_> {
        let is_first = self.held.lock().insert(id);
        assert!(is_first, "a shard is brought once");
        Held { kept: self, id }
    }

    /// Whether a shard is on disk.
    pub(super) fn has(&self, id: u128) -> bool {
        self.all.lock().get(&id).is_some_and(|shard| shard.is_whole)
    }

    /// Where a shard is, or comes to be.
    pub(super) fn path(&self, id: u128) -> PathBuf {
        self.folder.join(format!("{id:032x}"))
    }

    fn unfinished(&self, id: u128) -> PathBuf {
        self.folder.join(format!("{id:032x}.{UNFINISHED}"))
    }

    /// An empty folder for a shard that is on its way.
    pub(super) fn begin(&self, id: u128) -> Result<PathBuf> {
        let path = self.unfinished(id);
        remove(&path)?;
        fs::create_dir_all(&path).context(|| path.display())?;
        Ok(path)
    }

    /// A shard that was made in the folder of another name that [`Self::begin`] gave, instead of being brought, takes its room over.
    pub(super) fn place_made(&self, id: u128, made: u128) -> Result<()> {
        self.place(id, &self.unfinished(made))
    }

    /// A shard has come to the folder that [`Self::begin`] gave.
    pub(super) fn place(&self, id: u128, unfinished: &Path) -> Result<()> {
        let path = self.path(id);
        remove(&path)?;
        fs::rename(unfinished, &path).context(|| path.display())?;
        let placed = OnDisk { bytes: bytes_of(&path)?, used: forebay_runtime::now(), is_whole: true };
        self.all.lock().insert(id, placed);
        Ok(())
    }

    /// A shard that is on its way does not come.
    pub(super) fn give_up(&self, id: u128) -> Result<()> {
        self.all.lock().remove(&id);
        remove(&self.unfinished(id))
    }

    /// Bytes that these shards may take together of this folder's own: what others leave.
    pub(super) fn room_of(&self, these: &[u128]) -> u64 {
        let all = self.all.lock();
        let others = all.iter().filter(|(id, _)| !these.contains(id)).map(|(_, shard)| shard.bytes);
        self.bytes_max.saturating_sub(others.sum())
    }

    /// Files may take so many bytes of the disk tier's room beside their own.
    pub(super) fn lend(&self, bytes: u64) {
        self.lent_bytes.store(bytes, Relaxed);
    }

    /// Keeps of what is lent what files take or have reserved, `wanted` at least and `most` at most; gives it.
    pub(super) fn settle(&self, wanted: u64, most: u64) -> u64 {
        let all = self.all.lock();
        let there: u64 = all.values().map(|shard| shard.bytes).sum();
        let lent = there.saturating_sub(self.bytes_max).max(wanted).min(most);
        self.lent_bytes.store(lent, Relaxed);
        lent
    }

    fn most(&self) -> u64 {
        self.bytes_max.saturating_add(self.lent_bytes.load(Relaxed))
    }

    /// A shard is asked something.
    pub(super) fn touch(&self, id: u128) {
        if let Some(shard) = self.all.lock().get_mut(&id) {
            shard.used = forebay_runtime::now();
        }
    }

    /// A shard has another size now; gives it.
    pub(super) fn measure(&self, id: u128) -> Result<u64> {
        let bytes = bytes_of(&self.path(id))?;
        if let Some(shard) = self.all.lock().get_mut(&id) {
            shard.bytes = bytes;
        }
        Ok(bytes)
    }

    /// Whether a shard of so many bytes can be brought here at all, whatever goes for it.
    pub(super) fn may_fit(&self, bytes: u64) -> bool {
        bytes <= self.bytes_max
    }

    /// Reserves room for a shard to have `bytes` in all, and gives the shards that have to go for it: those that nobody asked for
    /// longest, none that is on its way, held, pinned or `stays`. `Invalid` when it would not fit alone, which it may elsewhere; `Retry` when
    /// too little may go.
    pub(super) fn make_room(&self, id: u128, bytes: u64, stays: impl Fn(u128) -> bool) -> Result<Vec<u128>> {
        if !self.may_fit(bytes) {
            return Err(Error::invalid(format!(
                "the shard takes {}, and this worker keeps {} of shards: give it more with `shard-bytes`, or the dataset more and \
                 smaller shards with `forebay shard reshard`. Until then it answers gets and equalities of it, where the shard has a \
                 cold file, and nothing else",
                format_bytes(bytes),
                format_bytes(self.bytes_max)
            ))
            .here_alone());
        }
        let mut all = self.all.lock();
        // From here on with what is lent: layers may have taken it.
        let most = self.most();
        let mut there: u64 = all.iter().filter(|(other, _)| **other != id).map(|(_, shard)| shard.bytes).sum();
        let held = self.held.lock();
        let may_go = |(other, shard): &(&u128, &OnDisk)| {
            **other != id && shard.is_whole && !held.contains(*other) && !self.pins.has(**other) && !stays(**other)
        };
        let mut oldest: Vec<_> = all.iter().filter(may_go).map(|(other, shard)| (shard.used, *other)).collect();
        oldest.sort();
        let mut gone = Vec::new();
        for (_, id) in oldest {
            if there + bytes <= most {
                break;
            }
            there -= all.get(&id).map_or(0, |shard| shard.bytes);
            gone.push(id);
        }
        if there + bytes > most {
            return Err(Error::retry(format!(
                "no room for a shard of {}: the shards here take {} of {} and are busy or pinned",
                format_bytes(bytes),
                format_bytes(there),
                format_bytes(most)
            )));
        }
        gone.iter().for_each(|id| {
            all.remove(id);
        });
        let shard = all.entry(id).or_insert(OnDisk { bytes: 0, used: forebay_runtime::now(), is_whole: false });
        shard.bytes = bytes;
        assert!(there + bytes <= most, "what is kept stays within its bound");
        Ok(gone)
    }

    /// Reserves room for a shard that is here to have `bytes` in all; nothing goes for it. `Retry` when there is none, or when the
    /// shard itself has gone.
    pub(super) fn grow(&self, id: u128, bytes: u64) -> Result<()> {
        let mut all = self.all.lock();
        let others: u64 = all.iter().filter(|(other, _)| **other != id).map(|(_, shard)| shard.bytes).sum();
        let shard = all.get_mut(&id).filter(|shard| shard.is_whole).ok_or_else(|| Error::retry("the shard has gone"))?;
        // What it has it may keep, also where the bound was lowered since.
        if bytes > shard.bytes && others.saturating_add(bytes) > self.most() {
            let (wanted, most) = (format_bytes(bytes), format_bytes(self.most()));
            return Err(Error::retry(format!("no room for {wanted} beside the other shards within {most}")));
        }
        shard.bytes = shard.bytes.max(bytes);
        Ok(())
    }

    /// Gives a shard up: questions that are being answered from it go on.
    pub(super) fn forget(&self, id: u128) -> Result<()> {
        remove(&self.put_aside(id)?)
    }

    /// The same at once, for who must not be waited for: its files are in the folder that is given, until somebody removes it or at the next start.
    pub(super) fn put_aside(&self, id: u128) -> Result<PathBuf> {
        self.all.lock().remove(&id);
        self.pins.forget(id)?;
        let (path, aside) = (self.path(id), self.unfinished(forebay_runtime::random()));
        match fs::rename(&path, &aside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::from(error).context(path.display())),
            _ => Ok(aside),
        }
    }
}

fn bytes_of(folder: &Path) -> Result<u64> {
    let entries = fs::read_dir(folder).context(|| folder.display())?;
    entries.map(|entry| entry.and_then(|entry| entry.metadata()).context(|| folder.display()).map(|file| file.len())).sum()
}

pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::from(error).context(path.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::ErrorKind;

    fn put(kept: &Kept, id: u128, bytes: usize) {
        let path = kept.begin(id).unwrap();
        fs::write(path.join("base"), vec![0; bytes]).unwrap();
        kept.place(id, &path).unwrap();
    }

    #[test]
    fn room_is_made_by_those_that_were_not_asked_for_longest() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        (1..=3).for_each(|id| put(&kept, id, 30));
        kept.touch(1);
        assert_eq!(kept.make_room(4, 10, |_| false).unwrap(), []);
        assert_eq!(kept.make_room(4, 40, |_| false).unwrap(), [2], "in all, with what was reserved before");
        assert!(!kept.has(2) && kept.has(1) && !kept.has(4));
        let too_large = kept.make_room(5, 101, |_| false).unwrap_err();
        assert!(too_large.kind() == ErrorKind::Invalid && too_large.is_here_alone(), "another worker may have room");
        assert_eq!(kept.make_room(5, 50, |id| id == 1).unwrap_err().kind(), ErrorKind::Retry, "4 is on its way");
        assert!(kept.has(3), "nothing goes for what would not fit");
        assert_eq!(kept.grow(4, 50).unwrap_err().kind(), ErrorKind::Retry, "it is not here yet");
        assert_eq!(kept.grow(9, 1).unwrap_err().kind(), ErrorKind::Retry, "it was never here");
        assert_eq!(kept.make_room(9, 0, |_| true).unwrap(), [], "and has left nothing reserved");
        kept.forget(4).unwrap();
        assert_eq!(kept.make_room(5, 40, |_| false).unwrap(), []);
    }

    #[test]
    fn what_is_lent_is_room_until_nobody_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        put(&kept, 1, 90);
        assert_eq!(kept.grow(1, 130).unwrap_err().kind(), ErrorKind::Retry);
        kept.lend(40);
        kept.grow(1, 130).unwrap();
        assert_eq!(kept.room_of(&[1]), 100, "its own");
        assert_eq!(kept.settle(0, 40), 30, "as much as is reserved");
        assert_eq!(kept.grow(1, 140).unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!(kept.measure(1).unwrap(), 90);
        assert_eq!((kept.settle(20, 30), kept.settle(0, 20)), (20, 0));
        assert_eq!(
            kept.make_room(2, 101, |_| true).unwrap_err().kind(),
            ErrorKind::Invalid,
            "none is brought into what is lent alone"
        );
    }

    #[test]
    fn what_is_pinned_does_not_go_over_a_restart_too() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        (1..=2).for_each(|id| put(&kept, id, 40));
        let pin = Pin { mount: forebay_types::MountId(1), folder: forebay_types::Key::new("a").unwrap(), manifest: 1, shard: 0 };
        kept.pins.set(1, &pin, true).unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        assert_eq!(kept.make_room(3, 60, |_| false).unwrap(), [2]);
        let none = kept.make_room(3, 61, |_| false).unwrap_err();
        assert!(none.kind() == ErrorKind::Retry && none.message().contains("pinned"), "{none}");
        kept.pins.forget(1).unwrap();
        assert_eq!(kept.make_room(3, 61, |_| false).unwrap(), [1]);
        kept.forget(1).unwrap();
    }

    #[test]
    fn what_was_placed_and_is_not_served_yet_does_not_go() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        let opening = kept.hold(1);
        put(&kept, 1, 60);
        assert_eq!(kept.make_room(2, 60, |_| false).unwrap_err().kind(), ErrorKind::Retry);
        assert!(kept.has(1) && kept.path(1).exists());
        drop(opening);
        assert_eq!(kept.make_room(2, 60, |_| false).unwrap(), [1]);
    }

    #[test]
    fn what_was_finished_is_found_again_and_what_was_not_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        put(&kept, 7, 5);
        let half = kept.begin(8).unwrap();
        let kept = Kept::open(folder.path(), 100).unwrap();
        assert!(kept.has(7) && !kept.has(8) && !half.exists());
        let aside = kept.put_aside(7).unwrap();
        assert!(!kept.has(7) && !kept.path(7).exists() && aside.join("base").exists(), "its files go later");
        put(&kept, 7, 6);
        assert!(kept.has(7) && aside.exists(), "one that comes again is another one");
        let kept = Kept::open(folder.path(), 100).unwrap();
        assert!(kept.has(7) && !aside.exists());
        kept.forget(7).unwrap();
        assert!(!kept.has(7) && !kept.path(7).exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
