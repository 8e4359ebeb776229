//! The demo's side of its S3 server: starts that process, asks it, and ends it.

use std::path::Path;
use std::process::Stdio;

use forebay_types::{Error, Result, ResultExt, format_duration};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use super::serve::{Ask, Counted};
use crate::cli::DemoArgs;
use crate::program;

/// The S3 server, a process of its own that ends with this one.
pub(crate) struct Server {
    /// Its URL.
    pub(super) endpoint: String,
    pipes: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
    _child: Child,
}

impl Server {
    /// Starts it with an empty bucket in `folder`, behind the demo's link.
    pub(crate) async fn start(folder: &Path, args: &DemoArgs) -> Result<Self> {
        let mut child = Command::from(program::again()?)
            .arg("demo-s3-server")
            .arg("--folder")
            .arg(folder)
            .args(["--bandwidth", &args.bandwidth.to_string(), "--latency", &format_duration(args.latency)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context(|| "can't start the S3 server")?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::internal("the S3 server has no pipes"));
        };
        let mut lines = BufReader::new(stdout).lines();
        let endpoint = next(&mut lines).await?;
        Ok(Self { endpoint, pipes: Mutex::new((stdin, lines)), _child: child })
    }

    /// Takes all files below a folder as objects, past the link.
    pub(crate) async fn load(&self, folder: &Path) -> Result<()> {
        self.ask(&Ask::Load(folder.display().to_string())).await.map(|_| ())
    }

    /// What it did since it started.
    pub(crate) async fn count(&self) -> Result<Counted> {
        self.ask(&Ask::Count).await
    }

    async fn ask(&self, ask: &Ask) -> Result<Counted> {
        let (stdin, lines) = &mut *self.pipes.lock().await;
        let mut line = serde_json::to_string(ask).map_err(|error| Error::internal(error.to_string()))?;
        line.push('\n');
        stdin.write_all(line.as_bytes()).await.context(|| "the S3 server is gone")?;
        let answer = next(lines).await?;
        serde_json::from_str(&answer).map_err(|error| Error::internal(format!("the S3 server answers {answer:?}: {error}")))
    }
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    let line = lines.next_line().await.context(|| "the S3 server is gone")?;
    line.ok_or_else(|| Error::internal("the S3 server ended; what it said is above"))
}
