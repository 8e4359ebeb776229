//! Flags of the commands on paths below mounts, from `ls`, `cat` and `cp` to `load`, `pin` and `free`.

use std::str::FromStr;

use clap::Args;
use forebay_protocol::RangeSpec;
use forebay_types::{Error, ForebayPath};

#[derive(Args)]
pub(crate) struct LsArgs {
    /// A path, as in /lake/sales/; without one, the mounts
    pub(crate) path: Option<String>,
    /// Size, time of change and name
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Everything below, not just the next level
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// One JSON object an entry
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct StatArgs {
    /// Paths of objects
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// One JSON object a path
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CatArgs {
    /// Paths of objects
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// Which bytes: FIRST-LAST (both inclusive, as in HTTP), FIRST- or -COUNT (the last ones)
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) range: Option<Range>,
}

#[derive(Args)]
pub(crate) struct CpArgs {
    /// What to copy: paths below mounts (/lake/x), temporary data (forebay://tmp/x), local files (/tmp/x too), or - for the standard input
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Where to: a path below a mount, temporary data, a local file or folder, or - for the standard output
    pub(crate) target: String,
    /// Folders with everything below
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Don't replace what is there: all else is copied, and the exit code says that something was kept
    #[arg(short, long)]
    pub(crate) no_clobber: bool,
    /// One JSON object a file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RmArgs {
    /// Paths of objects
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// Everything below the paths
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// What isn't there is no error
    #[arg(short, long)]
    pub(crate) force: bool,
    /// A path may be a whole mount: all objects below it are deleted
    #[arg(long, requires = "recursive")]
    pub(crate) yes: bool,
    /// One JSON object an object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// An object
    #[arg(value_name = "PATH")]
    pub(crate) path: ForebayPath,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DuArgs {
    /// Paths; without one, all mounts
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// One JSON object a path
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LoadArgs {
    /// Paths; everything below them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// Only these columns; of Parquet and table files nothing else is read then
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Only row groups and pages that may have rows of which this is true, as SQL says it: "dt >= '2026-01-01'"
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// One JSON object a path
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct PinArgs {
    /// Paths; everything below them
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// Lift the pins at exactly these paths
    #[arg(long, requires = "paths")]
    pub(crate) remove: bool,
    /// Don't bring the data into the tiers now; it stays there once it is read
    #[arg(long, conflicts_with = "remove")]
    pub(crate) no_load: bool,
    /// One JSON object a path
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct PathsArgs {
    /// Paths; everything below them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<ForebayPath>,
    /// One JSON object a path
    #[arg(long)]
    pub(crate) json: bool,
}

/// A range of bytes as HTTP writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range(pub(crate) RangeSpec);

impl FromStr for Range {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid(format!("{text:?} is no range: write FIRST-LAST, FIRST- or -COUNT, as in 0-1023"));
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        Ok(Self(match (first, last) {
            ("", count) => RangeSpec::Suffix { len: number(count)? },
            (first, "") => RangeSpec::From { start: number(first)? },
            (first, last) => {
                let (start, last) = (number(first)?, number(last)?);
                let len = last.checked_sub(start).and_then(|less| less.checked_add(1)).ok_or_else(wrong)?;
                RangeSpec::Bounded { start, len }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_http_ranges() {
        let range = |text: &str| text.parse::<Range>().map(|range| range.0);
        assert_eq!(range("0-1023").unwrap(), RangeSpec::Bounded { start: 0, len: 1024 });
        assert_eq!(range("5-").unwrap(), RangeSpec::From { start: 5 });
        assert_eq!(range("-7").unwrap(), RangeSpec::Suffix { len: 7 });
        for wrong in ["", "5", "9-8", "a-b", "-", "0-18446744073709551615"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
