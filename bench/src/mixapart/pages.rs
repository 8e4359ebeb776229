//! The data of MixApart's workload, made like Wikipedia's page views, and the one job over it.

use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use forebay_types::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Files of a set: one an hour, of twelve days.
pub const FILES: usize = 288;
/// Of a smaller set: eight a day.
pub const FILES_FEW: usize = 96;
/// Lines of a file.
const LINES: usize = 300_000;

/// What keeps the job busy.
#[derive(Clone, Copy, PartialEq)]
pub enum Work {
    /// Plain files: it waits for input.
    Io,
    /// Files compressed with gzip: it waits for processors.
    Cpu,
}

impl Work {
    /// The name of a set's file.
    pub fn key(self, set: &str, ix: usize) -> String {
        let end = if self == Work::Cpu { ".gz" } else { "" };
        format!("{set}/part-{ix:03}.csv{end}")
    }

    /// A file of a set.
    pub fn file(self, seed: u64) -> Result<Bytes> {
        let text = file(seed);
        if self == Work::Io {
            return Ok(text);
        }
        let mut file = GzEncoder::new(Vec::new(), Compression::fast());
        file.write_all(&text)?;
        Ok(file.finish()?.into())
    }

    /// The table that the job reads: the files of a set.
    pub fn table(self, set: &str) -> String {
        let compression = if self == Work::Cpu { ", 'format.compression' 'gzip'" } else { "" };
        format!(
            "create external table if not exists pages_{set} (project text, title text, views bigint, bytes bigint) \
             stored as csv location '/lake/{set}/' options ('format.has_header' 'true'{compression})"
        )
    }
}

/// The job: how often were pages of a set viewed whose titles look like this.
pub fn job(set: &str) -> String {
    format!("select count(*), sum(views), sum(bytes) from pages_{set} where regexp_like(title, '^[A-M].*(e|o)n_[0-9]+1$')")
}

/// Page-view counts in the shape of Wikipedia's: project, title, views, bytes; about 12 MB.
fn file(seed: u64) -> Bytes {
    let mut random = StdRng::seed_from_u64(seed);
    let mut text = String::with_capacity(LINES * 48);
    text.push_str("project,title,views,bytes\n");
    for _ in 0..LINES {
        let project = ["en", "de", "fr", "ja", "commons.m", "es", "pt", "ru"][random.random_range(0..8)];
        let words = random.random_range(1..4);
        let mut title = String::new();
        for _ in 0..words {
            for at in 0..random.random_range(3..9) {
                let letter = (b'a' + random.random_range(0..26)) as char;
                title.push(if at == 0 { letter.to_ascii_uppercase() } else { letter });
            }
            title.push('_');
        }
        let views: u32 = 1 + (1.0 / (random.random::<f64>() + 0.001)) as u32;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{project},{title}{},{views},{}", random.random_range(0..100_000), u64::from(views) * 12_345);
    }
    text.into()
}
