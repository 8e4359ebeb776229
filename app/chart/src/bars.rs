//! Bars in rows, to compare sums and what each of them is made of.

use serde::Serialize;

use crate::canvas::{Anchor, COLOURS, Canvas};
use crate::scale::{Scale, short};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 76.0;
const BAR: f64 = 22.0;
const GAP: f64 = 12.0;
const LEGEND: f64 = 170.0;

/// Rows of bars side by side, each made of parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// The unit of the lengths.
    pub unit: String,
    /// Names of the parts, in the order in which they stand in a row.
    pub parts: Vec<String>,
    /// The rows, from above.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Lengths of its parts; one that is missing is 0.
    pub parts: Vec<f64>,
}

impl Bars {
    /// The bars as an SVG document.
    pub fn svg(&self) -> String {
        let height = TOP + self.rows.len() as f64 * (BAR + GAP) + 12.0;
        let mut canvas = Canvas::new(WIDTH, height);
        let total = |row: &Row| row.parts.iter().sum::<f64>();
        let x = Scale::from_zero(self.rows.iter().map(total), LEFT, WIDTH - RIGHT);
        canvas.text(16.0, 26.0, Anchor::Start, "font-size=\"15\" font-weight=\"600\"", &self.title);
        for (at, part) in self.parts.iter().enumerate() {
            let left = LEFT + at as f64 * LEGEND;
            canvas.bar(left, 42.0, 12.0, 12.0, COLOURS[at % COLOURS.len()]);
            canvas.text(left + 18.0, 52.0, Anchor::Start, "", part);
        }
        for (at, row) in self.rows.iter().enumerate() {
            let y = TOP + at as f64 * (BAR + GAP);
            canvas.text(LEFT - 10.0, y + 15.0, Anchor::End, "", &row.name);
            let mut done = 0.0;
            for (at, part) in row.parts.iter().enumerate().filter(|(_, part)| **part > 0.0) {
                let (from, to) = (x.at(done), x.at(done + part));
                canvas.bar(from, y, to - from, BAR, COLOURS[at % COLOURS.len()]);
                done += part;
            }
            let label = format!("{} {}", short(done), self.unit);
            canvas.text(x.at(done) + 8.0, y + 15.0, Anchor::Start, "", &label);
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        let row = Row { name: "both".into(), parts: vec![2.0, 1.0] };
        let bars = Bars { title: "t".into(), unit: "s".into(), parts: vec!["copy".into(), "compute".into()], rows: vec![row] };
        let svg = bars.svg();
        assert!(svg.contains("3 s") && svg.contains("compute") && !svg.contains("NaN"), "{svg}");
        assert_eq!(svg.matches("<rect x=").count(), 4);
        assert!(!Bars::default().svg().contains("NaN"));
    }
}
