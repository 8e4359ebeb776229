use serde::Serialize;

/// One line of output.
#[derive(Serialize)]
pub struct Figure<'a> {
    pub bench: &'static str,
    pub name: &'a str,
    pub unit: &'static str,
    pub forebay: f64,
    pub peer: &'a str,
    pub peer_figure: f64,
    /// Ours over the peer's.
    pub ratio: f64,
    /// What the ratio must be at least, or at most.
    pub bar: f64,
    pub met: bool,
}

/// More is better.
pub fn at_least(name: &str, unit: &'static str, forebay: f64, peer: (&str, f64), bar: f64) {
    let ratio = forebay / peer.1;
    print(&Figure { bench: "gateway", name, unit, forebay, peer: peer.0, peer_figure: peer.1, ratio, bar, met: ratio >= bar });
}

/// Less is better.
pub fn at_most(name: &str, unit: &'static str, forebay: f64, peer: (&str, f64), bar: f64) {
    let ratio = forebay / peer.1;
    print(&Figure { bench: "gateway", name, unit, forebay, peer: peer.0, peer_figure: peer.1, ratio, bar, met: ratio <= bar });
}

fn print(figure: &Figure<'_>) {
    println!("{}", serde_json::to_string(figure).unwrap());
}
