use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 54.0;
const COLOURS: [&str; 8] = ["#1769aa", "#c0392b", "#2aa198", "#8b93a1", "#d9902f", "#7b5ea7", "#4f7942", "#444444"];

/// Lines over two axes, as a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit; its scale is logarithmic.
    pub y: String,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// A line of a chart; a single point is drawn as a mark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// (x, y), in the order of x; y is above 0.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let scale = Scale::of(self);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        text(&mut svg, 16.0, 26.0, "start", " font-size=\"15\" font-weight=\"600\"", &self.title);
        text(&mut svg, LEFT, TOP - 8.0, "start", " fill=\"#666\"", &self.y);
        text(&mut svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14.0, "middle", " fill=\"#666\"", &self.x);
        for value in scale.y_steps() {
            let y = scale.y(value);
            rule(&mut svg, (LEFT, y), (WIDTH - RIGHT, y), "#e5e7eb");
            text(&mut svg, LEFT - 8.0, y + 4.0, "end", " fill=\"#666\" font-size=\"11\"", &short(value));
        }
        for value in scale.x_steps() {
            let x = scale.x(value);
            rule(&mut svg, (x, HEIGHT - BOTTOM), (x, HEIGHT - BOTTOM + 4.0), "#999");
            text(&mut svg, x, HEIGHT - BOTTOM + 18.0, "middle", " fill=\"#666\" font-size=\"11\"", &short(value));
        }
        rule(&mut svg, (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM), "#999");
        for (at, line) in self.lines.iter().enumerate() {
            draw(&mut svg, line, &scale, COLOURS[at % COLOURS.len()]);
            let y = TOP + 8.0 + at as f64 * 20.0;
            let x = WIDTH - RIGHT + 18.0;
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{}\"/>", COLOURS[at % COLOURS.len()]);
            text(&mut svg, x + 10.0, y + 4.0, "start", "", &line.name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn draw(svg: &mut String, line: &Line, scale: &Scale, colour: &str) {
    let points: Vec<String> = line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", scale.x(*x), scale.y(*y))).collect();
    if points.len() > 1 {
        let points = points.join(" ");
        let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
    }
    let radius = if points.len() > 1 { 3.0 } else { 5.5 };
    for (x, y) in &line.points {
        let (x, y) = (scale.x(*x), scale.y(*y));
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>");
    }
}

/// From values to places: x even, y by logarithms.
struct Scale {
    x: (f64, f64),
    y: (f64, f64),
}

impl Scale {
    fn of(chart: &Chart) -> Self {
        let points = || chart.lines.iter().flat_map(|line| &line.points);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
        };
        let (left, right) = range(&mut points().map(|point| point.0));
        let (low, high) = range(&mut points().map(|point| point.1));
        let right = if right > left { right } else { left + 1.0 };
        // Whole steps of 1, 2, 5 below and above what there is.
        let low = steps().rev().find(|step| *step <= low).unwrap_or(1e-3);
        let high = steps().find(|step| *step >= high && *step > low).unwrap_or(1e9);
        Self { x: if left.is_finite() { (left, right) } else { (0.0, 1.0) }, y: (low, high) }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + 12.0 + (value - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - RIGHT - LEFT - 24.0)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.clamp(self.y.0, self.y.1) / self.y.0).ln() / (self.y.1 / self.y.0).ln();
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }

    fn y_steps(&self) -> impl Iterator<Item = f64> {
        let (low, high) = self.y;
        // With many decades only whole ones, so that labels don't meet.
        let sparse = high / low > 1e4;
        steps().filter(move |step| (low..=high).contains(step) && (!sparse || short(*step).starts_with('1')))
    }

    fn x_steps(&self) -> impl Iterator<Item = f64> {
        let (left, right) = self.x;
        let step = steps().find(|step| (right - left) / step <= 8.0).unwrap_or(1.0);
        let first = (left / step).ceil() as i64;
        (first..=(right / step + 1e-9).floor() as i64).map(move |at| at as f64 * step)
    }
}

/// 1, 2, 5 and 10 times the powers of ten, from a thousandth to a thousand millions.
fn steps() -> impl DoubleEndedIterator<Item = f64> {
    (-3..=8).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
}

/// A number without what isn't needed.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>");
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{style}>{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_holds_its_points_and_escapes_its_words() {
        let line = Line { name: "a < b".into(), points: vec![(1.0, 20.0), (2.0, 40.0)] };
        let svg = Chart { title: "t".into(), x: "x".into(), y: "y".into(), lines: vec![line] }.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("<polyline"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn a_single_point_has_a_scale() {
        let line = Line { name: "one".into(), points: vec![(1.0, 20.0)] };
        assert!(!Chart { lines: vec![line], ..Chart::default() }.svg().contains("NaN"));
        assert!(!Chart::default().svg().contains("NaN"));
    }
}
