use std::fmt::Write as _;

use bytes::Bytes;
use forebay_types::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Days of page views, as in the paper.
pub const DAYS: usize = 12;
/// Files a day: hours, gathered.
pub const FILES_A_DAY: usize = 4;
/// Lines of a file.
const LINES: usize = 60_000;

/// The job: which pages that look like this were viewed how often.
pub const SQL: &str =
    "select count(*), sum(views), sum(bytes) from '/lake/views/*' where regexp_like(title, '^[A-M].*(e|o)n_[0-9]+5$')";

/// Page-view counts in the shape of Wikipedia's: project, title, views, bytes.
pub fn file(seed: u64) -> Bytes {
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

/// The same, compressed: little to read and much to do.
pub fn compressed(file: &Bytes) -> Result<Bytes> {
    Ok(zstd::bulk::compress(file, 3)?.into())
}
