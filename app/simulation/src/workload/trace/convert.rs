//! A published trace as one of ours, line by line.

use std::io::{BufRead, Write};

use forebay_types::{Result, ResultExt};

use super::lines::Lines;
use super::published::{Parser, Published};

/// Lines that can't be read which are told, of those that are left out.
const TOLD_MAX: usize = 10;

/// How to convert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversion {
    /// What is read.
    pub from: Published,
    /// Accesses a second where the trace has no times.
    pub per_second: f64,
    /// Lines that can't be read are left out, instead of being its end.
    pub leaves_out: bool,
}

/// What was converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Lines that are written.
    pub lines: u64,
    /// Accesses that these stand for.
    pub accesses: u64,
    /// Lines that were left out.
    pub left_out: u64,
    /// What the first of these were, and why.
    pub told: Vec<String>,
}

/// Reads a published trace and writes one of ours, in the memory of a line. `Invalid` names the line that can't be read.
pub fn convert(conversion: &Conversion, from: impl BufRead, to: &mut impl Write) -> Result<Converted> {
    let (mut lines, mut parser) = (Lines::new(from), Parser::new(conversion.from, conversion.per_second));
    let mut converted = Converted::default();
    while let Some((number, text)) = lines.take_line()? {
        if matches!(text, Ok("")) {
            continue;
        }
        match text.and_then(|line| parser.access(number, line)).context(|| format!("line {number}")) {
            Ok(None) => {}
            Ok(Some(access)) => {
                writeln!(to, "{}", access.line()?)?;
                converted.lines += 1;
                converted.accesses += u64::from(access.times);
            }
            Err(error) if conversion.leaves_out => {
                converted.left_out += 1;
                if converted.told.len() < TOLD_MAX {
                    converted.told.push(error.message().to_string());
                }
            }
            Err(error) => return Err(error),
        }
    }
    to.flush()?;
    Ok(converted)
}
