//! The strokes that every picture is made of, as SVG, with words escaped.

use std::fmt::Write;

/// Colours of lines and bars, in the order in which they are given out.
pub const COLOURS: [&str; 8] = ["#1769aa", "#c0392b", "#2aa198", "#8b93a1", "#d9902f", "#7b5ea7", "#4f7942", "#444444"];

/// Which end of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its first letter.
    Start,
    /// Its middle.
    Middle,
    /// Its last letter.
    End,
}

/// An SVG document that is being drawn; y grows downwards.
///
/// ```
/// use forebay_chart::{Anchor, Canvas};
///
/// let mut canvas = Canvas::new(200.0, 100.0);
/// canvas.text(10.0, 20.0, Anchor::Start, "font-size=\"15\"", "a < b");
/// assert!(canvas.finish().contains("a &lt; b"));
/// ```
#[derive(Clone, Debug)]
pub struct Canvas {
    svg: String,
}

impl Canvas {
    /// A white sheet.
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            svg: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
                 font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\">\n\
                 <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
            ),
        }
    }

    /// A line of text; `style` is further attributes.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, style: &str, words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let space = if style.is_empty() { "" } else { " " };
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{space}{style}>{words}</text>");
    }

    /// A straight line.
    pub fn rule(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        );
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], colour: &str, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let points = points.join(" ");
        let _ = writeln!(self.svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>");
    }

    /// A mark.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, colour: &str) {
        let _ = writeln!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>");
    }

    /// A filled rectangle from its upper left corner; one that is too thin to be seen is drawn half a point wide.
    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let (width, height) = (width.max(0.5), height.max(0.5));
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\" rx=\"2\"/>"
        );
    }

    /// The document.
    pub fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}
