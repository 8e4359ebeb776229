//! Flags of `forebay shard`, and the pages of conditions and of the operations that its `batch` reads.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay_shard_store::Acknowledged;
use forebay_types::{ByteSize, ForebayPath};

#[derive(Subcommand)]
pub(crate) enum ShardCommand {
    /// Build a shard from a Parquet, CSV or JSON file, or from flat text
    Build(ShardBuildArgs),
    /// Make a dataset of shards in a mount, which workers serve
    Create(ShardCreateArgs),
    /// Take over what has changed of the objects that a dataset follows, now or every so often
    Refresh(ShardRefreshArgs),
    /// Show where the shards of a dataset are, and how they stand
    Status(ShardStatusArgs),
    /// Keep the replicas of a dataset where they are, at a size at least, whatever they are asked
    Pin(ShardPinArgs),
    /// Let the replicas of a dataset go and shrink again
    Unpin(ShardOrderArgs),
    /// Keep the layers of a dataset's replicas as they are
    Freeze(ShardOrderArgs),
    /// Let the layers of a dataset's replicas follow their load again
    Thaw(ShardOrderArgs),
    /// Say when a change of a dataset is acknowledged: when shared storage has it, or when the disks of two workers do
    Ack(ShardAckArgs),
    /// Give up changes that two workers' disks had alone, where neither is there any more
    Forgo(ShardOrderArgs),
    /// Have a dataset have more or fewer shards, while it is asked and changed
    Reshard(ShardReshardArgs),
    /// Print the records of keys
    Get(ShardGetArgs),
    /// Print the keys of the records that meet a condition
    Search(ShardSearchArgs),
    /// Print the keys of all records
    Scan(ShardScanArgs),
    /// Print how many records meet a condition
    Count(ShardCountArgs),
    /// Set how much a shard stores: more of it answers faster
    Tune(ShardTuneArgs),
    /// Put records, given as JSON objects
    Put(ShardPutArgs),
    /// Delete the records of keys
    Delete(ShardDeleteArgs),
    /// Compress what was put and deleted into the shard now
    Merge(ShardPathArgs),
    /// Show what a shard is made of
    Inspect(ShardArgs),
    /// Answer JSON operations, one a line, with one JSON line each
    Batch(ShardBatchArgs),
}

/// What a condition looks like.
const CONDITIONS: &str = "A condition tests columns:
  o_clerk = Clerk#000000951            equal
  o_status in (O, P)                   equal to one of them
  o_comment ^= spec                    begins with (also: prefix)
  o_comment $= requests                ends with (also: suffix)
  o_comment *= requests                has in it (also: contains)
  o_comment ~ \"special.*requests\"      matches a regular expression somewhere (also: regex)
  o_comment i*= Requests               the same in any case: i before = ^= $= *= ~ and their words
  o_totalprice >= 1000                 also <, <=, > and `between V and W`
Tests are joined by `and` and `or`, of which `and` binds first, with `not` and parentheses before them: no test
holds of null, and so `not` does. 1,000 tests at most (each value of a list is one), 32 of them by suffix, what is
in it, regular expression or in any case, and 16 deep in others.
A value is bare up to ` and ` or ` or ` (in parentheses up to their end, in a list to the comma), in quotes
('it''s'), or bytes as x'00ff'. One that begins with = < > or ~ wants quotes. So does a column with a space, a
quote or one of = < > ~ ^ * in its name, and those are double: \"unit price\" > 5.";

