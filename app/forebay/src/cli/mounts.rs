//! Flags of `forebay mount`, among them one for each option of a mount, left as it is where not given.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay_types::{BitRate, ByteSize, Error, HotForm, MountName, Validate, parse_duration};

/// What to do with mounts.
#[derive(Subcommand)]
pub(crate) enum MountCommand {
    /// Bind a name to a URL of shared storage
    Add(MountAddArgs),
    /// Change a mount's options, from now on
    Set(MountSetArgs),
    /// Remove mounts; shared storage keeps its data
    Rm {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<MountName>,
    },
    /// List mounts
    Ls {
        /// One JSON object a mount
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct MountAddArgs {
    /// 3 to 63 lower-case letters, digits, '-' and '.'
    pub(crate) name: MountName,
    /// s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, file:///FOLDER, or a folder's path
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) flags: MountFlags,
    /// The mount as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct MountSetArgs {
    /// The mount
    pub(crate) name: MountName,
    #[command(flatten)]
    pub(crate) flags: MountFlags,
    /// The mount as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of a mount; what isn't given stays as it is.
#[derive(Args)]
pub(crate) struct MountFlags {
    /// The service's URL where it isn't the cloud's own, as in http://127.0.0.1:9000
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Region that requests are signed for [default: that of AWS_REGION or of the profile, else us-east-1]
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// Profile of ~/.aws that has the credentials; else those of the environment, of the default profile, or of the machine
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Don't sign requests
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) anonymous: Option<bool>,
    /// The bucket stands in the host name instead of the path
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) virtual_host: Option<bool>,
    /// Refuse writes
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) read_only: Option<bool>,
    /// When an open asks whether an object has changed: always, immutable or ttl:DURATION [default: ttl:60s]
    #[arg(long, value_name = "RULE")]
    pub(crate) validate: Option<Validate>,
    /// Bound on the traffic from this storage, all workers and clients together, as in 1Gbit; or none
    #[arg(long, value_name = "RATE", value_parser = given::<BitRate>)]
    pub(crate) bandwidth: Option<Given<BitRate>>,
    /// What may be taken at once above the bound, as in 1MiB; or none [default: 20 ms of the bound, 1MiB at least]
    #[arg(long, value_name = "SIZE", value_parser = given::<ByteSize>)]
    pub(crate) burst: Option<Given<ByteSize>>,
    /// How often the mount is listed for new and changed objects, as in 30s; or none
    #[arg(long, value_name = "DURATION", value_parser = given_duration)]
    pub(crate) discover: Option<Given<Duration>>,
    /// Bring new objects, written through Forebay or discovered, to one random worker at once
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) eager: Option<bool>,
    /// Workers, on different hosts, that hold what is in use, at least; or none [default: 1, and 2 below a pin]
    #[arg(long, value_name = "COUNT", value_parser = given_count)]
    pub(crate) replicas: Option<Given<u32>>,
    /// The same of what is young, where that is more, with --for: as in --replicas-young 2 --for 7d; or none
    #[arg(long, value_name = "COUNT", value_parser = given_count)]
    pub(crate) replicas_young: Option<Given<u32>>,
    /// How long data is young, from the end of the day or hour that its names tell, as in dt=2026-11-20; else from when it came
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "replicas_young")]
    pub(crate) young_for: Option<Duration>,
    /// How files that are read again and again are kept: table (popular columns decoded, where that pays) or raw [default: raw]
    #[arg(long, value_name = "FORM")]
    pub(crate) hot_form: Option<HotForm>,
}

/// The value of an option that can be taken back with `none`.
#[derive(Clone, Copy)]
pub(crate) struct Given<T>(pub(crate) Option<T>);

pub(super) fn given<T: FromStr<Err = Error>>(text: &str) -> Result<Given<T>, Error> {
    if text == "none" { Ok(Given(None)) } else { text.parse().map(|value| Given(Some(value))) }
}

fn given_duration(text: &str) -> Result<Given<Duration>, Error> {
    if text == "none" { Ok(Given(None)) } else { parse_duration(text).map(|value| Given(Some(value))) }
}

fn given_count(text: &str) -> Result<Given<u32>, Error> {
    let count = text.parse().ok().filter(|count| (1..=100).contains(count));
    match (text, count) {
        ("none", _) => Ok(Given(None)),
        (_, Some(count)) => Ok(Given(Some(count))),
        _ => Err(Error::invalid(format!("{text:?} is no number of workers: write 1 to 100, or none"))),
    }
}
