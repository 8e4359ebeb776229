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
    bar: String,
    met: bool,
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
        Self::of(what.into(), value, unit, Some((peer.into(), peer_value)), bar)
    }

    /// A figure by itself.
    pub fn alone(what: impl Into<String>, value: f64, unit: &'static str, bar: Bar) -> Self {
        Self::of(what.into(), value, unit, None, bar)
    }

    fn of(what: String, value: f64, unit: &'static str, peer: Option<(String, f64)>, bar: Bar) -> Self {
        let ratio = peer.as_ref().map(|(_, peer_value)| value / peer_value);
        let (bar, met) = match bar {
            Bar::ValueAtLeast(least) => (format!(">= {least} {unit}"), value >= least),
            Bar::ValueAtMost(most) => (format!("<= {most} {unit}"), value <= most),
            Bar::RatioAtLeast(least) => (format!(">= {least}x"), ratio.is_some_and(|ratio| ratio >= least)),
            Bar::RatioAtMost(most) => (format!("<= {most}x"), ratio.is_some_and(|ratio| ratio <= most)),
            Bar::Nothing => ("none".to_string(), true),
        };
        let (peer, peer_value) = peer.unzip();
        Self { what, value, unit, peer, peer_value, ratio, bar, met }
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

    /// Whether the bar is met.
    pub fn met(&self) -> bool {
        self.met
    }
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
