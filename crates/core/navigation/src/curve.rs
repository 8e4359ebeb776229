//! What a shard's dial costs and brings: bytes and time a request, level by level.

use forebay_types::{Error, Result};

/// A shard that keeps so many layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Bytes of the base and of all layers up to this one.
    pub bytes: u64,
    /// Microseconds of the replica's time that a request takes, or one of its steps where queues are told in these: one over its throughput.
    pub service_us: f64,
}

/// The levels of a shard, from its base to all its layers.
///
/// ```
/// use forebay_navigation::{Curve, Level};
/// let levels = [(50, 1000.0), (60, 400.0), (75, 420.0)].map(|(bytes, service_us)| Level { bytes, service_us });
/// let curve = Curve::new(levels.to_vec())?;
/// assert_eq!(curve.service_us(2), 400.0, "what was measured slower with one layer more is noise");
/// assert_eq!((curve.up(0), curve.up(1)), (Some(1), None));
/// # Ok::<(), forebay_types::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    levels: Vec<Level>,
}

impl Curve {
    /// Levels at most: the finest dial has a hundred.
    pub const LEVELS_MAX: usize = 1 << 10;
    /// Bytes of a replica at most, so that a worker's sum fits into 64 bits.
    pub const BYTES_MAX: u64 = 1 << 46;
    /// A request that takes longer than an hour is no measurement.
    pub const SERVICE_US_MAX: f64 = 3.6e9;

    /// From levels as they were measured, the base first. Where one layer more was measured slower, that is taken for noise:
    /// answers never become slower by a layer.
    /// `Invalid`: no level or too many, bytes that don't rise or are past the limit, times that aren't above 0 and finite.
    pub fn new(mut levels: Vec<Level>) -> Result<Self> {
        if levels.is_empty() || levels.len() > Self::LEVELS_MAX {
            let (count, most) = (levels.len(), Self::LEVELS_MAX);
            return Err(Error::invalid(format!("a shard can't have {count} levels: give 1 to {most}, the base first")));
        }
        levels.iter().try_for_each(Level::validate)?;
        if let Some(pair) = levels.windows(2).find(|pair| pair[1].bytes <= pair[0].bytes) {
            let (below, above) = (pair[0].bytes, pair[1].bytes);
            return Err(Error::invalid(format!(
                "a level of {above} bytes can't follow one of {below}: give levels by rising bytes"
            )));
        }
        let mut fastest = f64::INFINITY;
        for level in &mut levels {
            fastest = fastest.min(level.service_us);
            level.service_us = fastest;
        }
        Ok(Self { levels })
    }

    /// The level with all layers.
    pub fn highest(&self) -> u32 {
        self.levels.len() as u32 - 1
    }

    /// Bytes at `level`, or at the highest if there is none such.
    pub fn bytes(&self, level: u32) -> u64 {
        self.at(level).bytes
    }

    /// Microseconds a request at `level`, or at the highest if there is none such.
    pub fn service_us(&self, level: u32) -> f64 {
        self.at(level).service_us
    }

    /// The next level above that is faster. O(levels).
    pub fn up(&self, level: u32) -> Option<u32> {
        let now = self.service_us(level);
        (level + 1..=self.highest()).find(|above| self.service_us(*above) < now)
    }

    fn at(&self, level: u32) -> Level {
        self.levels[(level as usize).min(self.levels.len() - 1)]
    }
}

impl Level {
    fn validate(&self) -> Result<()> {
        if self.bytes == 0 || self.bytes > Curve::BYTES_MAX {
            let most = Curve::BYTES_MAX;
            return Err(Error::invalid(format!("a level can't have {} bytes: give 1 to {most}", self.bytes)));
        }
        if !(self.service_us > 0.0 && self.service_us <= Curve::SERVICE_US_MAX) {
            let us = self.service_us;
            return Err(Error::invalid(format!(
                "a request can't take {us} us: give what was measured, above 0 and below an hour"
            )));
        }
        Ok(())
    }
}
