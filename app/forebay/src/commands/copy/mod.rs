//! `cp`: between this machine, mounts and temporary data, and from mount to mount.

mod job;
mod place;
mod target;
mod transfer;

use forebay_client::Client;
use forebay_types::Error;
use serde::Serialize;

use crate::cli::CpArgs;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::progress;
use job::Job;
use place::Place;

#[derive(Serialize)]
struct Copied {
    from: String,
    to: String,
    bytes: u64,
}

pub(crate) async fn run(client: &Client, args: CpArgs) -> Outcome {
    let target = Place::of(client, &args.target)?;
    let sources = args.sources.iter().map(|source| Place::of(client, source)).collect::<Outcome<Vec<_>>>()?;
    if sources.iter().any(|source| matches!(source, Place::Standard)) && sources.len() > 1 {
        return Err(Failure::Usage("- stands for the standard input and can't be copied along with others".to_string()));
    }
    if args.json && matches!(target, Place::Standard) {
        return Err(Failure::Usage("--json and a copy to the standard output can't both be written there".to_string()));
    }
    let outside = |place: &Place| matches!(place, Place::Standard | Place::Local(_));
    if let Some(source) = sources.iter().find(|source| outside(source) && outside(&target)) {
        return Err(Failure::Usage(format!(
            "neither {source} nor {target} is below a mount: `forebay mount ls` lists the mounts, and temporary data is forebay://tmp/.. here"
        )));
    }
    let jobs = job::plan(client, &sources, &target, args.recursive).await?;
    let total = jobs.iter().filter_map(|job| job.bytes).sum();
    let bar = progress::bytes("cp", total);
    let mut output = Output::new(args.json);
    let mut kept = Vec::new();
    for Job { from, to, bytes: expected } in jobs {
        let before = bar.position();
        let copied = transfer::copy(client, &from, &to, args.no_clobber, &bar, &mut output).await;
        let copied = copied.inspect_err(|_| bar.finish_and_clear())?;
        bar.set_position(before + copied.or(expected).unwrap_or_default());
        match copied {
            None => kept.push(to),
            Some(bytes) if args.json => output.record(&Copied { from: from.to_string(), to: to.to_string(), bytes })?,
            Some(_) => {}
        }
    }
    bar.finish_and_clear();
    output.finish()?;
    match kept.as_slice() {
        [] => Ok(()),
        [one] => Err(Error::conflict(format!("{one} is there already and --no-clobber keeps it")).into()),
        [first, ..] => {
            let all = kept.len();
            Err(Error::conflict(format!("{all} files are there already and --no-clobber keeps them, {first} among them")).into())
        }
    }
}