/// What a program writes.
const OPERATIONS: &str = "Operations:
  {\"get\": KEY, \"columns\": [\"a\", ..]}        the record as an object, or null; columns may be left out
  {\"search\": CONDITION, \"limit\": N}         the keys, sorted, in an array; limit may be left out
  {\"search\": .., \"after\": KEY}              those above a key
  {\"count\": CONDITION}                       how many
  {\"extract\": OFFSET, \"length\": N}          the bytes of flat text from an offset on, as many as there are of N
  {\"put\": {\"key\": .., \"a\": ..}}             true, once it is durable; the object names the key's column
  {\"delete\": KEY}                            true, once it is durable
  {\"get\": KEY, \"versioned\": true}           the record with its version: {\"record\": .., \"version\": N} (datasets only)
  {\"put\": .., \"if_absent\": true}            only where the key has no record (datasets only)
  {\"put\" | \"delete\": .., \"if_version\": N}  only where the record has this version (datasets only)
Conditions:
  {\"attr\": \"a\", \"eq\" | \"prefix\" | \"suffix\" | \"contains\" | \"regex\": VALUE}
  {\"attr\": \"a\", .., \"ignore_case\": true}     the same in any case
  {\"attr\": \"a\", \"in\": [VALUE, ..]}
  {\"attr\": \"a\", \"from\": V, \"to\": W}          both belong to it; either may be left out
  {\"attr\": \"a\", \"above\": V, \"below\": W}     neither does
  {\"and\" | \"or\": [CONDITION, ..]}
  {\"not\": CONDITION}                         holds of null too
Bytes that are not UTF-8 are {\"base64\": \"..\"}. An operation that fails answers {\"error\": KIND, \"message\": \"..\"},
and the next one is done. The exit code is 0 when all were read.";

#[derive(Args)]
pub(crate) struct ShardBuildArgs {
    /// A file of records: .parquet, .csv, .tsv, .json, .jsonl or .ndjson
    #[arg(value_name = "FILE", required_unless_present = "text")]
    pub(crate) input: Option<PathBuf>,
    /// The column that is the key: integers, text or bytes; the last record of a key counts
    #[arg(long, value_name = "COLUMN", required_unless_present = "text")]
    pub(crate) key: Option<String>,
    /// A file of flat text, to be searched for substrings
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "key", "columns"])]
    pub(crate) text: Option<PathBuf>,
    /// Keep these columns and the key; all without it
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// The shard: a folder that is made
    #[arg(long, value_name = "SHARD")]
    pub(crate) out: PathBuf,
    /// How much to store, as a part of the input: about 0.35 is the least, more answers faster
    #[arg(long, value_name = "RATIO", default_value_t = 0.35, value_parser = ratio)]
    pub(crate) size: f64,
    /// Replace a shard that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// What was built as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShardCreateArgs {
    /// The dataset: a folder of a mount, as in /lake/orders.shards
    pub(crate) dataset: ForebayPath,
    /// What it is made of: files, or objects, patterns ('/lake/orders/*.parquet') and folders of mounts, of the formats of `shard build`
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) from: Vec<String>,
    /// The column that is the key: integers, text or bytes; the last record of a key counts
    #[arg(long, value_name = "COLUMN")]
    pub(crate) key: String,
    /// Keep these columns and the key; all without it
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// How many shards; without it one for about each 128 MiB of the files
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<usize>,
    /// How keys are spread over shards: by a hash, or by ranges of about as many bytes each, of which a condition on the key asks those that it meets
    #[arg(long, value_name = "hash|range", value_enum, default_value_t = By::Hash, hide_possible_values = true)]
    pub(crate) by: By,
    /// How much each replica of a shard stores, as a part of the input: more answers faster
    #[arg(long, value_name = "RATIO,..", value_delimiter = ',', default_value = "0.9,0.5", value_parser = ratio)]
    pub(crate) replicas: Vec<f64>,
    /// Put it in the place of a dataset that is there; who has that one open goes on with it
    #[arg(long)]
    pub(crate) replace: bool,
    /// Follow the objects, which are of the dataset's mount: look so often whether some are new, have changed or are gone
    #[arg(long, value_name = "DURATION", value_parser = refresh_every)]
    pub(crate) refresh: Option<Duration>,
    /// When a change is acknowledged: in shared storage, or on two workers' disks and there within seconds; without it as in the dataset replaced
    #[arg(long, value_name = "storage|two-workers")]
    pub(crate) ack: Option<Acknowledged>,
    /// What was made as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How keys are spread over shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// By a hash of the key.
    Hash,
    /// By ranges of keys.
    Range,
}

#[derive(Args)]
pub(crate) struct ShardRefreshArgs {
    /// The dataset: a folder of a mount
    pub(crate) dataset: ForebayPath,
    /// Have workers do it so often from now on, or not by themselves any more
    #[arg(long, value_name = "DURATION|off", value_parser = every)]
    pub(crate) every: Option<Every>,
    /// What was done as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How often workers refresh a dataset; none where they do not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Every(pub(crate) Option<Duration>);

#[derive(Args)]
pub(crate) struct ShardStatusArgs {
    /// The dataset: a folder of a mount
    pub(crate) dataset: ForebayPath,
    /// JSON objects, one for each shard
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShardPinArgs {
    #[command(flatten)]
    pub(crate) order: ShardOrderArgs,
    /// The least size of each replica, as a part of the input; without it the one that each starts with (`shard create --replicas`)
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) size: Option<f64>,
}

#[derive(Args)]
pub(crate) struct ShardAckArgs {
    #[command(flatten)]
    pub(crate) order: ShardOrderArgs,
    /// When shared storage has it, or when the disks of two workers do
    #[arg(value_name = "storage|two-workers")]
    pub(crate) ack: Acknowledged,
}

/// `shard unpin`, `freeze`, `thaw` and `forgo`.
#[derive(Args)]
pub(crate) struct ShardOrderArgs {
    /// The dataset: a folder of a mount
    pub(crate) dataset: ForebayPath,
    /// What holds from now on, or what was given up, as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(group(clap::ArgGroup::new("to").required(true).args(["shards", "size", "split", "merge"])))]
pub(crate) struct ShardReshardArgs {
    /// The dataset: a folder of a mount
    pub(crate) dataset: ForebayPath,
    /// How many shards it is to have
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u32>,
    /// As many as have about so much input each
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<ByteSize>,
    /// Of ranges of keys: cut this shard, numbered from 0, in two
    #[arg(long, value_name = "SHARD")]
    pub(crate) split: Option<u32>,
    /// Of ranges of keys: make this shard and the next one
    #[arg(long, value_name = "SHARD")]
    pub(crate) merge: Option<u32>,
    /// What it has then as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The shard that a command asks or changes, and how it prints what came of it.
#[derive(Args)]
pub(crate) struct ShardArgs {
    /// The shard: a folder; `get`, `search`, `scan`, `count` and `batch` also take a dataset of a mount, as in /lake/orders.shards
    pub(crate) shard: PathBuf,
    /// JSON objects, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The keys of records.
#[derive(Args)]
pub(crate) struct ShardKeysArgs {
    /// Keys; bytes as x'00ff'
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) keys: Vec<String>,
}

/// The columns to print.
#[derive(Args)]
pub(crate) struct ShardColumnsArgs {
    /// Only these columns; a search or scan prints keys without it, and all columns for `*`
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
}

#[derive(Args)]
pub(crate) struct ShardGetArgs {
    #[command(flatten)]
    pub(crate) common: ShardArgs,
    #[command(flatten)]
    pub(crate) keys: ShardKeysArgs,
    #[command(flatten)]
    pub(crate) columns: ShardColumnsArgs,
}

#[derive(Args)]
#[command(after_long_help = CONDITIONS)]
pub(crate) struct ShardSearchArgs {
    #[command(flatten)]
    pub(crate) common: ShardArgs,
    /// What records have to be; see below with --help
    #[arg(value_name = "CONDITION")]
    pub(crate) condition: String,
    /// At most so many, those of the lowest keys
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Only records of keys above this one: the last key that the search before printed
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) columns: ShardColumnsArgs,
}

#[derive(Args)]
pub(crate) struct ShardScanArgs {
    #[command(flatten)]
    pub(crate) common: ShardArgs,
    /// At most so many, those of the lowest keys
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Only records of keys above this one: the last key that the scan before printed
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) columns: ShardColumnsArgs,
}

#[derive(Args)]
#[command(after_long_help = CONDITIONS)]
pub(crate) struct ShardCountArgs {
    #[command(flatten)]
    pub(crate) common: ShardArgs,
    /// What records have to be; see below with --help. All records without it
    #[arg(value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
}

#[derive(Args)]
pub(crate) struct ShardTuneArgs {
    #[command(flatten)]
    pub(crate) common: ShardArgs,
    /// How much to store, as a part of the input
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) size: f64,
}

#[derive(Args)]
pub(crate) struct ShardPutArgs {
    /// The shard: a folder, or the path of a dataset that is served
    pub(crate) shard: PathBuf,
    /// Records as JSON objects with the shard's columns; those of the standard input, one after the other, without any
    #[arg(value_name = "RECORD")]
    pub(crate) records: Vec<String>,
    /// Only where the key has no record yet (of a dataset that is served)
    #[arg(long, conflicts_with = "if_version")]
    pub(crate) if_absent: bool,
    #[command(flatten)]
    pub(crate) condition: ShardConditionArgs,
}

/// When a record may be changed.
#[derive(Args)]
pub(crate) struct ShardConditionArgs {
    /// Only where the record has this version, as `get` with "versioned" of `shard batch` tells it (of a dataset that is served)
    #[arg(long, value_name = "VERSION")]
    pub(crate) if_version: Option<u64>,
}

#[derive(Args)]
pub(crate) struct ShardDeleteArgs {
    /// The shard: a folder, or the path of a dataset that is served
    pub(crate) shard: PathBuf,
    #[command(flatten)]
    pub(crate) keys: ShardKeysArgs,
    #[command(flatten)]
    pub(crate) condition: ShardConditionArgs,
}

#[derive(Args)]
pub(crate) struct ShardPathArgs {
    /// The shard: a folder, or the path of a dataset that is served
    pub(crate) shard: PathBuf,
}

#[derive(Args)]
#[command(after_long_help = OPERATIONS)]
pub(crate) struct ShardBatchArgs {
    /// The shard or dataset; the operations come from the standard input, or from a second argument
    pub(crate) shard: PathBuf,
    /// A file of operations, one JSON object a line; the standard input without it
    #[arg(value_name = "OPERATIONS")]
    pub(crate) operations: Option<PathBuf>,
}

fn every(text: &str) -> Result<Every, String> {
    if text == "off" { Ok(Every(None)) } else { refresh_every(text).map(|every| Every(Some(every))) }
}

fn refresh_every(text: &str) -> Result<Duration, String> {
    let every = forebay_types::parse_duration(text).map_err(|error| error.to_string())?;
    if every >= Duration::from_secs(1) { Ok(every) } else { Err("a second at least, as in 60s".to_string()) }
}

fn ratio(text: &str) -> Result<f64, String> {
    let number: f64 = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.strip_suffix('x').unwrap_or(text).parse(),
    }
    .map_err(|_| "a part of the input, as in 0.35".to_string())?;
    if number > 0.0 && number <= 16.0 { Ok(number) } else { Err("a part of the input between 0 and 16, as in 0.35".to_string()) }
}
