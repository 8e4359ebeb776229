//! `forebay top`: workers, mounts, segments, transfers and jobs as they are now, again and again.
//!
//! Owns: what is asked for it, what happened between two looks, and how both are shown: drawn on a terminal ([`screen`], [`draw`]), as
//! text where none is, as JSON for programs.
//!
//! Never does: decide by anything that it shows.
//!
//! Start with [`run`].

#[cfg(feature = "top")]
mod draw;
mod history;
mod panes;
mod record;
mod sample;
#[cfg(feature = "top")]
mod screen;
#[cfg(test)]
mod tests;
mod text;
#[cfg(feature = "top")]
mod view;

use std::io::{IsTerminal, stdin};
use std::time::Duration;

use forebay_client::Client;

use crate::cli::TopArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;
use history::History;
use record::Record;
use sample::Asker;

/// Clears the terminal and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the cluster until it is told to stop; once where no terminal is, so many times, or for ever, as JSON.
pub(crate) async fn run(config: &Config, client: &Client, args: TopArgs) -> Outcome {
    let asker = Asker::new(config, client);
    if args.json {
        return records(&asker, args.interval, args.count).await;
    }
    let is_watched = Output::is_terminal() && stdin().is_terminal();
    #[cfg(feature = "top")]
    if is_watched {
        return screen::run(&asker, args.interval).await;
    }
    lines(&asker, args.interval, is_watched).await
}

/// A JSON object a look.
async fn records(asker: &Asker<'_>, interval: Duration, count: Option<u64>) -> Outcome {
    let (mut output, mut history, mut left) = (Output::new(true), History::default(), count);
    while left != Some(0) {
        let sample = asker.sample().await?;
        history.note(&sample);
        output.record(&Record::of(&sample, &history))?;
        output.finish()?;
        left = left.map(|left| left - 1);
        if left != Some(0) {
            forebay_runtime::time::sleep(interval).await;
        }
    }
    Ok(())
}

/// Tables as text: again and again where they are watched.
async fn lines(asker: &Asker<'_>, interval: Duration, is_watched: bool) -> Outcome {
    let (mut output, mut history) = (Output::new(false), History::default());
    loop {
        let sample = asker.sample().await?;
        history.note(&sample);
        if is_watched {
            output.bytes(CLEAR.as_bytes())?;
        }
        for line in text::lines(&sample, &history) {
            output.line(&line)?;
        }
        output.finish()?;
        if !is_watched {
            return Ok(());
        }
        forebay_runtime::time::sleep(interval).await;
    }
}
