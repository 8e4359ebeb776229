//! Which shards a dataset is to have that it is given others: by hash so many, and of ranges of keys those that are cut or become one.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use forebay_navigation::{Piece, Share, merged, pieces, shards_for, split};
use forebay_shard::{Key, KeyMap, KeySample};
use forebay_shard_store::{Dataset, Store};
use forebay_types::{ByteSize, Error, Result, ResultExt};

use super::files::bring;
use crate::Shards;

/// Which shards a dataset is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReshardTo {
    /// So many.
    Shards(u32),
    /// As many as have about so many bytes of input each.
    BytesEach(u64),
    /// One more: of ranges of keys this one, numbered from 0, is cut in the middle of its bytes.
    Split(u32),
    /// One less: of ranges of keys this one and the next become one.
    Merge(u32),
}

impl ReshardTo {
    /// Whether it is about one shard, which is another one once it was done.
    pub(super) fn is_of_one(self) -> bool {
        matches!(self, Self::Split(_) | Self::Merge(_))
    }

    /// Whether what a dataset is about to have is this, where it is about one shard: a split point more in that one, or one less behind it.
    pub(super) fn is_announced(self, dataset: &Dataset) -> bool {
        let without = |splits: &[Key], place: u32| -> Vec<Key> {
            let others = splits.iter().enumerate().filter(|(at, _)| *at != place as usize);
            others.map(|(_, split)| split.clone()).collect()
        };
        let next = dataset.next.as_ref().and_then(|next| next.splits.as_ref());
        match (self, &dataset.splits, next) {
            (Self::Split(shard), Some(has), Some(next)) => next.len() == has.len() + 1 && without(next, shard) == **has,
            (Self::Merge(shard), Some(has), Some(next)) => next.len() + 1 == has.len() && without(has, shard) == **next,
            _ => false,
        }
    }

    /// About the bytes that its shards take of the folder at a time while it is given others: those that one new shard is cut out of, and that one.
    pub fn scratch_bytes(self, shards: &Shards) -> Result<u64> {
        let bytes_of = |share: &Share| shards.dataset.shards[share.shard as usize].bytes();
        let sources = Becoming::of(self, &shards.dataset)?.sources(&shards.dataset)?;
        let most = sources.iter().map(|from| from.iter().map(bytes_of).fold(0u64, u64::saturating_add)).max();
        Ok(most.unwrap_or(0).saturating_mul(2))
    }
}

/// A number of shards, or with a unit the size that each is to have about, or of ranges which one is cut, or becomes one with the next: `16`,
/// `128MiB`, `split:3`, `merge:3`.
impl FromStr for ReshardTo {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let number = |text: &str| {
            text.parse::<u32>().map_err(|_| Error::invalid(format!("{text:?} is no number of a shard: write split:3 or merge:3")))
        };
        match text.split_once(':') {
            Some(("split", shard)) => return number(shard).map(Self::Split),
            Some(("merge", shard)) => return number(shard).map(Self::Merge),
            _ => {}
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(|ByteSize(bytes)| Self::BytesEach(bytes));
        }
        let none = |_| Error::invalid(format!("{text:?} is no number of shards, nor the size of each: write 16 or 128MiB"));
        text.parse().map(Self::Shards).map_err(none)
    }
}

/// What becomes of a dataset's shards.
pub(super) enum Becoming {
    /// So many by hash.
    Hash(usize),
    /// Of ranges what stands side by side, in order; where a range is cut its keys say.
    Ranges(Vec<Piece>),
}

