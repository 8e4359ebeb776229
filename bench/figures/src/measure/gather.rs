//! A round: every bench once, one after the other, so that what disturbs the machine falls on all of them alike.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use forebay_types::Result;

use super::run::run;
use crate::machine::{Busy, load};
use crate::{Bench, Measured, Point, Programs, Start, pull};

/// Runs each of the benches once and adds what came of it, failures too.
///
/// # Errors
/// Where the machine does not say how busy it is.
pub fn gather(
    root: &Path,
    benches: &[&Bench],
    programs: &Programs,
    round: usize,
    into: &mut Measured,
    mut say: impl FnMut(&Start),
) -> Result<()> {
    for bench in benches {
        let (load, before, began) = (load()?, Busy::now()?, Instant::now());
        let said = programs.of(&bench.package);
        let said = said.and_then(|program| run(program, bench, root));
        let (cpu_secs, others) = Busy::now()?.since(before);
        let start = Start {
            bench: bench.name.clone(),
            round,
            load,
            others_busy: in_thousandths(others),
            secs: in_thousandths(began.elapsed().as_secs_f64()),
            cpu_secs: in_thousandths(cpu_secs),
            error: said.as_ref().err().cloned(),
        };
        say(&start);
        into.starts.push(start);
        note(bench, &said, &mut into.points);
    }
    Ok(())
}

fn in_thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn note(bench: &Bench, said: &std::result::Result<String, String>, points: &mut BTreeMap<String, Vec<Point>>) {
    for figure in &bench.figures {
        let point = match said {
            Ok(output) => pull(bench, figure, output).map_or_else(|error| Point::failed(error.to_string()), Point::of),
            Err(why) => Point::failed(why.clone()),
        };
        points.entry(figure.name.clone()).or_default().push(point);
    }
}
