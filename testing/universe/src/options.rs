//! What the program is asked.

use clap::Parser;

use crate::world::Plan;

/// Runs worlds by their seeds; a line of JSON for each. Fails when one of them does.
#[derive(Clone, Debug, Parser)]
#[command(name = "forebay-universe")]
pub(crate) struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many worlds.
    #[arg(long, default_value_t = 1)]
    pub(crate) seeds: u64,
    /// How long faults and load go on in each, in simulated seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..=3600))]
    pub(crate) seconds: u64,
    /// Calls of clients in each ten simulated seconds, about.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(10..=1000))]
    pub(crate) ops: u64,
    /// Worlds have a second coordinator, which stands by, and crashes of whichever leads.
    #[arg(long)]
    pub(crate) standby: bool,
    /// Clients of worlds also change, search, merge and refresh datasets of shards, and give them others.
    #[arg(long)]
    pub(crate) shards: bool,
    /// Clients of worlds also ask queries, which two schedulers, of which one stands by, give to executors; with crashes of all of these.
    #[arg(long)]
    pub(crate) queries: bool,
    /// Worlds at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) jobs: u64,
    /// Writes what happens to the standard error.
    #[arg(long)]
    pub(crate) trace: bool,
    /// Leaves failed worlds as they are, with all of their faults.
    #[arg(long)]
    pub(crate) as_it_is: bool,
    /// Puts a defect back, which worlds are to find.
    #[cfg(feature = "planted")]
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(forebay_runtime::Defect::ALL.map(|(name, _)| name)))]
    pub(crate) planted: Option<String>,
    /// Stops at the first world that fails.
    #[arg(long)]
    pub(crate) until_one_fails: bool,
    /// Writes what the worlds come to together into docs/resilience.md, after each of them.
    #[cfg_attr(feature = "planted", arg(conflicts_with = "planted"))]
    #[arg(long, conflicts_with = "without")]
    pub(crate) write: bool,
    /// Runs this one world in this process.
    #[arg(long, hide = true)]
    pub(crate) world: Option<u64>,
    /// Leaves out the faults of these places.
    #[arg(long, value_delimiter = ',')]
    pub(crate) without: Vec<usize>,
}

impl Options {
    /// The plan of a seed, with all of its faults.
    pub(crate) fn plan(&self, seed: u64) -> Plan {
        let plan = Plan::of(seed, self.seconds * 1000).with_ops(self.ops);
        let plan = if self.standby { plan.with_standby() } else { plan };
        let plan = if self.shards { plan.with_shards() } else { plan };
        let plan = plan.with_gateway();
        if self.queries { plan.with_queries() } else { plan }
    }
}
