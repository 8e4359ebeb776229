//! The table of what is measured: programs, and the figures to pull out of the lines that they print.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use forebay_types::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

use crate::Bar;

/// All benches, in the order in which a round runs them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The benches.
    #[serde(rename = "bench")]
    pub benches: Vec<Bench>,
}

/// One program with its arguments; it prints a JSON line a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    /// By which it is named on the command line.
    pub name: String,
    /// The package whose program it is.
    pub package: String,
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What it wants in its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the package needs the query engine, which takes long to compile.
    #[serde(default)]
    pub engine: bool,
    /// When a run is given up.
    #[serde(default = "timeout_secs")]
    pub timeout_secs: u64,
    /// Where a line has the figure, as a JSON pointer.
    #[serde(default = "value_at")]
    pub value_at: String,
    /// Where a line has the peer's.
    #[serde(default = "peer_at")]
    pub peer_at: String,
    /// Its figures.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

fn timeout_secs() -> u64 {
    300
}

fn value_at() -> String {
    "/value".to_owned()
}

fn peer_at() -> String {
    "/peer_value".to_owned()
}

/// One figure of a bench.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// By which it is kept; no two are alike.
    pub name: String,
    /// What pages say that it is.
    pub says: String,
    /// The line that has it: fields by JSON pointer or plain name, and what they must be; `*` stands for anything.
    pub line: BTreeMap<String, String>,
    /// Where the line has it, where that is not the bench's.
    pub value_at: Option<String>,
    /// Where the line has the peer's, where that is not the bench's.
    pub peer_at: Option<String>,
    /// Its unit.
    pub unit: String,
    /// The peer of the same run, where there is one.
    pub peer: Option<String>,
    /// What it has to reach.
    pub bar: Option<Bar>,
    /// Whether the README shows it though its bar is met.
    #[serde(default)]
    pub readme: bool,
    /// The physical limit that the peer is, where it is one, or the program whose figure `limit_at` has.
    pub limit: Option<String>,
    /// Where the line has what the limit's program gave, where that is not the peer.
    pub limit_at: Option<String>,
    /// What was tried to reach the bar; shown while it is missed.
    pub tried: Option<String>,
    /// Which way is better, where no bar says so.
    pub better: Option<Better>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Throughput.
    More,
    /// Time, bytes.
    Less,
}

impl Figure {
    /// Which way is better: what the table says, else what the bar says.
    pub fn better(&self) -> Better {
        let by_bar = if self.bar.as_ref().is_none_or(Bar::wants_more) { Better::More } else { Better::Less };
        self.better.unwrap_or(by_bar)
    }
}

impl Table {
    /// Reads the table.
    ///
    /// # Errors
    /// A file that can't be read, or what [`parse`](Self::parse) refuses.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).context(|| path.display())?;
        Self::parse(&text).map_err(|error| error.context(path.display()))
    }

    /// Takes the text of a table.
    ///
    /// # Errors
    /// What is no table, names that come twice, and bars that nothing can be held to.
    pub fn parse(text: &str) -> Result<Self> {
        let table: Self = toml::from_str(text).map_err(|error| Error::invalid(error.to_string()))?;
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<()> {
        let (mut benches, mut figures) = (BTreeSet::new(), BTreeSet::new());
        for bench in &self.benches {
            if !benches.insert(&bench.name) {
                return Err(Error::invalid(format!("two benches are named {:?}", bench.name)));
            }
            for figure in &bench.figures {
                if !figures.insert(&figure.name) {
                    return Err(Error::invalid(format!("two figures are named {:?}", figure.name)));
                }
                figure.check()?;
            }
        }
        Ok(())
    }

    /// All figures with their benches.
    pub fn figures(&self) -> impl Iterator<Item = (&Bench, &Figure)> {
        self.benches.iter().flat_map(|bench| bench.figures.iter().map(move |figure| (bench, figure)))
    }
}

impl Figure {
    fn check(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::invalid(format!("figure {:?}: {what}", self.name)));
        if self.line.is_empty() {
            return bad("`line` names no field, so that any line would do");
        }
        if self.peer.is_none() && self.bar.as_ref().is_some_and(|bar| bar.of_ratio) {
            return bad("its bar is a ratio, and there is no `peer`");
        }
        if self.peer.is_none() && self.limit_at.is_none() && self.limit.is_some() {
            return bad("the limit is what the peer measures, and there is no `peer` and no `limit_at`");
        }
        if self.limit.is_none() && self.limit_at.is_some() {
            return bad("`limit_at` says where the limit's figure is, and no `limit` what it is of");
        }
        if self.bar.is_none() && self.tried.is_some() {
            return bad("what was tried is told of a bar that is missed, and there is no `bar`");
        }
        Ok(())
    }
}

impl Bench {
    /// As one would type it.
    pub fn command(&self) -> String {
        let words = std::iter::once(self.package.as_str()).chain(self.args.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rest: &str) -> Result<Table> {
        let figure = "[[bench.figure]]\nname = 'f'\nsays = 's'\nunit = 'x'\nline = { what = 'w' }";
        Table::parse(&format!("[[bench]]\nname = 'b'\npackage = 'p'\n{figure}\n{rest}"))
    }

    #[test]
    fn a_limit_has_a_figure_and_what_was_tried_a_bar() {
        for right in ["peer = 'p'\nlimit = 'l'", "limit = 'l'\nlimit_at = '/l'", "bar = '>= 1 x'\ntried = 't'"] {
            assert!(figure(right).is_ok(), "{right}");
        }
        for (wrong, why) in [("limit = 'l'", "no `peer`"), ("limit_at = '/l'", "no `limit`"), ("tried = 't'", "no `bar`")] {
            let error = figure(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
