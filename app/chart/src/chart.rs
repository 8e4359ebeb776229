//! Lines over two axes with their labels and names, laid out on one sheet of a fixed size.

use serde::Serialize;

use crate::canvas::{Anchor, COLOURS, Canvas};
use crate::scale::{Scale, short};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 54.0;
/// Room beside the outermost points.
const MARGIN: f64 = 12.0;
const FAINT: &str = "fill=\"#666\" font-size=\"11\"";

/// Lines over two axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// Whether the vertical axis begins at 0; else it is logarithmic, and every y is above 0.
    pub from_zero: bool,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// A line of a chart; a single point is drawn as a mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// (x, y), in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Whether it is a mere comparison.
    pub dashed: bool,
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(WIDTH, HEIGHT);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let x = Scale::tight(points().map(|point| point.0), LEFT + MARGIN, right - MARGIN);
        let heights = points().map(|point| point.1);
        let y = if self.from_zero { Scale::from_zero(heights, floor, TOP) } else { Scale::by_decades(heights, floor, TOP) };

        canvas.text(16.0, 26.0, Anchor::Start, "font-size=\"15\" font-weight=\"600\"", &self.title);
        canvas.text(LEFT, TOP - 8.0, Anchor::Start, "fill=\"#666\"", &self.y);
        canvas.text((LEFT + right) / 2.0, HEIGHT - 14.0, Anchor::Middle, "fill=\"#666\"", &self.x);
        for value in y.labels() {
            canvas.rule((LEFT, y.at(value)), (right, y.at(value)), "#e5e7eb", 1.0);
            canvas.text(LEFT - 8.0, y.at(value) + 4.0, Anchor::End, FAINT, &short(value));
        }
        for value in x.labels() {
            canvas.rule((x.at(value), floor), (x.at(value), floor + 4.0), "#999", 1.0);
            canvas.text(x.at(value), floor + 18.0, Anchor::Middle, FAINT, &short(value));
        }
        canvas.rule((LEFT, floor), (right, floor), "#999", 1.0);
        for (at, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let places: Vec<(f64, f64)> = line.points.iter().map(|point| (x.at(point.0), y.at(point.1))).collect();
            if places.len() > 1 {
                canvas.polyline(&places, colour, line.dashed);
            }
            let radius = if places.len() > 1 { 3.0 } else { 5.5 };
            places.iter().filter(|_| !line.dashed || places.len() == 1).for_each(|(x, y)| canvas.dot(*x, *y, radius, colour));
            let (left, row) = (right + 18.0, TOP + 8.0 + at as f64 * 20.0);
            canvas.dot(left, row, 4.0, colour);
            canvas.text(left + 10.0, row + 4.0, Anchor::Start, "", &line.name);
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_holds_its_points_and_escapes_its_words() {
        let line = Line { name: "a < b".into(), points: vec![(1.0, 20.0), (2.0, 40.0)], dashed: false };
        for from_zero in [false, true] {
            let (title, lines) = ("t".into(), vec![line.clone()]);
            let svg = Chart { title, x: "x".into(), y: "y".into(), from_zero, lines }.svg();
            assert!(svg.contains("a &lt; b") && svg.contains("<polyline"), "{svg}");
            assert!(!svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn a_single_point_has_a_scale() {
        let line = Line { name: "one".into(), points: vec![(1.0, 20.0)], dashed: false };
        assert!(!Chart { lines: vec![line], ..Chart::default() }.svg().contains("NaN"));
        assert!(!Chart::default().svg().contains("NaN"));
        assert!(!Chart { from_zero: true, ..Chart::default() }.svg().contains("NaN"));
    }

    #[test]
    fn zero_stands_on_the_floor() {
        let line = Line { name: "l".into(), points: vec![(0.0, 0.0), (1.0, 3.0)], dashed: false };
        let svg = Chart { from_zero: true, lines: vec![line], ..Chart::default() }.svg();
        assert!(svg.contains(&format!("cy=\"{:.1}\" r=\"3\"", HEIGHT - BOTTOM)), "{svg}");
    }
}
