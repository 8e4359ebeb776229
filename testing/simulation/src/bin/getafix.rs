//! Measures Getafix in simulation: `getafix bars [NAME..]` prints a JSON line a bar, `getafix figures FOLDER` draws.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use forebay_simulation::{BARS, bars, figures};
use forebay_types::{Error, Result, ResultExt};

/// Runs with different seeds that a figure is the middle of.
const SEEDS: u64 = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("getafix: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let all = || BARS.iter().map(|(name, _)| (*name).to_string()).collect();
    match words.split_first() {
        Some((first, names)) if first == "bars" => print(&if names.is_empty() { all() } else { names.to_vec() }),
        Some((first, [folder])) if first == "figures" => draw(Path::new(folder)),
        _ => Err(Error::invalid("say what to do: getafix bars [NAME..] or getafix figures FOLDER")),
    }
}

fn print(names: &[String]) -> Result<()> {
    let mut out = io::stdout().lock();
    for name in names {
        for bar in bars(name, SEEDS)? {
            let line = serde_json::to_string(&bar).map_err(|error| Error::internal(error.to_string()))?;
            writeln!(out, "{line}").map_err(Error::from)?;
        }
    }
    Ok(())
}

fn draw(folder: &Path) -> Result<()> {
    for (name, chart) in figures(SEEDS)? {
        let file = folder.join(format!("{name}.svg"));
        std::fs::write(&file, chart.svg()).map_err(Error::from).context(|| format!("can't write {}", file.display()))?;
    }
    Ok(())
}
