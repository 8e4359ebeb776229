//! Copies one file of `cp`, so that its target is whole or as it was before.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use forebay_client::Client;
use forebay_protocol::{PutCondition, RangeSpec};
use forebay_types::{Error, ErrorKind, ForebayPath, ResultExt};
use futures::{StreamExt, stream};
use indicatif::ProgressBar;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::place::Place;
use crate::commands::cat;
use crate::exit::{Failure, Outcome};
use crate::input;
use crate::output::Output;

/// Bytes read at once from a file or the standard input.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes asked for at once when copying from mount to mount, and how many such requests are on their way.
const READ_BYTES: u64 = 8 << 20;
const AHEAD: usize = 3;

/// Copies one file and gives its size; none where `no_clobber` keeps what is there. A target is complete or, when this fails, as it
/// was before.
pub(crate) async fn copy(
    client: &Client,
    from: &Place,
    to: &Place,
    no_clobber: bool,
    bar: &ProgressBar,
    output: &mut Output,
) -> Outcome<Option<u64>> {
    // What is seen to be there is not read to the end first; what comes meanwhile the condition holds off.
    if no_clobber && is_there(client, to).await? {
        return Ok(None);
    }
    let condition = if no_clobber { PutCondition::Absent } else { PutCondition::Any };
    match (from, to) {
        (Place::Standard, Place::Mounted(path)) => upload(client, input::standard_input()?, path, condition, bar).await,
        (Place::Local(file), Place::Mounted(path)) => upload(client, input::open(Some(file)).await?, path, condition, bar).await,
        (Place::Mounted(source), Place::Mounted(target)) => across(client, source, target, condition, bar).await,
        (Place::Mounted(path), Place::Standard) => {
            let bytes = cat::write(client, path, RangeSpec::From { start: 0 }, |bytes| {
                bar.inc(bytes.len() as u64);
                output.bytes(bytes)
            });
            bytes.await.map(Some)
        }
        (Place::Mounted(path), Place::Local(file)) => {
            let mut draft = Draft::begin(file, no_clobber)?;
            let bytes = cat::write(client, path, RangeSpec::From { start: 0 }, |bytes| {
                bar.inc(bytes.len() as u64);
                draft.write(bytes)
            });
            let bytes = bytes.await?;
            Ok(draft.commit()?.then_some(bytes))
        }
        (Place::Standard | Place::Local(_), Place::Standard | Place::Local(_)) => {
            Err(Failure::Usage(format!("neither {from} nor {to} is below a mount: `forebay mount ls` lists the mounts")))
        }
    }
}

async fn is_there(client: &Client, place: &Place) -> Outcome<bool> {
    match place {
        Place::Standard => Ok(false),
        Place::Local(file) => Ok(file.exists()),
        Place::Mounted(path) => match client.open(path).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        },
    }
}

/// Streams to an object in bounded memory.
async fn upload(
    client: &Client,
    mut source: impl AsyncRead + Unpin,
    path: &ForebayPath,
    condition: PutCondition,
    bar: &ProgressBar,
) -> Outcome<Option<u64>> {
    let mut writer = client.writer(path).await?;
    let mut total = 0;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = (&mut source).take(CHUNK_BYTES as u64).read_to_end(&mut chunk).await.context(|| format!("read for {path}"))?;
        if read == 0 {
            break;
        }
        total += read as u64;
        writer.write(Bytes::from(chunk)).await?;
        bar.inc(read as u64);
    }
    let keeps = condition == PutCondition::Absent;
    written(writer.finish_if(condition).await, total, keeps)
}

/// Streams from one object to another.
async fn across(
    client: &Client,
    from: &ForebayPath,
    to: &ForebayPath,
    condition: PutCondition,
    bar: &ProgressBar,
) -> Outcome<Option<u64>> {
    let version = client.open(from).await?.version;
    let operation = client.operation();
    let mut writer = client.writer(to).await?;
    let mut chunks = stream::iter((0..version.size).step_by(READ_BYTES as usize))
        .map(|start| client.read(operation, &version, start..version.size.min(start + READ_BYTES)))
        .buffered(AHEAD);
    while let Some(bytes) = chunks.next().await {
        let bytes = bytes?;
        bar.inc(bytes.len() as u64);
        writer.write(bytes).await?;
    }
    drop(chunks);
    let keeps = condition == PutCondition::Absent;
    written(writer.finish_if(condition).await, version.size, keeps)
}

/// None where what is there is kept.
fn written<T>(finished: Result<T, Error>, bytes: u64, keeps: bool) -> Outcome<Option<u64>> {
    match finished {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if keeps && error.kind() == ErrorKind::Conflict => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A local file that takes its name when it is complete, and is gone when it never is.
struct Draft {
    file: File,
    draft: PathBuf,
    target: PathBuf,
    no_clobber: bool,
    committed: bool,
}

impl Draft {
    fn begin(target: &Path, no_clobber: bool) -> Outcome<Self> {
        if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).context(|| folder.display())?;
        }
        // Devices and pipes are written to as they are; they must never be replaced.
        if fs::metadata(target).is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(target).context(|| target.display())?;
            return Ok(Self { file, draft: PathBuf::new(), target: target.to_path_buf(), no_clobber, committed: true });
        }
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let draft = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::create(&draft).context(|| draft.display())?;
        Ok(Self { file, draft, target: target.to_path_buf(), no_clobber, committed: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome {
        Ok(self.file.write_all(bytes).context(|| self.target.display())?)
    }

    /// False where `no_clobber` keeps what came meanwhile.
    fn commit(mut self) -> Outcome<bool> {
        if self.committed {
            return Ok(true);
        }
        if self.no_clobber {
            // A link fails when the name is taken meanwhile, where a rename would replace.
            return match fs::hard_link(&self.draft, &self.target) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
                linked => {
                    linked.context(|| self.target.display())?;
                    Ok(true)
                }
            };
        }
        fs::rename(&self.draft, &self.target).context(|| self.target.display())?;
        self.committed = true;
        Ok(true)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done about a draft that can't be removed.
            let _ = fs::remove_file(&self.draft);
        }
    }
}
