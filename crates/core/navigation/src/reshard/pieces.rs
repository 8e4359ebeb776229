//! Which shards of ranges of keys are cut, and which become one.

use std::ops::Range;

use forebay_types::{Error, Result};

use super::cut::SHARDS_MAX;

/// Shards that stand side by side and become one, or a shard that becomes several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The shards.
    pub shards: Range<u32>,
    /// What they become: one of several, or some of one.
    pub parts: u32,
}

impl Piece {
    fn one(shard: u32) -> Self {
        Self { shards: shard..shard + 1, parts: 1 }
    }
}

/// Has shards with so many bytes of input become `count`: the largest are cut where there are to be more, and where there are to be fewer those
/// neighbours become one that have the least together. All others keep their ranges.
/// `Invalid`: counts that no dataset has.
pub fn pieces(bytes: &[u64], count: u32) -> Result<Vec<Piece>> {
    let mut pieces = each(bytes)?;
    if !(1..=SHARDS_MAX).contains(&count) {
        return Err(Error::invalid(format!("a dataset has 1 to {SHARDS_MAX} shards, not {count}")));
    }
    for _ in pieces.len()..count as usize {
        let each = |place: usize| bytes[place] as f64 / f64::from(pieces[place].parts);
        // Of several that are as large the first one.
        if let Some(largest) = (0..pieces.len()).rev().max_by(|one, other| each(*one).total_cmp(&each(*other))) {
            pieces[largest].parts += 1;
        }
    }
    while pieces.len() > count as usize {
        let of = |piece: &Piece| piece.shards.clone().fold(0u64, |sum, shard| sum.saturating_add(bytes[shard as usize]));
        let both = |place: &usize| of(&pieces[*place]).saturating_add(of(&pieces[place + 1]));
        let Some(first) = (0..pieces.len() - 1).min_by_key(both) else { break };
        let next = pieces.remove(first + 1);
        pieces[first].shards.end = next.shards.end;
    }
    assert!(pieces.iter().map(|piece| piece.parts).sum::<u32>() == count, "there are as many as are wanted");
    Ok(pieces)
}

/// Has one of so many shards become two.
/// `Invalid` where there is none of that number, or no room for one more.
pub fn split(bytes: &[u64], shard: u32) -> Result<Vec<Piece>> {
    let mut pieces = each(bytes)?;
    let count = pieces.len();
    if count >= SHARDS_MAX as usize {
        return Err(Error::invalid(format!("a dataset has at most {SHARDS_MAX} shards")));
    }
    let Some(piece) = pieces.get_mut(shard as usize) else { return Err(no_shard(shard, count)) };
    piece.parts = 2;
    debug_assert_eq!(pieces.len(), count, "each of the others stays as it is");
    Ok(pieces)
}

/// Has one of so many shards and the next one become one.
/// `Invalid` where there is none of that number, or none behind it.
pub fn merged(bytes: &[u64], shard: u32) -> Result<Vec<Piece>> {
    let mut pieces = each(bytes)?;
    let count = pieces.len();
    let next = (shard as usize).saturating_add(1);
    if next >= count {
        return Err(no_shard(next.try_into().unwrap_or(u32::MAX), count));
    }
    let next = pieces.remove(next);
    let both = &mut pieces[shard as usize];
    debug_assert_eq!(both.shards.end, next.shards.start, "they stand side by side");
    both.shards.end = next.shards.end;
    Ok(pieces)
}

fn each(bytes: &[u64]) -> Result<Vec<Piece>> {
    match u32::try_from(bytes.len()) {
        Ok(count) if (1..=SHARDS_MAX).contains(&count) => Ok((0..count).map(Piece::one).collect()),
        _ => Err(Error::invalid(format!("a dataset has 1 to {SHARDS_MAX} shards, not {}", bytes.len()))),
    }
}

fn no_shard(shard: u32, count: usize) -> Error {
    Error::invalid(format!("there is no shard {shard}: the dataset has {count}, numbered from 0"))
}
