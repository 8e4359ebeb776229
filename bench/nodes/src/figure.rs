use serde::Serialize;

/// One line of output.
#[derive(Serialize)]
struct Figure<'a> {
    bench: &'static str,
    name: &'a str,
    unit: &'static str,
    forebay: f64,
    peer: &'a str,
    peer_figure: f64,
    /// Ours over the peer's.
    ratio: f64,
    /// What the ratio must be at least, or at most.
    bar: f64,
    met: bool,
}

/// More is better.
pub fn at_least(name: &str, unit: &'static str, forebay: f64, peer: (&str, f64), bar: f64) {
    let ratio = forebay / peer.1;
    print(&Figure { bench: "nodes", name, unit, forebay, peer: peer.0, peer_figure: peer.1, ratio, bar, met: ratio >= bar });
}

/// Less is better.
pub fn at_most(name: &str, unit: &'static str, forebay: f64, peer: (&str, f64), bar: f64) {
    let ratio = forebay / peer.1;
    print(&Figure { bench: "nodes", name, unit, forebay, peer: peer.0, peer_figure: peer.1, ratio, bar, met: ratio <= bar });
}

fn print(figure: &Figure<'_>) {
    println!("{}", serde_json::to_string(figure).unwrap());
}

/// The middle one.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
