//! Flags of `forebay demo`, and of the S3 server that it starts as a process of its own.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use forebay_types::{BitRate, ByteSize, parse_duration};

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Folder for the data and the reports
    #[arg(long, default_value = "forebay-demo", value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// TPC-H scale factor; answers are checked at 1
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,
    /// Queries to run, as in 1,3,6 or 1-10 [default: all 22]
    #[arg(long, default_value = "1-22", value_parser = queries)]
    pub(crate) queries: Queries,
    /// Bandwidth of the link to the S3 server
    #[arg(long, default_value = "400Mbit", value_name = "RATE")]
    pub(crate) bandwidth: BitRate,
    /// Time that each request takes on top
    #[arg(long, default_value = "10ms", value_parser = parse_duration, value_name = "DURATION")]
    pub(crate) latency: Duration,
    /// Capacity of Forebay's DRAM tier; room for all of the data by default
    #[arg(long, value_name = "SIZE")]
    pub(crate) dram: Option<ByteSize>,
    /// How often warm and local are run, in turns; each query counts with its median [default: 3, fewer on a slow machine]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=25), value_name = "COUNT")]
    pub(crate) rounds: Option<u32>,
    /// The three floors of each query as well
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print report.json instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// The demo's S3 server.
#[derive(Args)]
pub(crate) struct DemoServerArgs {
    /// Folder of the buckets
    #[arg(long)]
    pub(crate) folder: PathBuf,
    /// Bandwidth of the link
    #[arg(long)]
    pub(crate) bandwidth: Option<BitRate>,
    /// Time that each request takes on top
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    pub(crate) latency: Duration,
}

/// Numbers of queries, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Queries(pub(crate) Vec<usize>);

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    if (0.001..=100.0).contains(&scale) { Ok(scale) } else { Err("from 0.001 to 100".to_string()) }
}

fn queries(text: &str) -> Result<Queries, String> {
    let wrong = || format!("{text:?} names no queries from 1 to 22: write 1,3,6 or 1-10");
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) =
            (first.trim().parse().map_err(|_| wrong())?, last.trim().parse().map_err(|_| wrong())?);
        if first < 1 || last > 22 || first > last {
            return Err(wrong());
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Queries(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_numbers_and_ranges() {
        assert_eq!(queries("6,1-3"), Ok(Queries(vec![1, 2, 3, 6])));
        assert!(queries("0").is_err() && queries("3-1").is_err() && queries("23").is_err() && queries("x").is_err());
    }
}
