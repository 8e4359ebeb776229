//! A namespace with blocks in a map: what a worker does, without tiers and sockets.

use std::collections::HashMap;
use std::time::Duration;

use forebay_nodes::{
    Appended, At, BlockRef, CreateOptions, DirId, Got, INLINE_BYTES_MAX, Namespace, NodeError, NodeErrorKind, NodeResult,
    NodeType, ROOT, Stat, Value, is_inside, split,
};

pub const NOW: Duration = Duration::from_secs(100);
pub const LEASE: Duration = Duration::from_secs(10);

pub struct Store {
    pub names: Namespace,
    pub blocks: HashMap<BlockRef, Vec<u8>>,
}

fn invalid(message: &str) -> NodeError {
    NodeError::new(NodeErrorKind::Invalid, message)
}

impl Store {
    pub fn new(bytes_max: u64) -> Self {
        let mut names = Namespace::new(1, bytes_max);
        names.make_root();
        Self { names, blocks: HashMap::new() }
    }

    fn place<'p>(&self, path: &'p str) -> NodeResult<(DirId, &'p str)> {
        match self.names.walk(ROOT, split(path)?)? {
            At::Here(dir, name) => Ok((dir, name)),
            At::Itself => Err(invalid("/tmp itself")),
            At::Elsewhere(..) => panic!("all is here"),
        }
    }

    fn write_blocks(&mut self, bytes: &[u8]) -> Vec<BlockRef> {
        let chunks = bytes.chunks(50_000).map(|chunk| {
            let block = BlockRef { worker: 1, number: self.names.number(), len: chunk.len() as u32 };
            self.blocks.insert(block, chunk.to_vec());
            block
        });
        chunks.collect()
    }

    /// Drops what nobody has any more; all of it must have been there.
    fn free(&mut self, blocks: impl IntoIterator<Item = BlockRef>) {
        blocks.into_iter().for_each(|block| assert!(self.blocks.remove(&block).is_some(), "freed twice"));
    }

    fn free_left(&mut self) {
        let freed = self.names.take_freed();
        self.free(freed);
    }

    pub fn create(&mut self, path: &str, options: CreateOptions) -> NodeResult<()> {
        let (dir, name) = self.place(path)?;
        let created = self.names.create(dir, name, options);
        self.free_left();
        created
    }

    pub fn stat(&self, path: &str) -> NodeResult<Option<Stat>> {
        if split(path)?.is_empty() {
            return Ok(Some(Stat::of_root()));
        }
        match self.place(path) {
            Ok((dir, name)) => self.names.stat(dir, name),
            Err(error) if matches!(error.kind, NodeErrorKind::NotFound | NodeErrorKind::NotContainer) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn list(&self, path: &str) -> NodeResult<Vec<String>> {
        let (dir, _) = self.names.container(ROOT, split(path)?)?;
        let (mut names, mut after) = (Vec::new(), None::<String>);
        loop {
            let (page, last) = self.names.list(dir, after.as_deref(), 2)?;
            after = page.last().map(|entry| entry.name.clone()).or(after);
            names.extend(page.into_iter().map(|entry| entry.name));
            if last {
                return Ok(names);
            }
        }
    }

    pub fn put(&mut self, path: &str, bytes: &[u8]) -> NodeResult<u64> {
        let (dir, name) = self.place(path)?;
        let value = if bytes.len() > INLINE_BYTES_MAX {
            self.names.check_put(dir, name)?;
            Value::Blocks(self.write_blocks(bytes).into())
        } else {
            Value::from(bytes.to_vec())
        };
        let put = self.names.put(dir, name, value.clone());
        if let (Err(_), Value::Blocks(blocks)) = (&put, value) {
            self.free(blocks);
        }
        self.free_left();
        put
    }

    pub fn get(&self, path: &str) -> NodeResult<Vec<u8>> {
        let (dir, name) = self.place(path)?;
        Ok(match self.names.get(dir, name)? {
            Got::Inline(bytes) => bytes.to_vec(),
            Got::Blocks(blocks) => blocks.iter().flat_map(|block| self.blocks[block].clone()).collect(),
        })
    }

    pub fn append(&mut self, path: &str, bytes: &[u8]) -> NodeResult<u64> {
        let (dir, name) = self.place(path)?;
        match self.names.append(dir, name, bytes, 0, NOW, LEASE)? {
            Appended::Done(len) => Ok(len),
            Appended::NeedsBlocks { serial, len, tail } => {
                let blocks = self.write_blocks(&[&tail, bytes].concat());
                self.names.append_blocks(dir, name, serial, len, &blocks)
            }
        }
    }

    pub fn write(&mut self, path: &str, offset: u64, bytes: &[u8]) -> NodeResult<u64> {
        let (dir, name) = self.place(path)?;
        let len = self.names.check_write(dir, name, offset, 0, NOW, LEASE)?;
        let view = self.names.view(dir, name, offset, bytes.len() as u64)?;
        let (over, on) = bytes.split_at(((len - offset) as usize).min(bytes.len()));
        let (mut index, mut start) = (view.first, view.start);
        for old in view.blocks {
            let mut new = self.blocks[&old].clone();
            for (at, byte) in new.iter_mut().enumerate() {
                if let Some(over) = (start + at as u64).checked_sub(offset).and_then(|at| over.get(at as usize)) {
                    *byte = *over;
                }
            }
            let new = self.write_blocks(&new)[0];
            self.names.replace_block(dir, name, view.serial, index, (old, new))?;
            (index, start) = (index + 1, start + u64::from(old.len));
        }
        self.names.write_tail(dir, name, (view.serial, view.tail_at), offset, over)?;
        self.free_left();
        if on.is_empty() { Ok(len) } else { self.append(path, on) }
    }

    pub fn read(&self, path: &str, offset: u64, bytes: u64) -> NodeResult<Vec<u8>> {
        let (dir, name) = self.place(path)?;
        let view = self.names.view(dir, name, offset, bytes)?;
        let all: Vec<u8> = view.blocks.iter().flat_map(|block| self.blocks[block].clone()).collect();
        let skip = if all.is_empty() { 0 } else { (offset - view.start) as usize };
        let left = bytes.min(view.len - offset) as usize - view.tail.len();
        Ok([&all[skip..][..left.min(all.len() - skip)], &view.tail].concat())
    }

    pub fn rename(&mut self, path: &str, to: &str) -> NodeResult<()> {
        let from = self.place(path)?;
        let stat = self.names.stat(from.0, from.1)?.ok_or_else(|| NodeError::new(NodeErrorKind::NotFound, path))?;
        if stat.kind.is_container() && is_inside(split(to)?, split(path)?) {
            return Err(invalid("into itself"));
        }
        let renamed = match split(to)? {
            "" => self.names.rename_to(from, (ROOT, from.1)),
            _ => self.place(to).and_then(|to| self.names.rename(from, to)),
        };
        self.free_left();
        renamed
    }

    pub fn delete(&mut self, path: &str, recursive: bool) -> NodeResult<()> {
        let (dir, name) = self.place(path)?;
        let removed = self.names.delete(dir, name, recursive)?;
        assert!(removed.elsewhere.is_empty());
        self.free(removed.blocks);
        Ok(())
    }

    pub fn bag(&self, path: &str) -> NodeResult<Vec<u8>> {
        match self.stat(path)? {
            None => Err(self.list(path).unwrap_err()),
            Some(stat) if stat.kind != NodeType::Bag => Err(NodeError::new(NodeErrorKind::WrongType, path)),
            Some(_) => {
                let mut all = Vec::new();
                for name in self.list(path)? {
                    let path = format!("{path}/{name}");
                    all.extend(match self.stat(&path)?.unwrap() {
                        Stat { kind: NodeType::Bag, .. } => self.bag(&path)?,
                        stat => self.read(&path, 0, stat.bytes)?,
                    });
                }
                Ok(all)
            }
        }
    }
}
