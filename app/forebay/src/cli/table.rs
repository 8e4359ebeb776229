//! Flags of `forebay table`, with what is to be known of column groups to set them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand)]
pub(crate) enum TableCommand {
    /// Write files once more in another format: Parquet, CSV, JSON or Arrow to a table, and back
    Convert(TableConvertArgs),
    /// Show what a table is made of: schema, column groups, row groups, statistics
    Inspect(TableInspectArgs),
    /// Propose column groups, from the columns that recent queries read together
    Suggest(TableSuggestArgs),
}

/// What `--group` means.
const GROUPS: &str = "Column groups:
  --group \"id,ts\" --group \"*\"     id and ts as rows together, all other columns as rows together
  --group \"*\"                     a row store: quick for whole rows, 3 of 23 columns cost as much as all
  (no --group)                    a column store: each column on its own, scanned without a copy
A column that no group names is on its own. `forebay table suggest` proposes groups.

Paths are those of `forebay sql`: /MOUNT/KEY, s3://BUCKET/KEY, file:///PATH or a local path; files, folders, patterns. The
output is there whole or not at all. Where all paths are local no cluster is needed.";

#[derive(Args)]
#[command(after_help = GROUPS)]
pub(crate) struct TableConvertArgs {
    /// Files, folders and patterns to read, in this order, and the file to write; its name tells its format
    #[arg(value_names = ["IN", "OUT"], num_args = 2.., required = true)]
    pub(crate) paths: Vec<String>,
    /// Columns that stand together, with commas between them; * for all others; may be given several times
    #[arg(long = "group", value_name = "COLUMN,..")]
    pub(crate) groups: Vec<String>,
    /// Rows of a row group of a table: the unit that statistics leave out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) row_group_rows: Option<u32>,
    /// Columns of which each row group has a bloom filter, with commas between them, so that who looks for one of their
    /// values reads few row groups; * for all where it pays; may be given several times. Releases that know no such filters refuse the file
    #[arg(long = "bloom-filter", value_name = "COLUMN,..")]
    pub(crate) bloom_filters: Vec<String>,
    /// How groups of several columns lie: aligned scans faster, packed has not a byte to spare
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) layout: Option<TableLayout>,
    /// What was written as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Layouts of rows.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TableLayout {
    Aligned,
    Packed,
}

#[derive(Args)]
pub(crate) struct TableInspectArgs {
    /// The table: /MOUNT/KEY, s3://BUCKET/KEY, file:///PATH or a local path
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// One JSON object, with every cell and its statistics
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Recent queries are those that `forebay sql` has run on this account and that went well; they are kept in
$XDG_STATE_HOME/forebay/queries (1 MiB at most; delete the file to forget them, and set query-history = false or
FOREBAY_QUERY_HISTORY=false to keep none). Queries that came by Flight SQL or from Python are not among them: give those with
--queries. Relative paths in them are read from the current folder.")]
pub(crate) struct TableSuggestArgs {
    /// What the groups are for: a file, a folder or a pattern
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    /// A file of SQL statements that stand for the workload, instead of the recent queries; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Vec<PathBuf>,
    /// One JSON object a group
    #[arg(long)]
    pub(crate) json: bool,
}
