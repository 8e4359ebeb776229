//! What the values of a shard's attributes lie between, as a manifest says it.

use forebay_shard::Bounds;
use forebay_types::{Error, Result, hex};
use serde::{Deserialize, Serialize};

use crate::literal::parse_hex;

/// Bytes of what is said of a shard at most: a manifest of many shards is read whole, and has to fit.
const BYTES_MAX: usize = 768;
/// Those around the digits of an attribute's ends.
const AROUND_BYTES: usize = 23;

/// The ends of an attribute's values in the order of their bytes (docs/specs/shard.md), in hex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetBounds {
    /// Not above the least value.
    pub least: String,
    /// Not below the greatest one; none where that is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<String>,
}

impl DatasetBounds {
    fn of(bounds: &Bounds) -> Self {
        Self { least: hex(&bounds.least), most: bounds.most.as_deref().map(hex) }
    }

    fn bytes(&self) -> usize {
        AROUND_BYTES + self.least.len() + self.most.as_ref().map_or(0, String::len)
    }

    fn read(&self) -> Option<Bounds> {
        let end = |digits: &String| parse_hex(digits).ok().filter(|bytes| bytes.len() <= Bounds::BYTES_MAX);
        let (least, most) = (end(&self.least)?, self.most.as_ref().map(end));
        // One that is there has to be one.
        let most = most.map_or(Some(None), |most| most.map(Some))?;
        most.as_ref().is_none_or(|most| least <= *most).then_some(Bounds { least, most })
    }
}

/// What is kept of the bounds of all attributes: those of the first columns that there is room for.
pub(super) fn kept(all: &[Option<Bounds>]) -> Vec<Option<DatasetBounds>> {
    let mut left = BYTES_MAX;
    let mut fits = |bounds: &DatasetBounds| {
        let bytes = bounds.bytes();
        let fits = bytes <= left;
        left -= if fits { bytes } else { 0 };
        fits
    };
    let mut kept: Vec<_> = all.iter().map(|bounds| bounds.as_ref().map(DatasetBounds::of).filter(&mut fits)).collect();
    kept.truncate(kept.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    kept
}

/// The bounds that a manifest says; `Corrupt` where they are none.
pub(super) fn read(all: &[Option<DatasetBounds>]) -> Result<Vec<Option<Bounds>>> {
    let damaged = || Error::corrupt("what the values of a shard lie between is not said as such ends are");
    all.iter().map(|bounds| bounds.as_ref().map(|bounds| bounds.read().ok_or_else(damaged)).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_come_back_and_what_are_none_is_refused() {
        let all = [Some(Bounds::of(b"a", b"b")), None, Some(Bounds { least: Vec::new(), most: None }), None];
        let kept = kept(&all);
        assert_eq!(kept.len(), 3, "what is not said at the end is left out");
        assert_eq!(read(&kept).unwrap(), all[..3]);
        let of = |least: &str, most: Option<&str>| DatasetBounds { least: least.into(), most: most.map(str::to_string) };
        for wrong in [of("6", None), of("xy", None), of("61", Some("60")), of("61", Some("\u{e4}")), of(&"61".repeat(13), None)] {
            assert!(read(&[Some(wrong.clone())]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn of_many_columns_the_first_are_kept() {
        let all = vec![Some(Bounds::of(&[7; 12], &[7; 12])); 100];
        let kept = kept(&all);
        assert_eq!((kept.len(), kept.iter().all(Option::is_some)), (BYTES_MAX / (48 + AROUND_BYTES), true));
        assert_eq!(read(&kept).unwrap(), all[..kept.len()]);
        assert!(serde_json::to_vec(&kept).unwrap().len() <= BYTES_MAX + 1);
        // Short ones have more around them than in them.
        let short = super::kept(&vec![Some(Bounds::of(b"", b"")); 100]);
        assert_eq!(short.len(), BYTES_MAX / AROUND_BYTES);
    }
}
