//! The files that show figures: which they are, writing them, and whether they say what the record says.

use std::path::Path;

use forebay_types::{Result, ResultExt};

use crate::{Checkout, Record, Section, Table, limits_section, list_section, readme_section};

type Body = fn(&Record, &str) -> String;

/// Page, section, what is in it, and the way from there to the checkout's root.
const PAGES: [(&str, Section, Body, &str); 3] = [
    ("README.md", Section::FIGURES, readme_section, ""),
    ("docs/benchmarks.md", Section::FIGURES, list_section, "../"),
    ("docs/limits.md", Section::LIMITS, limits_section, "../"),
];

/// Writes the record and all pages that show it.
///
/// # Errors
/// A file that can't be read or written, or a page without its markers.
pub fn write(checkout: &Checkout, record: &Record) -> Result<()> {
    replace(&checkout.record(), &record.text())?;
    for (path, section, body, to) in PAGES {
        let path = checkout.file(path);
        replace(&path, &written(&path, section, &body(record, to))?)?;
    }
    Ok(())
}

/// What is not as it follows from the rounds in the record and from the table; a line each, none when all is well.
///
/// # Errors
/// A file that can't be read, a record that is none, or a page without its markers.
pub fn differing(checkout: &Checkout, table: &Table) -> Result<Vec<String>> {
    let text = read(&checkout.record())?;
    let record = Record::parse(&text)?.follow(table);
    let mut found = Vec::new();
    if record.text() != text {
        found.push("bench/figures.json is not what follows from its rounds and from bench/figures.toml".to_owned());
    }
    for (path, section, body, to) in PAGES {
        let file = checkout.file(path);
        if written(&file, section, &body(&record, to))? != read(&file)? {
            found.push(format!("{path} does not say what bench/figures.json says"));
        }
    }
    Ok(found)
}

fn written(path: &Path, section: Section, body: &str) -> Result<String> {
    section.write(&read(path)?, body).map_err(|error| error.context(path.display()))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).context(|| path.display().to_string())
}

/// Whole or not at all.
fn replace(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path)).context(|| path.display().to_string())
}
