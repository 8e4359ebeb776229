//! Where values stand along an axis, and which of them are round enough to be written beside it.

/// From values to places along an axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    by_decades: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// Even, exactly from the lowest to the highest of `values`.
    pub(crate) fn tight(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = range(values);
        Self { low, high: if high > low { high } else { low + 1.0 }, by_decades: false, from, to }
    }

    /// Even, from 0 to a round number.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let high = range(values).1.max(1e-6);
        let step = step_near(high / 6.0);
        Self { low: 0.0, high: (high / step).ceil() * step, by_decades: false, from, to }
    }

    /// By logarithms, in whole steps of 1, 2, 5 below and above what there is.
    pub(crate) fn by_decades(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = range(values);
        let low = steps().rev().find(|step| *step <= low).unwrap_or(1e-3);
        let high = steps().find(|step| *step >= high && *step > low).unwrap_or(1e9);
        Self { low, high, by_decades: true, from, to }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = match self.by_decades {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// The values that are worth a label.
    pub(crate) fn labels(&self) -> Vec<f64> {
        let (low, high) = (self.low, self.high);
        if self.by_decades {
            // With many decades only whole ones, so that labels don't meet.
            let sparse = high / low > 1e4;
            return steps().filter(|step| (low..=high).contains(step) && (!sparse || short(*step).starts_with('1'))).collect();
        }
        let step = step_near((high - low) / 8.0);
        let first = (low / step - 1e-9).ceil() as i64;
        (first..=(high / step + 1e-9).floor() as i64).map(|at| at as f64 * step).collect()
    }
}

/// The lowest and the highest; 0 and 1 of nothing.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}

/// 1, 2, 5 and 10 times the powers of ten, from a thousandth to a thousand millions.
fn steps() -> impl DoubleEndedIterator<Item = f64> {
    (-3..=8).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
}

/// The round number (1, 2 or 5 times a power of ten) from `rough` on.
///
/// ```
/// assert_eq!([0.24, 1.0, 6.0].map(forebay_chart::step_near), [0.5, 1.0, 10.0]);
/// ```
pub fn step_near(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

/// A number without what isn't needed.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
