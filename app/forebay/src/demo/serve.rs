//! The process of the demo's S3 server: obeys its parent's lines, and counts bytes, requests and CPU time.

use std::io::{BufRead, Write};
use std::path::Path;

use forebay_demo::{S3Server, S3Settings};
use forebay_types::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::cpu;
use crate::cli::DemoServerArgs;
use crate::exit::{Failure, Outcome};

/// The bucket that everything is in.
pub(crate) const BUCKET: &str = "tpch";

/// What the demo asks its S3 server, a JSON line each; answered by [`Counted`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Takes all files below a folder as objects, past the link.
    Load(String),
    /// Counts.
    Count,
}

/// What the server did since it started.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Bytes of objects that it sent.
    pub(crate) bytes: u64,
    /// Requests that it answered.
    pub(crate) requests: u64,
    /// CPU seconds of its process.
    pub(crate) cpu_secs: f64,
}

/// Runs the demo's S3 server: prints its URL, then answers until the standard input ends.
pub(crate) async fn serve(args: DemoServerArgs) -> Outcome {
    let server = S3Server::start(S3Settings {
        folder: args.folder,
        bandwidth: args.bandwidth.map(forebay_types::BitRate::bytes_per_sec),
        latency: args.latency,
        buckets: vec![BUCKET.to_string()],
        ..S3Settings::default()
    })?;
    let mut stdout = std::io::stdout().lock();
    let mut say = |text: String| writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_stdout);
    say(server.endpoint())?;
    for line in std::io::stdin().lock().lines() {
        let line = line.context(|| "the standard input")?;
        let ask: Ask = serde_json::from_str(&line).map_err(|error| Error::invalid(format!("{line:?}: {error}")))?;
        if let Ask::Load(folder) = ask {
            load(&server, Path::new(&folder), "")?;
        }
        let counters = server.counters();
        let counted = Counted { bytes: counters.bytes_out, requests: counters.requests(), cpu_secs: cpu::of_this_process() };
        say(serde_json::to_string(&counted).map_err(|error| Error::internal(error.to_string()))?)?;
    }
    Ok(())
}

fn load(server: &S3Server, folder: &Path, below: &str) -> Result<()> {
    for entry in std::fs::read_dir(folder).context(|| folder.display())? {
        let entry = entry.context(|| folder.display())?;
        let (path, key) = (entry.path(), format!("{below}{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            load(server, &path, &format!("{key}/"))?;
        } else if key.ends_with(".parquet") {
            let bytes = std::fs::read(&path).context(|| path.display())?;
            server.put(BUCKET, &key, &bytes)?;
        }
    }
    Ok(())
}
