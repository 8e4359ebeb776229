//! Traces: accesses as a cluster or somebody else recorded them, a line of JSON each.
//!
//! Lines are read one at a time, so that a trace may be of any length.

mod convert;
mod lines;
mod published;

use std::io::BufRead;
use std::ops::RangeInclusive;

use forebay_types::{Error, OBJECT_BYTES_MAX, Result, ResultExt, SEGMENT_BYTES};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use lines::Lines;

pub use convert::{Conversion, Converted, convert};
pub use published::Published;

/// Longest path of an access in bytes.
const PATH_BYTES_MAX: usize = 4_096;
/// Latest time of an access: what readers of JSON keep exactly.
const AT_US_MAX: u64 = 1 << 53;
/// Accesses that one line may stand for.
const TIMES_MAX: u32 = 1_000_000;

/// What is done to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// Bytes of it are read.
    #[default]
    Read,
    /// Bytes of it are written.
    Write,
    /// It is deleted.
    Delete,
}

/// An access to one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// When, in microseconds from any origin.
    pub at_us: u64,
    /// What is done.
    #[serde(default)]
    pub op: AccessKind,
    /// The object.
    pub path: String,
    /// First byte, counted from the object's start.
    #[serde(default, skip_serializing_if = "is_start")]
    pub start: u64,
    /// Bytes; 0 where they are not known.
    pub bytes: u64,
    /// How many accesses the line stands for.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
    /// The operation that it is part of, if that is known: those of one operation belong together.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_hex", deserialize_with = "read_hex")]
    pub operation: Option<u64>,
    /// How the bytes went, as whoever recorded it calls that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

impl Access {
    /// A read of all of an object's bytes, whose operation is not known.
    pub fn new(at_us: u64, path: impl Into<String>, bytes: u64) -> Self {
        let path = path.into();
        Self { at_us, op: AccessKind::Read, path, start: 0, bytes, times: 1, operation: None, way: None }
    }

    /// What a line says. `Invalid` when it is no access, or one that can't be.
    pub fn read(line: &str) -> Result<Self> {
        let access: Self = serde_json::from_str(line).map_err(|error| {
            Error::invalid(format!("it is no access as in {{\"at_us\":0,\"path\":\"/lake/a\",\"bytes\":9}}: {error}"))
        })?;
        access.check()?;
        Ok(access)
    }

    /// The line, without its end.
    pub fn line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::internal(format!("can't write an access: {error}")))
    }

    /// `Invalid` when there can be no such access.
    pub fn check(&self) -> Result<()> {
        if self.path.is_empty() || self.path.len() > PATH_BYTES_MAX {
            let bytes = self.path.len();
            return Err(Error::invalid(format!("a path of {bytes} bytes is none: 1 to {PATH_BYTES_MAX} bytes are")));
        }
        if self.start.checked_add(self.bytes).is_none_or(|end| end > OBJECT_BYTES_MAX) {
            return Err(Error::invalid(format!(
                "{} bytes from {} on go past the largest object, which has {OBJECT_BYTES_MAX} bytes",
                self.bytes, self.start
            )));
        }
        if self.at_us > AT_US_MAX {
            return Err(Error::invalid(format!("{} is no time: {AT_US_MAX} microseconds are the most", self.at_us)));
        }
        if !(1..=TIMES_MAX).contains(&self.times) {
            return Err(Error::invalid(format!("a line stands for 1 to {TIMES_MAX} accesses, and not for {}", self.times)));
        }
        Ok(())
    }

    /// The object's segments that it reaches into; the one where it begins if it has no bytes.
    pub fn segments(&self) -> RangeInclusive<u32> {
        let last = self.start + self.bytes.saturating_sub(1);
        (self.start / SEGMENT_BYTES) as u32..=(last / SEGMENT_BYTES) as u32
    }

    /// Where its bytes end in one of these segments, counted from the segment's start.
    pub(crate) fn end_within(&self, segment: u32) -> u64 {
        (self.start + self.bytes).saturating_sub(u64::from(segment) * SEGMENT_BYTES).min(SEGMENT_BYTES)
    }
}

/// The accesses of a trace in the order of its lines. `Invalid` names the line that can't be understood; nothing is to be read
/// after it.
pub fn accesses(from: impl BufRead) -> impl Iterator<Item = Result<Access>> {
    let mut lines = Lines::new(from);
    std::iter::from_fn(move || {
        loop {
            match lines.take_line() {
                Err(error) => return Some(Err(error)),
                Ok(None) => return None,
                Ok(Some((_, Ok("")))) => {}
                Ok(Some((number, text))) => return Some(text.and_then(Access::read).context(|| format!("line {number}"))),
            }
        }
    })
}

fn once() -> u32 {
    1
}

fn is_once(times: &u32) -> bool {
    *times == 1
}

fn is_start(start: &u64) -> bool {
    *start == 0
}

/// As a text: readers of JSON round large numbers.
fn write_hex<S: Serializer>(operation: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match operation {
        Some(operation) => serializer.collect_str(&format_args!("{operation:x}")),
        None => serializer.serialize_none(),
    }
}

fn read_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    u64::from_str_radix(&text, 16).map(Some).map_err(serde::de::Error::custom)
}
