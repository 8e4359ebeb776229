//! What is stored and what is asked: TPC-H lineitem or a service's log, and operations drawn uniformly or by Zipf's law.

mod operations;
mod requests;
mod zipf;

use std::io::Write;

use tpchgen::generators::{LineItem, LineItemGenerator};

pub(crate) use operations::{Get, Rows, Search, Skew, gets, searches};

/// The attributes of a lineitem: those that are not in its key.
pub(crate) const ATTRIBUTES: [&str; 14] = [
    "l_partkey",
    "l_suppkey",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_tax",
    "l_returnflag",
    "l_linestatus",
    "l_shipdate",
    "l_commitdate",
    "l_receiptdate",
    "l_shipinstruct",
    "l_shipmode",
    "l_comment",
];
/// The attributes that are searched, by place: those whose values have few hits each.
pub(crate) const SELECTIVE: [usize; 7] = [0, 1, 3, 8, 9, 10, 13];

/// Records in the order of their keys, as plain text, in one piece.
pub(crate) struct Records {
    pub(crate) attributes: &'static [&'static str],
    pub(crate) keys: Vec<u64>,
    bytes: Vec<u8>,
    /// Where each value ends in `bytes`, record after record.
    ends: Vec<u32>,
}

impl Records {
    /// The first lineitems whose values together take at least `values_bytes`.
    pub(crate) fn lineitem(values_bytes: usize) -> Self {
        // A record's values take about 103 bytes, and a scale factor of one has six million records.
        let scale = (values_bytes as f64 / 95.0 / 6_000_000.0).max(0.001);
        let mut records = Self::of(&ATTRIBUTES, values_bytes);
        for item in LineItemGenerator::new(scale, 1, 1).iter() {
            if records.bytes.len() >= values_bytes {
                break;
            }
            records.push(&item);
        }
        assert!(records.bytes.len() >= values_bytes, "the scale factor is too small");
        records
    }

    /// None yet, with room for values of so many bytes.
    fn of(attributes: &'static [&'static str], values_bytes: usize) -> Self {
        Self { attributes, keys: Vec::new(), bytes: Vec::with_capacity(values_bytes + 4096), ends: Vec::new() }
    }

    fn push(&mut self, item: &LineItem<'_>) {
        self.keys.push((item.l_orderkey as u64) << 3 | item.l_linenumber as u64);
        macro_rules! values {
            ($($field:ident),*) => {$(
                write!(self.bytes, "{}", item.$field).expect("a vector takes everything");
                self.ends.push(u32::try_from(self.bytes.len()).expect("less than 4 GiB"));
            )*};
        }
        values!(l_partkey, l_suppkey, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus);
        values!(l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment);
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn value(&self, row: usize, attribute: usize) -> &[u8] {
        let place = row * self.attributes.len() + attribute;
        let start = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        &self.bytes[start..self.ends[place] as usize]
    }

    /// All values of a record, one behind the other.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let first = row * self.attributes.len();
        let start = if first == 0 { 0 } else { self.ends[first - 1] as usize };
        &self.bytes[start..self.ends[first + self.attributes.len() - 1] as usize]
    }

    pub(crate) fn values_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What every size is compared with: keys, values and one delimiter an attribute.
    pub(crate) fn input_bytes(&self) -> usize {
        self.keys.len() * 8 + self.bytes.len() + self.ends.len()
    }
}
