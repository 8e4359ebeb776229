//! One measured figure, its peer's, and the bar.

use serde::Serialize;

/// What a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// The value itself is at least this.
    ValueAtLeast(f64),
    /// The value itself is at most this.
    ValueAtMost(f64),
    /// The value divided by the peer's is at least this.
    RatioAtLeast(f64),
    /// The value divided by the peer's is at most this.
    RatioAtMost(f64),
    /// Nothing: it stands beside a limit, so that what is left can be seen.
    Nothing,
}

impl Bar {
    fn text(self, unit: &str) -> String {
        match self {
            Self::ValueAtLeast(least) => format!(">= {least} {unit}"),
            Self::ValueAtMost(most) => format!("<= {most} {unit}"),
            Self::RatioAtLeast(least) => format!(">= {least}x"),
            Self::RatioAtMost(most) => format!("<= {most}x"),
            Self::Nothing => "none".to_string(),
        }
    }

    /// A bar of ratios is not met without a peer.
    fn is_met(self, value: f64, ratio: Option<f64>) -> bool {
        match self {
            Self::ValueAtLeast(least) => value >= least,
            Self::ValueAtMost(most) => value <= most,
            Self::RatioAtLeast(least) => ratio.is_some_and(|ratio| ratio >= least),
            Self::RatioAtMost(most) => ratio.is_some_and(|ratio| ratio <= most),
            Self::Nothing => true,
        }
    }
}

/// One measured figure, with its peer's from the same run where there is one.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_value: Option<f64>,
    bar: String,
    /// Whether the bar is met.
    pub met: bool,
    #[serde(skip)]
    limit: Bar,
}

impl Figure {
    /// A figure against a peer measured in the same run.
    pub fn new(
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        peer: impl Into<String>,
        peer_value: f64,
        bar: Bar,
    ) -> Self {
        Self::alone(what, value, unit, bar).beside(peer, peer_value)
    }

    /// A figure by itself.
    pub fn alone(what: impl Into<String>, value: f64, unit: &'static str, limit: Bar) -> Self {
        let (what, bar, met) = (what.into(), limit.text(unit), limit.is_met(value, None));
        Self { what, value, unit, peer: None, peer_value: None, ratio: None, limit_value: None, bar, met, limit }
    }

    /// It against a peer measured in the same run.
    #[must_use]
    pub fn beside(self, peer: impl Into<String>, peer_value: f64) -> Self {
        let ratio = Some(self.value / peer_value);
        let met = self.limit.is_met(self.value, ratio);
        Self { peer: Some(peer.into()), peer_value: Some(peer_value), ratio, met, ..self }
    }

    /// And beside what the smallest program gave that does only that work, measured in the same run.
    #[must_use]
    pub fn within(self, limit_value: f64) -> Self {
        Self { limit_value: Some(limit_value), ..self }
    }

    /// Prints the figure: a JSON line, or a line for people.
    #[expect(clippy::print_stdout, reason = "figures are the program's output")]
    pub fn print(&self, json: bool) {
        if json {
            println!("{}", serde_json::to_string(self).expect("figures are plain"));
        } else {
            println!(
                "{:4} {:72} {:>12} {:10} {:>12} {:40} {:>8}  bar {}",
                if self.met { "met" } else { "MISS" },
                self.what,
                short(self.value),
                self.unit,
                self.peer_value.map(short).unwrap_or_default(),
                self.peer.as_deref().unwrap_or_default(),
                self.ratio.map(|ratio| format!("{ratio:.3}x")).unwrap_or_default(),
                self.bar
            );
        }
    }
}

/// Prints a line of JSON: a figure by itself.
pub fn line(what: impl Into<String>, value: f64, unit: &'static str, bar: Bar) {
    Figure::alone(what, value, unit, bar).print(true);
}

/// Prints a line of JSON: ours over the peer's must be at least `bar`, as more is better.
pub fn at_least(name: &str, unit: &'static str, ours: f64, peer: (&str, f64), bar: f64) {
    Figure::new(name, ours, unit, peer.0, peer.1, Bar::RatioAtLeast(bar)).print(true);
}

/// The same where less is better: at most `bar`.
pub fn at_most(name: &str, unit: &'static str, ours: f64, peer: (&str, f64), bar: f64) {
    Figure::new(name, ours, unit, peer.0, peer.1, Bar::RatioAtMost(bar)).print(true);
}

fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// The middle value; the mean of the two middle ones of an even number.
pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median needs values");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_limit_where_one_was_measured_and_no_bar_is_held_against_it() {
        let figure = Figure::new("get", 9.0, "us", "redis", 10.0, Bar::RatioAtMost(1.0));
        let text = |figure: &Figure| serde_json::to_string(figure).expect("figures are plain");
        assert!(!text(&figure).contains("limit"), "{}", text(&figure));
        let within = figure.within(3.0);
        assert!(within.met && text(&within).contains("\"ratio\":0.9,\"limit_value\":3.0,"), "{}", text(&within));
    }
}
