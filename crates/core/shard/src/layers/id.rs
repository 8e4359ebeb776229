//! The names of layers and slices, as numbers in headers and as text in file names.

use std::fmt;
use std::str::FromStr;

use forebay_types::{Error, Result};

/// What a layer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerKind {
    /// For each record, the row of one attribute's start: a get can begin there.
    IsaAttribute,
    /// For each row of one attribute's delimiter, its record: a search of the attribute reads a slice, walks land there.
    SaAttribute,
    /// Rows whose number is an odd multiple of a power of two, and the coarsest one's multiples (BlowFish's AoS2Input).
    SaRate,
    /// Positions by the same rule (Input2AoS), for flat text.
    IsaRate,
    /// The records as text in compressed blocks.
    Blocks,
    /// The records as they are.
    Plain,
    /// Per value of one attribute its keys, found by hash.
    Index,
    /// Per value of one attribute its records in few bits, found by hash.
    Postings,
}

impl LayerKind {
    const ALL: [(Self, &'static str); 8] = [
        (Self::IsaAttribute, "isa"),
        (Self::SaAttribute, "sa"),
        (Self::SaRate, "sa-rate"),
        (Self::IsaRate, "isa-rate"),
        (Self::Blocks, "blocks"),
        (Self::Plain, "plain"),
        (Self::Index, "index"),
        (Self::Postings, "postings"),
    ];

    /// The number in a part's header; 0 is the base.
    pub(crate) fn code(self) -> u64 {
        Self::ALL.iter().position(|(kind, _)| *kind == self).map_or(0, |index| index as u64 + 1)
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get((code as usize).checked_sub(1)?).map(|(kind, _)| *kind)
    }

    /// The name in ids and reports.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// One slice of one layer. Its text form, such as `sa.3.0`, is good for a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerId {
    /// What it holds.
    pub kind: LayerKind,
    /// The attribute, the logarithm of the rate, or 0.
    pub which: u16,
    /// The slice, from 0.
    pub slice: u32,
}

impl LayerId {
    pub(crate) fn code(self) -> u64 {
        u64::from(self.which) << 32 | u64::from(self.slice)
    }

    pub(crate) fn from_codes(kind: u64, id: u64) -> Option<Self> {
        let which = u16::try_from(id >> 32).ok()?;
        Some(Self { kind: LayerKind::from_code(kind)?, which, slice: id as u32 })
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.kind.name(), self.which, self.slice)
    }
}

impl FromStr for LayerId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut pieces = text.splitn(3, '.');
        let mut piece = || pieces.next().unwrap_or_default();
        let name = piece();
        let kind = LayerKind::ALL.iter().find(|(_, other)| *other == name).map(|(kind, _)| *kind);
        match (kind, piece().parse(), piece().parse()) {
            (Some(kind), Ok(which), Ok(slice)) => Ok(Self { kind, which, slice }),
            _ => Err(Error::invalid(format!("{text:?} does not name a layer; one is called like sa.3.0"))),
        }
    }
}
