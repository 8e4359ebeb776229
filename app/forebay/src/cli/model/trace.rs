//! Flags of `forebay trace`: accesses that others have recorded.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_simulation::Published;

/// What to do with a trace.
#[derive(Subcommand)]
pub(crate) enum TraceCommand {
    /// Convert a published trace to lines of JSON, which `simulate` and `plan replicas` take
    Convert(TraceConvertArgs),
}

#[derive(Args)]
pub(crate) struct TraceConvertArgs {
    /// The format: twitter (cache traces, 2020), cachelib (Meta's key-value caches), alibaba (block traces, 2020) or snia (block
    /// traces of MSR Cambridge)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Published,
    /// The published trace, unpacked; - for the standard input, as in `zstd -dc cluster52.zst | forebay trace convert ..`
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// The trace to write; - for the standard output
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Accesses a second where the published trace has no times, as CacheLib's older ones
    #[arg(long, value_name = "N", default_value_t = 1_000.0)]
    pub(crate) per_second: f64,
    /// Leave out lines that can't be read, and say which; else the first one ends it
    #[arg(long)]
    pub(crate) skip_unreadable: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
