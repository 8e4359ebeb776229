//! `forebay trace convert`: a published trace as one of ours.

use std::error::Error as _;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::path::PathBuf;

use forebay_simulation::{Conversion, Converted, convert};
use forebay_types::{Error, Result, ResultExt};
use serde::Serialize;

use super::is_dash;
use crate::cli::TraceConvertArgs;
use crate::exit::{Failure, Outcome};
use crate::output::show;
use crate::progress;

#[derive(Serialize)]
struct Done {
    lines: u64,
    accesses: u64,
    left_out: u64,
}

pub(super) fn run(args: &TraceConvertArgs) -> Outcome {
    if !(args.per_second > 0.0 && args.per_second.is_finite()) {
        return Err(Failure::Usage(format!("{} accesses a second are none: give --per-second above 0", args.per_second)));
    }
    let converted = if is_dash(&args.output) { to_stdout(args)? } else { to_file(args)? };
    for line in &converted.told {
        eprintln!("forebay: left out: {line}");
    }
    if converted.left_out > converted.told.len() as u64 {
        eprintln!("forebay: left out: {} lines in all", converted.left_out);
    }
    if is_dash(&args.output) {
        return Ok(());
    }
    let Converted { lines, accesses, left_out, .. } = converted;
    show(args.json, &Done { lines, accesses, left_out }, |output| {
        output.line(&format!("{accesses} accesses in {lines} lines; {left_out} lines left out"))
    })
}

fn to_stdout(args: &TraceConvertArgs) -> Outcome<Converted> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    converted(args, &mut stdout).map_err(|error| if is_gone(&error) { Failure::ReaderGone } else { Failure::Failed(error) })
}

/// What is not whole has another name.
fn to_file(args: &TraceConvertArgs) -> Result<Converted> {
    let part = PathBuf::from([args.output.as_os_str(), ".part".as_ref()].into_iter().collect::<OsString>());
    let whole = || -> Result<Converted> {
        let file = File::create(&part).context(|| format!("can't write {}", part.display()))?;
        let converted = converted(args, &mut BufWriter::new(file))?;
        fs::rename(&part, &args.output).context(|| format!("can't write {}", args.output.display()))?;
        Ok(converted)
    };
    whole().inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

fn converted(args: &TraceConvertArgs, to: &mut impl io::Write) -> Result<Converted> {
    let name = args.input.display();
    let conversion = Conversion { from: args.from, per_second: args.per_second, leaves_out: args.skip_unreadable };
    let (input, bytes): (Box<dyn Read>, u64) = match is_dash(&args.input) {
        true => (Box::new(io::stdin()), 0),
        false => {
            let file = File::open(&args.input).context(|| format!("can't read {name}"))?;
            let bytes = file.metadata().map_or(0, |about| about.len());
            (Box::new(file), bytes)
        }
    };
    let bar = progress::bytes(&format!("convert {name}"), bytes);
    let converted = convert(&conversion, BufReader::with_capacity(1 << 20, bar.wrap_read(input)), to);
    bar.finish_and_clear();
    converted.context(|| name.to_string())
}

/// Whether nobody reads any more what is written.
fn is_gone(error: &Error) -> bool {
    let of_system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    of_system.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
