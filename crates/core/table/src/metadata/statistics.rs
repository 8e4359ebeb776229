//! Bounds and counts of nulls as the metadata keeps them; long strings are cut to what still bounds them.

use forebay_types::Result;

use crate::fields::{Decoder, Encoder};
use crate::schema::Kind;

/// Longest bound that is kept of a string or binary value, in bytes.
pub(crate) const BOUND_BYTES_MAX: usize = 64;

/// A value that no value of a cell is below (or above), in the bytes of the leaf's kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub bytes: Vec<u8>,
    /// Whether the cell has this very value.
    pub exact: bool,
}

/// What is known of a column's values in a row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafStatistics {
    pub nulls: usize,
    pub min: Option<Bound>,
    pub max: Option<Bound>,
}

impl LeafStatistics {
    pub fn encode(&self, out: &mut Encoder) {
        out.u32(self.nulls as u32);
        for bound in [&self.min, &self.max] {
            match bound {
                None => out.u8(0),
                Some(bound) => {
                    out.u8(if bound.exact { 2 } else { 1 });
                    out.u16(bound.bytes.len() as u16);
                    out.bytes(&bound.bytes);
                }
            }
        }
    }

    pub fn decode(input: &mut Decoder<'_>, kind: Kind, rows: usize) -> Result<Self> {
        let nulls = input.u32()? as usize;
        if nulls > rows {
            return Err(input.corrupt("more nulls than rows"));
        }
        let mut bound = || {
            let exact = match input.u8()? {
                0 => return Ok(None),
                1 => false,
                2 => true,
                _ => return Err(input.corrupt("unknown kind of bound")),
            };
            let length = input.u16()? as usize;
            let bytes = input.take(length)?.to_vec();
            let fits = match kind {
                Kind::Fixed(width) => length == width,
                Kind::Bit => length == 1,
                Kind::Bytes { .. } | Kind::View => length <= BOUND_BYTES_MAX,
                Kind::Nothing | Kind::List { .. } | Kind::Nested { .. } => false,
            };
            if !fits {
                return Err(input.corrupt("a bound has the wrong length"));
            }
            Ok(Some(Bound { bytes, exact }))
        };
        Ok(Self { nulls, min: bound()?, max: bound()? })
    }
}
