//! What the programs of this crate do: `bars [NAME..]` prints a JSON line a bar, `figures FOLDER` draws.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use forebay_types::{Error, Result, ResultExt};
use serde::Serialize;

/// Does what the command line of the program `name` says; `all` are the names of its bars, and `figures` gives names and SVGs.
pub fn program<B: Serialize>(
    name: &str,
    all: &[(&str, &str)],
    bars: impl Fn(&str) -> Result<Vec<B>>,
    figures: impl Fn() -> Result<Vec<(&'static str, String)>>,
) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, names)) if first == "bars" => {
            let all = all.iter().map(|(name, _)| *name);
            let named = names.iter().map(String::as_str);
            print(if names.is_empty() { all.collect() } else { named.collect() }, bars)
        }
        Some((first, [folder])) if first == "figures" => figures().and_then(|figures| draw(Path::new(folder), figures)),
        _ => Err(Error::invalid(format!("say what to do: {name} bars [NAME..] or {name} figures FOLDER"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print<B: Serialize>(names: Vec<&str>, bars: impl Fn(&str) -> Result<Vec<B>>) -> Result<()> {
    let mut out = io::stdout().lock();
    for name in names {
        for bar in bars(name)? {
            let line = serde_json::to_string(&bar).map_err(|error| Error::internal(error.to_string()))?;
            writeln!(out, "{line}").and_then(|()| out.flush())?;
        }
    }
    Ok(())
}

fn draw(folder: &Path, figures: Vec<(&str, String)>) -> Result<()> {
    for (name, svg) in figures {
        let file = folder.join(format!("{name}.svg"));
        std::fs::write(&file, svg).context(|| format!("can't write {}", file.display()))?;
    }
    Ok(())
}
