//! A line of JSON a figure, held against its bar: the value itself, or its ratio to a peer of the same run.

use serde::Serialize;

/// What a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    /// The value itself is at least this.
    AtLeast(f64),
    /// The value itself is at most this.
    AtMost(f64),
    /// The value divided by the peer's is at least this.
    RatioAtLeast(f64),
    /// The value divided by the peer's is at most this.
    RatioAtMost(f64),
    /// Nothing: it is printed to be read beside the others.
    None,
}

/// One measured figure, with its peer's from the same run where there is one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    what: String,
    figure: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_figure: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

impl Figure {
    /// A figure by itself.
    pub(crate) fn new(what: impl Into<String>, figure: f64, unit: &'static str, bar: Bar) -> Self {
        Self { what: what.into(), figure, unit, peer: None, peer_figure: None, ratio: None, bar: None, met: None }.held_to(bar)
    }

    /// A figure against a peer's of the same run.
    pub(crate) fn against(
        what: impl Into<String>,
        figure: f64,
        unit: &'static str,
        peer: impl Into<String>,
        peer_figure: f64,
        bar: Bar,
    ) -> Self {
        let mut made = Self::new(what, figure, unit, Bar::None);
        made.peer = Some(peer.into());
        made.peer_figure = Some(peer_figure);
        made.ratio = Some(figure / peer_figure);
        made.held_to(bar)
    }

    fn held_to(mut self, bar: Bar) -> Self {
        let (text, met) = match bar {
            Bar::AtLeast(least) => (format!(">= {least} {}", self.unit), self.figure >= least),
            Bar::AtMost(most) => (format!("<= {most} {}", self.unit), self.figure <= most),
            Bar::RatioAtLeast(least) => (format!(">= {least}x"), self.ratio.is_some_and(|ratio| ratio >= least)),
            Bar::RatioAtMost(most) => (format!("<= {most}x"), self.ratio.is_some_and(|ratio| ratio <= most)),
            Bar::None => return self,
        };
        self.bar = Some(text);
        self.met = Some(met);
        self
    }

    /// Prints a JSON line.
    #[expect(clippy::print_stdout, reason = "figures are the program's output")]
    pub(crate) fn print(&self) {
        println!("{}", serde_json::to_string(self).expect("figures are plain"));
    }
}
