//! Measures MixApart in simulation: `mixapart bars [NAME..]` prints a JSON line a bar, `mixapart figures FOLDER` draws.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use forebay_simulation::{MIXAPART_BARS, mixapart_bars, mixapart_figures};
use forebay_types::{Error, Result, ResultExt};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mixapart: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let all = || MIXAPART_BARS.iter().map(|(name, _)| (*name).to_string()).collect();
    match words.split_first() {
        Some((first, names)) if first == "bars" => print(&if names.is_empty() { all() } else { names.to_vec() }),
        Some((first, [folder])) if first == "figures" => draw(Path::new(folder)),
        _ => Err(Error::invalid("say what to do: mixapart bars [NAME..] or mixapart figures FOLDER")),
    }
}

fn print(names: &[String]) -> Result<()> {
    let mut out = io::stdout().lock();
    for name in names {
        for bar in mixapart_bars(name)? {
            let line = serde_json::to_string(&bar).map_err(|error| Error::internal(error.to_string()))?;
            writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::from)?;
        }
    }
    Ok(())
}

fn draw(folder: &Path) -> Result<()> {
    for (name, svg) in mixapart_figures() {
        let file = folder.join(format!("{name}.svg"));
        std::fs::write(&file, svg).map_err(Error::from).context(|| format!("can't write {}", file.display()))?;
    }
    Ok(())
}
