//! One large file of a node, written and read in requests of 1 MB, for the bars of memory and of disk.

use std::time::Instant;

use bytes::Bytes;
use forebay_client::{CreateOptions, Nodes};

/// Bytes of the file, and of a request.
pub const BYTES: usize = 512 << 20;
pub const REQUEST: usize = 1 << 20;

const PATH: &str = "/tmp/f";

/// A file of a node that is written and read from its beginning to its end.
pub struct Sequential<'a> {
    nodes: &'a Nodes,
    piece: Bytes,
}

impl<'a> Sequential<'a> {
    pub fn new(nodes: &'a Nodes) -> Self {
        Self { nodes, piece: Bytes::from(vec![7; REQUEST]) }
    }

    /// Makes the file; GB/s.
    pub async fn write(&self, options: CreateOptions) -> f64 {
        self.nodes.create(PATH, options).await.unwrap();
        let began = Instant::now();
        let mut writer = self.nodes.writer(PATH).await.unwrap();
        for _ in 0..BYTES / REQUEST {
            writer.write_bytes(self.piece.clone()).await.unwrap();
        }
        assert_eq!(writer.finish().await.unwrap(), BYTES as u64);
        gbytes(BYTES, began)
    }

    /// Hands each piece of it on; GB/s.
    pub async fn read(&self, mut to: impl FnMut(&[u8])) -> f64 {
        let began = Instant::now();
        let mut reader = self.nodes.reader(PATH, 0).await.unwrap();
        let mut read = 0;
        while let Some(bytes) = reader.next().await.unwrap() {
            to(&bytes);
            read += bytes.len();
        }
        assert_eq!(read, BYTES);
        gbytes(BYTES, began)
    }

    /// A range of it.
    pub async fn range(&self, offset: usize, bytes: usize) {
        assert_eq!(self.nodes.read(PATH, offset as u64, bytes as u64).await.unwrap().len(), bytes);
    }

    pub async fn delete(&self) {
        self.nodes.delete(PATH, false).await.unwrap();
    }
}

pub fn gbytes(bytes: usize, began: Instant) -> f64 {
    bytes as f64 / began.elapsed().as_secs_f64() / 1e9
}
