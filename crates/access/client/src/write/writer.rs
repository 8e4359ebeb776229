//! Writing an object piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_trace::{current, within};
use forebay_types::{Error, ForebayPath, ObjectInfo, Result};
use tokio::task::JoinSet;

use super::Writes;
use super::parts::{PartBuffer, PartUpload, abandon};
use super::put::ONE_MESSAGE_BYTES;

/// Parts of one object under way at once; with the part that gathers, this bounds a writer's memory.
const PARTS_AT_ONCE: usize = 4;

/// Writes one object piece by piece. What is not finished leaves nothing behind; dropping it gives it up.
pub struct Writer {
    writes: Arc<Writes>,
    path: ForebayPath,
    buffer: PartBuffer,
    upload: Option<Arc<PartUpload>>,
    /// Parts handed over so far.
    parts: u32,
    sending: JoinSet<Result<()>>,
}

impl Writes {
    /// Writes an object; back when shared storage has it.
    pub(crate) async fn put(self: &Arc<Self>, path: &ForebayPath, bytes: Bytes, condition: PutCondition) -> Result<ObjectInfo> {
        if bytes.len() <= ONE_MESSAGE_BYTES {
            return self.put_whole(path, vec![bytes], condition).await;
        }
        let mut writer = self.writer(path).await?;
        writer.write(bytes).await?;
        writer.finish_if(condition).await
    }

    /// Writes an object piece by piece.
    pub(crate) async fn writer(self: &Arc<Self>, path: &ForebayPath) -> Result<Writer> {
        self.writable(path).await?;
        Ok(Writer::new(Arc::clone(self), path.clone()))
    }
}

impl Writer {
    fn new(writes: Arc<Writes>, path: ForebayPath) -> Self {
        Self { writes, path, buffer: PartBuffer::default(), upload: None, parts: 0, sending: JoinSet::new() }
    }

    /// The next bytes of the object. Waits while too many are under way. After an error the object can't be finished.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.buffer.push(bytes);
        // What fits in one message is written with one request.
        if self.buffer.len() <= ONE_MESSAGE_BYTES && self.upload.is_none() {
            return Ok(());
        }
        let upload = match &self.upload {
            Some(upload) => Arc::clone(upload),
            None => Arc::clone(self.upload.insert(Arc::new(PartUpload::begin(&self.writes, &self.path).await?))),
        };
        while self.buffer.len() >= upload.part_bytes {
            self.send(&upload, upload.part_bytes).await?;
        }
        Ok(())
    }

    /// Makes what was written the object; back when shared storage has it.
    pub async fn finish(self) -> Result<ObjectInfo> {
        self.finish_if(PutCondition::Any).await
    }

    /// As [`Self::finish`], if the condition holds; else `Conflict`.
    pub async fn finish_if(mut self, condition: PutCondition) -> Result<ObjectInfo> {
        let Some(upload) = self.upload.clone() else {
            let payload = self.buffer.take(usize::MAX);
            return self.writes.put_whole(&self.path, payload, condition).await;
        };
        while self.buffer.len() > 0 {
            self.send(&upload, upload.part_bytes).await?;
        }
        while !self.sending.is_empty() {
            self.one_sent().await?;
        }
        assert!(self.parts > 0, "{}: an upload without parts is completed", self.path);
        let committed = upload.commit(self.parts, condition).await;
        // A commit ends the upload, also when it fails.
        self.upload = None;
        committed
    }

    /// Sends so many bytes, or all when there are fewer, as the next part, which are kept as long as this waits: who stops waiting loses none.
    async fn send(&mut self, upload: &Arc<PartUpload>, bytes: usize) -> Result<()> {
        while self.sending.len() >= PARTS_AT_ONCE {
            self.one_sent().await?;
        }
        let payload = self.buffer.take(bytes);
        let (upload, part) = (Arc::clone(upload), self.parts);
        self.sending.spawn(within(current(), async move { upload.send(part, payload).await }));
        assert!(self.sending.len() <= PARTS_AT_ONCE, "{}: {} parts are under way at once", self.path, self.sending.len());
        self.parts += 1;
        Ok(())
    }

    async fn one_sent(&mut self) -> Result<()> {
        match self.sending.join_next().await {
            None => Ok(()),
            Some(Ok(sent)) => sent,
            Some(Err(error)) => Err(Error::closed(format!("{}: the writer's runtime ends: {error}", self.path))),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            abandon(upload);
        }
    }
}

forebay_types::shown!(Writer: path, parts);
