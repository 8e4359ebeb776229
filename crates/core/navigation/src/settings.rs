//! What navigation goes by beside what it sees.

use forebay_types::{Error, Result};

/// How eagerly layers come and go. Times are what a worker's requests wait and how long a change has to last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seconds between two plans: the paper's δ.
    pub period_secs: f64,
    /// The weight of the newest period in averages: the paper's β.
    pub beta: f64,
    /// The wait that requests should not exceed, in microseconds.
    pub target_us: f64,
    /// A replica whose requests wait longer than this share of the target needs more layers.
    pub upper: f64,
    /// A replica whose requests wait less than this share of the target can spare some.
    pub lower: f64,
    /// A queue that will be gone within so many seconds at the present load is left alone, unless it is there longer than that.
    pub drain_secs: f64,
    /// Seconds of low load before the first layer goes; the next ones follow in [`Self::CALM_STEPS`] times shorter steps.
    pub calm_secs: f64,
    /// Share of its time that a replica may be busy after it dropped a layer because its load is low.
    pub calm_load: f64,
    /// Share of its time that a replica may be busy after it gave a layer to another one.
    pub give_load: f64,
    /// Replicas of one worker that build layers at the same time.
    pub building_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            period_secs: 10.0,
            beta: 0.1,
            target_us: 50_000.0,
            upper: 1.0,
            lower: 0.25,
            drain_secs: 300.0,
            calm_secs: 600.0,
            calm_load: 0.6,
            give_load: 0.85,
            building_max: 8,
        }
    }
}

impl Settings {
    /// How many more layers go in the time that the first one waited.
    pub const CALM_STEPS: u32 = 10;
    /// No period, wait or patience is longer than a day, in seconds.
    const SECS_MAX: f64 = 86_400.0;

    /// The usual patience, in periods of so many seconds.
    ///
    /// ```
    /// use forebay_navigation::Settings;
    /// assert_eq!(Settings::every(10.0), Settings::default());
    /// assert_eq!(Settings::every(5.0).drain_secs, 150.0);
    /// ```
    pub fn every(period_secs: f64) -> Self {
        let usual = Self::default();
        debug_assert!(usual.validate().is_ok(), "what is usual makes sense");
        let scale = period_secs / usual.period_secs;
        Self { period_secs, drain_secs: usual.drain_secs * scale, calm_secs: usual.calm_secs * scale, ..usual }
    }

    /// Refuses values that make no sense.
    /// `Invalid`, with the setting's name and what it may be.
    pub fn validate(&self) -> Result<()> {
        let most = Self::SECS_MAX;
        within("period_secs", self.period_secs, 0.001, most)?;
        within("beta", self.beta, 0.001, 1.0)?;
        within("target_us", self.target_us, 1.0, most * 1e6)?;
        within("upper", self.upper, 0.01, 100.0)?;
        within("lower", self.lower, 0.0, self.upper * 0.9)?;
        within("drain_secs", self.drain_secs, self.period_secs, most)?;
        within("calm_secs", self.calm_secs, self.period_secs, most)?;
        within("calm_load", self.calm_load, 0.0, 0.95)?;
        within("give_load", self.give_load, 0.0, 0.95)?;
        within("building_max", f64::from(self.building_max), 1.0, 1e6)
    }

    /// Microseconds above which a wait is too long.
    pub fn upper_us(&self) -> f64 {
        self.upper * self.target_us
    }

    /// Microseconds below which a wait is short.
    pub fn lower_us(&self) -> f64 {
        self.lower * self.target_us
    }

    pub(crate) fn drain_periods(&self) -> u32 {
        (self.drain_secs / self.period_secs).ceil() as u32
    }

    pub(crate) fn calm_periods(&self) -> u32 {
        (self.calm_secs / self.period_secs).ceil() as u32
    }
}

fn within(name: &str, value: f64, least: f64, most: f64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("{name} can't be {value}: give a number from {least} to {most}")))
}
