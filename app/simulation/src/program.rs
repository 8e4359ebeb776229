//! What the programs of this crate do: `bars [NAME..]` prints a JSON line a bar, `figures FOLDER [NAME..]` draws, and writes what is drawn as
//! JSON beside it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use forebay_chart::{Bars, Chart};
use forebay_types::{Error, Result, ResultExt};
use serde::Serialize;

/// A figure with what it shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Picture {
    /// Lines over two axes.
    Chart(Chart),
    /// Bars in rows.
    Bars(Bars),
}

impl Picture {
    fn svg(&self) -> String {
        match self {
            Self::Chart(chart) => chart.svg(),
            Self::Bars(bars) => bars.svg(),
        }
    }
}

impl From<Chart> for Picture {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<Bars> for Picture {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

/// Names of bars or of figures, with what each is about.
type Named<'a> = &'a [(&'a str, &'a str)];

/// Does what the command line of the program `name` says, with its bars and its figures by name.
pub fn program<B: Serialize>(
    name: &str,
    (bars, bar): (Named<'_>, impl Fn(&str) -> Result<Vec<B>>),
    (figures, figure): (Named<'_>, impl Fn(&str) -> Result<Picture>),
) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["bars", names @ ..] => print(&chosen(names, bars), bar),
        ["figures", folder, names @ ..] => pictures(Path::new(folder), names, figures, figure),
        _ => Err(Error::invalid(format!("say what to do: {name} bars [NAME..] or {name} figures FOLDER [NAME..]"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Draws figures by name into a folder, all that there are where none is named, and writes what is drawn as JSON beside each.
pub fn pictures(folder: &Path, names: &[&str], all: Named<'_>, figure: impl Fn(&str) -> Result<Picture>) -> Result<()> {
    draw(folder, &chosen(names, all), figure)
}

/// These names, or all that there are.
fn chosen<'a>(names: &[&'a str], all: Named<'a>) -> Vec<&'a str> {
    if names.is_empty() { all.iter().map(|(name, _)| *name).collect() } else { names.to_vec() }
}

/// What to say of a figure that there is not.
pub(crate) fn no_figure(name: &str, all: Named<'_>) -> Error {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    Error::invalid(format!("{name:?} is no figure: use {}", names.join(", ")))
}

fn print<B: Serialize>(names: &[&str], bars: impl Fn(&str) -> Result<Vec<B>>) -> Result<()> {
    let mut out = io::stdout().lock();
    for name in names {
        for bar in bars(name)? {
            let line = json(&bar)?;
            writeln!(out, "{line}").and_then(|()| out.flush())?;
        }
    }
    Ok(())
}

fn draw(folder: &Path, names: &[&str], figure: impl Fn(&str) -> Result<Picture>) -> Result<()> {
    for name in names {
        let picture = figure(name)?;
        for (ending, text) in [("svg", picture.svg()), ("json", format!("{}\n", json(&picture)?))] {
            let file = folder.join(format!("{name}.{ending}"));
            fs::write(&file, text).context(|| format!("can't write {}", file.display()))?;
        }
    }
    Ok(())
}

fn json(what: &impl Serialize) -> Result<String> {
    serde_json::to_string(what).map_err(|error| Error::internal(error.to_string()))
}
