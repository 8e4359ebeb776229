//! The demo's report drawn as SVG: bars of whole runs above, of single queries below.

use std::fmt::Write;

use super::report::{Report, TITLES};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 40.0;
const BAR: f64 = 22.0;
const GAP: f64 = 12.0;
const PANEL: f64 = 190.0;
/// Colour of each run: Forebay's two stand out, what it is compared with stays back.
const COLOURS: [&str; 5] = ["#b8bec8", "#8b93a1", "#1769aa", "#2aa198", "#d9c36a"];
/// The runs of the lower picture; ingest has no times of single queries that could be compared.
const PER_QUERY: [usize; 4] = [0, 2, 3, 4];

/// The report as a picture: seconds of each run, with what they fetched, and of each query below.
pub(crate) fn draw(report: &Report) -> String {
    let height = 92.0 + 5.0 * (BAR + GAP) + 70.0 + PANEL + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    text(
        &mut svg,
        24.0,
        32.0,
        "start",
        "font-size=\"18\" font-weight=\"600\"",
        "SQL on shared storage: how long the whole workload takes",
    );
    text(&mut svg, 24.0, 54.0, "start", "fill=\"#666\"", &report.title());
    totals(&mut svg, report, 80.0);
    per_query(&mut svg, report, 80.0 + 5.0 * (BAR + GAP) + 70.0);
    svg.push_str("</svg>\n");
    svg
}

fn totals(svg: &mut String, report: &Report, top: f64) {
    let longest = report.runs.iter().map(super::report::Run::secs).fold(0.0, f64::max);
    let room = WIDTH - LEFT - RIGHT - 190.0;
    let x = |secs: f64| LEFT + secs / longest * room;
    for (at, (run, title)) in report.runs.iter().zip(TITLES).enumerate() {
        let y = top + at as f64 * (BAR + GAP);
        text(svg, LEFT - 12.0, y + 16.0, "end", "", title);
        bar(svg, LEFT, y, x(run.secs()) - LEFT, BAR, COLOURS[at]);
        if run.before_secs > 0.0 {
            // The copy comes first, in a lighter shade.
            bar(svg, LEFT, y, x(run.before_secs) - LEFT, BAR, "#c9ced6");
            text(svg, LEFT + 6.0, y + 16.0, "start", "fill=\"#555\" font-size=\"11\"", "copy");
        }
        let label = format!("{:.1} s · {} from S3", run.secs(), forebay_types::format_bytes(run.bytes));
        text(svg, x(run.secs()) + 8.0, y + 16.0, "start", "", &label);
    }
    let cold = top + 2.0 * (BAR + GAP);
    let floor = x(report.floor_secs());
    let _ = writeln!(
        svg,
        "<line x1=\"{floor:.1}\" y1=\"{:.1}\" x2=\"{floor:.1}\" y2=\"{:.1}\" stroke=\"#c0392b\" stroke-width=\"2\"/>",
        cold - 4.0,
        cold + BAR + 4.0
    );
    let note =
        format!("red line: the floor of cold, {:.1} s (transfer, compute or CPU alone, query by query)", report.floor_secs());
    text(svg, LEFT, top + 5.0 * (BAR + GAP) + 8.0, "start", "fill=\"#c0392b\" font-size=\"12\"", &note);
}

fn per_query(svg: &mut String, report: &Report, top: f64) {
    let left = 50.0;
    let secs = |run: usize, n: usize| report.runs[run].per_query[n - 1].secs;
    let longest = report.queries.iter().flat_map(|&n| PER_QUERY.map(|run| secs(run, n))).fold(0.001, f64::max);
    let bottom = top + PANEL;
    let y = |value: f64| bottom - value / longest * (PANEL - 30.0);

    let mut x = left;
    for run in PER_QUERY {
        bar(svg, x, top - 10.0, 12.0, 12.0, COLOURS[run]);
        text(svg, x + 18.0, top, "start", "", TITLES[run]);
        x += 150.0;
    }
    let step = nice_step(longest);
    let mut line = 0.0;
    while line <= longest {
        let at = y(line);
        let _ =
            writeln!(svg, "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#e5e7eb\"/>", WIDTH - RIGHT);
        text(
            svg,
            left - 8.0,
            at + 4.0,
            "end",
            "fill=\"#666\" font-size=\"11\"",
            &format!("{line:.*} s", usize::from(step < 1.0)),
        );
        line += step;
    }
    let slot = (WIDTH - left - RIGHT) / report.queries.len() as f64;
    let width = (slot * 0.8 / PER_QUERY.len() as f64).min(24.0);
    for (at, &n) in report.queries.iter().enumerate() {
        let start = left + at as f64 * slot + (slot - width * PER_QUERY.len() as f64) / 2.0;
        for (place, run) in PER_QUERY.into_iter().enumerate() {
            let value = y(secs(run, n));
            bar(svg, start + place as f64 * width, value, width - 1.0, bottom - value, COLOURS[run]);
        }
        text(svg, left + (at as f64 + 0.5) * slot, bottom + 18.0, "middle", "font-size=\"11\"", &format!("Q{n}"));
    }
}

/// A round distance between lines, for about five of them.
fn nice_step(longest: f64) -> f64 {
    let rough = longest / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough).unwrap_or(power * 10.0)
}

fn bar(svg: &mut String, x: f64, y: f64, width: f64, height: f64, colour: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" rx=\"2\"/>",
        width.max(0.5),
        height.max(0.5)
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(nice_step(5.0), 1.0);
        assert_eq!(nice_step(1.2), 0.5);
        assert_eq!(nice_step(30.0), 10.0);
    }
}
