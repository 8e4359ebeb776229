//! What is asked of a file: appending, reading and writing within it, and who may write.

use std::time::Duration;

use crate::namespace::Namespace;
use crate::node::{Appended, File, FileView, Node};
use crate::terms::{BlockRef, DirId, NodeError, NodeResult, NodeType};

impl Namespace {
    /// Makes `writer` (not 0) the file's only writer until `lease` after its last write. `Retry` while another one is.
    /// Returns the file's length.
    pub fn open_writer(&mut self, dir: DirId, name: &str, writer: u64, now: Duration, lease: Duration) -> NodeResult<u64> {
        self.whole(|names| Ok(names.step_file(dir, name, |file| file.take_writer(writer, now, lease))?.len()))
    }

    /// The writer is done; nothing when it is not the file's writer any more.
    pub fn close_writer(&mut self, dir: DirId, name: &str, writer: u64) -> NodeResult<()> {
        self.whole(|names| names.step_file(dir, name, |file| Ok(file.release_writer(writer))).map(drop))
    }

    /// Adds bytes to the end of a file. A `writer` of 0 writes this once.
    pub fn append(
        &mut self,
        dir: DirId,
        name: &str,
        bytes: &[u8],
        writer: u64,
        now: Duration,
        lease: Duration,
    ) -> NodeResult<Appended> {
        let room = self.check_room(bytes.len() as u64);
        if let Some(file) = self.file(dir, name)? {
            self.check_quota(dir, name, file.len() + bytes.len() as u64)?;
        }
        self.whole(|names| {
            let file = names.step_file(dir, name, |file| file.take_writer(writer, now, lease))?;
            if let Some(needs_blocks) = file.needs_blocks(bytes.len()) {
                return Ok(needs_blocks);
            }
            room?;
            let len = names.step_file(dir, name, |file| Ok(file.append(bytes)))?.len();
            names.resized(0, bytes.len() as u64);
            Ok(Appended::Done(len))
        })
    }

    /// Puts blocks to the end of a file that has been that long since they were asked for; the first of them have the
    /// tail's bytes. `Retry` when the file has changed: free the blocks and begin again.
    pub fn append_blocks(&mut self, dir: DirId, name: &str, serial: u64, len: u64, blocks: &[BlockRef]) -> NodeResult<u64> {
        if let Some(file) = self.file(dir, name)?.filter(|file| file.is_still(serial, len)) {
            let more: u64 = blocks.iter().map(|block| u64::from(block.len)).sum();
            self.check_quota(dir, name, len - file.tail.len() as u64 + more)?;
        }
        self.whole(|names| {
            let mut before = 0;
            let file = names.step_file(dir, name, |file| {
                before = file.heap_bytes();
                file.append_blocks(name, serial, len, blocks)
            })?;
            let (len, after) = (file.len(), file.heap_bytes());
            names.resized(before, after);
            Ok(len)
        })
    }

    /// The file of a name that can be changed now; none where there is another node, or none.
    fn file(&self, dir: DirId, name: &str) -> NodeResult<Option<&File>> {
        Ok(if let Some(Node::File(_, file)) = self.open_table(dir)?.find(name) { Some(file) } else { None })
    }

    /// Where a range of a file is; ends at the file's end. `Invalid` when it begins behind that.
    pub fn view(&self, dir: DirId, name: &str, offset: u64, bytes: u64) -> NodeResult<FileView> {
        match self.table(dir)?.find(name) {
            Some(Node::File(_, file)) => file.view(name, offset, bytes),
            Some(other) => Err(other.wrong_type(name, NodeType::File)),
            None => Err(NodeError::not_found(name)),
        }
    }

    /// Writes over what of a range lies in the tail. The range ends at the file's end at the latest. Returns the length.
    /// `Retry` when it is another file than that of a [`FileView`] with this `serial`, or its tail begins elsewhere than at
    /// `tail_at`.
    pub fn write_tail(
        &mut self,
        dir: DirId,
        name: &str,
        (serial, tail_at): (u64, u64),
        offset: u64,
        bytes: &[u8],
    ) -> NodeResult<u64> {
        self.whole(|names| Ok(names.step_file(dir, name, |file| file.write_tail(name, (serial, tail_at), offset, bytes))?.len()))
    }

    /// Checks that `writer` may write at `offset` now, as [`Self::append`] does. Returns the file's length.
    pub fn check_write(
        &mut self,
        dir: DirId,
        name: &str,
        offset: u64,
        writer: u64,
        now: Duration,
        lease: Duration,
    ) -> NodeResult<u64> {
        self.whole(|names| {
            let taken = names.step_file(dir, name, |file| {
                file.check_offset(name, offset)?;
                file.take_writer(writer, now, lease)
            });
            Ok(taken?.len())
        })
    }

    /// Puts a block in another one's place, of the same length. `Retry` when the file has changed.
    pub fn replace_block(
        &mut self,
        dir: DirId,
        name: &str,
        serial: u64,
        index: usize,
        blocks: (BlockRef, BlockRef),
    ) -> NodeResult<()> {
        self.whole(|names| {
            names.step_file(dir, name, |file| file.replace_block(name, serial, index, blocks))?;
            names.step_freed(vec![blocks.0]);
            Ok(())
        })
    }
}
