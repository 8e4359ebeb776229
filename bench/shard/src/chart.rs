use std::fmt::Write;

/// Lines over the size of a shard, with operations a second on a logarithmic axis.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) lines: Vec<Line>,
}

/// One line.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 80.0;
const BOTTOM: f64 = 60.0;
const COLOURS: [&str; 3] = ["#1769aa", "#c0392b", "#2aa198"];
/// What the original C++ Succinct did on the same data and such a machine, for reference: size, gets, searches a CPU-second.
const SUCCINCT: [(f64, f64, f64); 5] = [
    (0.552, 6_117.0, 85.0),
    (0.651, 7_739.0, 137.0),
    (0.850, 8_013.0, 380.0),
    (1.248, 8_369.0, 874.0),
    (2.045, 9_824.0, 1_551.0),
];

impl Chart {
    /// The chart as SVG.
    pub(crate) fn draw(&self) -> String {
        let reference = |name: &str, pick: fn(&(f64, f64, f64)) -> (f64, f64)| Line {
            name: name.to_string(),
            points: SUCCINCT.iter().map(pick).collect(),
        };
        let references = [
            reference("C++ Succinct, get", |point| (point.0, point.1)),
            reference("C++ Succinct, search", |point| (point.0, point.2)),
        ];
        let all = || self.lines.iter().chain(&references).flat_map(|line| &line.points);
        let (least, most) = all().fold((f64::MAX, 0f64), |(least, most), point| (least.min(point.0), most.max(point.0)));
        let floor = all().map(|point| point.1.log10().floor()).fold(f64::MAX, f64::min);
        let ceiling = all().map(|point| point.1.log10().ceil()).fold(0.0, f64::max);
        let x = |size: f64| LEFT + (size - least) / (most - least) * (WIDTH - LEFT - RIGHT);
        let y = |rate: f64| HEIGHT - BOTTOM - (rate.log10() - floor) / (ceiling - floor) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        text(&mut svg, 24.0, 32.0, "font-size=\"18\" font-weight=\"600\"", &self.title);
        text(&mut svg, 24.0, 54.0, "fill=\"#666\"", &self.subtitle);
        text(
            &mut svg,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 14.0,
            "text-anchor=\"middle\"",
            "stored bytes to those of the input",
        );
        let mut decade = floor;
        while decade <= ceiling {
            let rate = 10f64.powf(decade);
            let label = if rate >= 1e6 {
                format!("{:.0} M", rate / 1e6)
            } else if rate >= 1e3 {
                format!("{:.0} k", rate / 1e3)
            } else {
                format!("{rate:.0}")
            };
            text(&mut svg, LEFT - 8.0, y(rate) + 4.0, "text-anchor=\"end\" fill=\"#666\"", &label);
            decade += 1.0;
        }
        let mut size = (least * 5.0).ceil() / 5.0;
        while size <= most {
            text(&mut svg, x(size), HEIGHT - BOTTOM + 18.0, "text-anchor=\"middle\" fill=\"#666\"", &format!("{size:.1}x"));
            size += 0.2;
        }
        for (at, line) in self.lines.iter().chain(&references).enumerate() {
            let colour = if at < self.lines.len() { COLOURS[at % 3] } else { "#b8bec8" };
            let row = TOP + 18.0 * at as f64;
            let dash = if at == self.lines.len() + 1 { " stroke-dasharray=\"6 4\"" } else { "" };
            text(&mut svg, WIDTH - RIGHT + 46.0, row + 4.0, "", &line.name);
            let points: Vec<String> = line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            let stroke = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}");
            let _ = writeln!(svg, "<polyline points=\"{}\" {stroke}/>", points.join(" "));
            let (from, to) = (WIDTH - RIGHT + 12.0, WIDTH - RIGHT + 40.0);
            let _ = writeln!(svg, "<polyline points=\"{from:.1},{row:.1} {to:.1},{row:.1}\" {stroke}/>");
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn text(svg: &mut String, x: f64, y: f64, style: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>");
}
