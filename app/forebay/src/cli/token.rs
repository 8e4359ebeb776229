//! Flags of `forebay token`: what a new token allows, where and for how long.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; this is the only time that it is shown
    Add(TokenAddArgs),
    /// List tokens: what each lets its holder do, where, and how long
    Ls {
        /// One JSON object a token
        #[arg(long)]
        json: bool,
    },
    /// End a token, or all of a name: also on connections that stand, within a second
    Rm {
        /// A name, or the id of one of its tokens, as in etl or etl.1
        name: String,
        /// One JSON object a token that was ended
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
#[command(group(ArgGroup::new("role").required(true)))]
pub(crate) struct TokenAddArgs {
    /// Its name: 1 to 64 of a-z 0-9 - _; a second one of the same name is valid beside the first, to take over from it
    pub(crate) name: String,
    /// Lets its holder read
    #[arg(long, group = "role")]
    pub(crate) read: bool,
    /// Lets its holder read, write and delete
    #[arg(long, group = "role")]
    pub(crate) write: bool,
    /// Lets its holder change mounts, pins, tokens and workers as well
    #[arg(long, group = "role")]
    pub(crate) admin: bool,
    /// Only in these mounts; tmp stands for temporary data
    #[arg(long = "mount", value_name = "MOUNT", num_args = 1..)]
    pub(crate) mounts: Vec<String>,
    /// After which it is of no use, as in 30d
    #[arg(long, value_name = "DURATION", value_parser = lasting)]
    pub(crate) expires: Option<Duration>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Days, beside the units that all durations have.
fn lasting(text: &str) -> Result<Duration, String> {
    const DAY_SECS: u64 = 86_400;
    match text.strip_suffix('d').map(|days| days.trim().parse::<u64>()) {
        Some(Ok(days)) if (1..=36_500).contains(&days) => Ok(Duration::from_secs(days * DAY_SECS)),
        Some(_) => Err("write it as in 30d, with 1 to 36500 days".to_string()),
        None => match forebay_types::parse_duration(text) {
            Ok(lasts) if lasts.as_secs() == 0 => Err("a token that ends at once is of no use: write it as in 30d".to_string()),
            lasts => lasts.map_err(|error| error.message().to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lasts_for_a_second_at_least() {
        assert_eq!(lasting("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(lasting("1s"), Ok(Duration::from_secs(1)));
        assert!(["0s", "999ms", "0d", "30", "d"].iter().all(|text| lasting(text).is_err()));
    }
}