impl Becoming {
    pub(super) fn of(to: ReshardTo, dataset: &Dataset) -> Result<Self> {
        let bytes: Vec<u64> = dataset.shards.iter().map(|shard| shard.input_bytes).collect();
        let count = || match to {
            ReshardTo::BytesEach(each) => shards_for(bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)), each),
            ReshardTo::Shards(count) => Ok(count),
            ReshardTo::Split(_) | ReshardTo::Merge(_) => Err(Error::invalid(
                "the dataset's keys are spread by a hash: a shard of it is neither split nor merged by itself, say how many there are to be",
            )),
        };
        let becoming = match (dataset.splits.is_some(), to) {
            (true, ReshardTo::Split(shard)) => Self::Ranges(split(&bytes, shard)?),
            (true, ReshardTo::Merge(shard)) => Self::Ranges(merged(&bytes, shard)?),
            (is_ranges, _) => {
                let count = count()?;
                Dataset::check_shape(count as usize, &dataset.replicas)?;
                if is_ranges { Self::Ranges(pieces(&bytes, count)?) } else { Self::Hash(count as usize) }
            }
        };
        debug_assert!(becoming.shards() > 0, "a dataset has shards");
        Ok(becoming)
    }

    /// Whether a dataset has these already.
    pub(super) fn is_as(&self, dataset: &Dataset) -> bool {
        match self {
            Self::Hash(count) => *count == dataset.shards.len(),
            Self::Ranges(pieces) => pieces.iter().all(|piece| piece.parts == 1 && piece.shards.len() == 1),
        }
    }

    fn shards(&self) -> usize {
        match self {
            Self::Hash(count) => *count,
            Self::Ranges(pieces) => pieces.iter().map(|piece| piece.parts as usize).sum(),
        }
    }

    /// The shards that each new one is made of.
    pub(super) fn sources(&self, dataset: &Dataset) -> Result<Vec<Vec<Share>>> {
        match self {
            Self::Hash(count) => dataset.map().recut(&KeyMap::Hash(*count)),
            Self::Ranges(pieces) => {
                let from = |piece: &Piece| piece.shards.clone().map(|shard| Share { shard, part: 1.0 }).collect();
                Ok(pieces.iter().map(from).collect())
            }
        }
    }

    /// Which of them has which keys. Shards that are cut are brought, one at a time, into the folder `scratch`, and looked through for where.
    pub(super) async fn map(&self, of: &Shards, scratch: &Path) -> Result<KeyMap> {
        let pieces = match self {
            Self::Hash(count) => return Ok(KeyMap::Hash(*count)),
            Self::Ranges(pieces) => pieces,
        };
        let before = of.dataset.splits.clone().unwrap_or_default();
        let mut splits = Vec::new();
        for piece in pieces {
            if piece.shards.start > 0 {
                splits.push(before[piece.shards.start as usize - 1].clone());
            }
            if piece.parts > 1 {
                splits.extend(points(of, piece, scratch).await?.iter().cloned());
            }
        }
        let map = KeyMap::Ranges(splits.into());
        debug_assert!(map.shards() <= self.shards(), "no more are made than are wanted");
        Ok(map)
    }
}

/// Where a shard is cut: fewer points than are wanted where it has few keys.
async fn points(of: &Shards, piece: &Piece, scratch: &Path) -> Result<Arc<[Key]>> {
    let (shard, parts, folder) = (piece.shards.start as usize, piece.parts as usize, scratch.join("sampled"));
    // Of a try before that ended early.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context(|| folder.display().to_string())?;
    }
    bring(&of.client, &of.path, &of.dataset.shards[shard], &folder).await?;
    let path = folder.clone();
    let looking = forebay_runtime::spawn_blocking(move || -> Result<_> {
        let mut sample = KeySample::new(parts);
        Store::open(&path)?.sample(&mut sample)?;
        Ok(sample.splits(parts))
    });
    let points = looking.await.map_err(|error| Error::internal(format!("looking through a shard ended early: {error}")))??;
    std::fs::remove_dir_all(&folder).context(|| folder.display().to_string())?;
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_shards_there_are_to_be_is_a_number_or_the_size_of_each() {
        assert_eq!(" 16".parse::<ReshardTo>().unwrap(), ReshardTo::Shards(16));
        assert_eq!("128MiB".parse::<ReshardTo>().unwrap(), ReshardTo::BytesEach(128 << 20));
        assert_eq!("split:3".parse::<ReshardTo>().unwrap(), ReshardTo::Split(3));
        assert_eq!("merge:0".parse::<ReshardTo>().unwrap(), ReshardTo::Merge(0));
        for wrong in ["", "-1", "4294967296", "many", "16 shards", "split:", "split:-1", "merge:x", "cut:1"] {
            assert!(wrong.parse::<ReshardTo>().is_err(), "{wrong}");
        }
    }
}
