//! Where one file of `cp` goes: written beside its place, or in parts, until it is whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use forebay_client::{
    Client, NODE_VALUE_BYTES_MAX, NodeCondition, NodeDraft, NodeError, NodeErrorKind, NodeResult, NodeType, Nodes, Writer,
};
use forebay_protocol::PutCondition;
use forebay_types::{Error, ErrorKind, ResultExt};

use super::place::Place;
use crate::exit::Outcome;
use crate::output::Output;

/// What takes the bytes of a copy. One that is dropped before it is finished leaves its place as it was.
pub(super) enum Target<'a> {
    Standard(&'a mut Output),
    Local(Draft),
    Mounted { writer: Box<Writer>, no_clobber: bool },
    Temporary { object: Box<Temporary>, no_clobber: bool },
}

impl<'a> Target<'a> {
    pub(super) async fn begin(client: &Client, to: &Place, no_clobber: bool, output: &'a mut Output) -> Outcome<Self> {
        Ok(match to {
            Place::Standard => Self::Standard(output),
            Place::Local(file) => Self::Local(Draft::begin(file, no_clobber)?),
            Place::Mounted(path) => Self::Mounted { writer: Box::new(client.writer(path).await?), no_clobber },
            Place::Temporary(path) => {
                let object = Temporary { nodes: client.nodes(), path: path.to_string(), first: BytesMut::new(), file: None };
                Self::Temporary { object: Box::new(object), no_clobber }
            }
        })
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Outcome {
        match self {
            Self::Standard(output) => output.bytes(&bytes),
            Self::Local(draft) => draft.write(&bytes),
            Self::Mounted { writer, .. } => Ok(writer.write(bytes).await?),
            Self::Temporary { object, .. } => Ok(object.write(bytes).await.map_err(Error::from)?),
        }
    }

    /// It is whole. False where what is there is kept.
    pub(super) async fn finish(self) -> Outcome<bool> {
        let (placed, keeps) = match self {
            Self::Standard(_) => return Ok(true),
            Self::Local(draft) => return draft.commit(),
            Self::Mounted { writer, no_clobber } => {
                let condition = if no_clobber { PutCondition::Absent } else { PutCondition::Any };
                (writer.finish_if(condition).await.map(drop), no_clobber)
            }
            Self::Temporary { object, no_clobber } => {
                let condition = if no_clobber { NodeCondition::Absent } else { NodeCondition::Any };
                (object.finish(condition).await.map_err(Error::from), no_clobber)
            }
        };
        match placed {
            Ok(()) => Ok(true),
            Err(error) if keeps && error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// An object of temporary data: a value while it is small, else a file.
pub(super) struct Temporary {
    nodes: Nodes,
    path: String,
    first: BytesMut,
    file: Option<NodeDraft>,
}

impl Temporary {
    async fn write(&mut self, bytes: Bytes) -> NodeResult<()> {
        if let Some(file) = &mut self.file {
            return file.write(bytes).await;
        }
        if self.first.len() + bytes.len() <= NODE_VALUE_BYTES_MAX {
            self.first.extend_from_slice(&bytes);
            return Ok(());
        }
        let file = self.file.insert(draft(&self.nodes, &self.path, NodeType::File).await?);
        file.write(std::mem::take(&mut self.first).freeze()).await?;
        file.write(bytes).await
    }

    async fn finish(self, condition: NodeCondition) -> NodeResult<()> {
        let mut draft = match self.file {
            Some(file) => file,
            None => value(&self.nodes, &self.path, self.first.freeze()).await?,
        };
        let placed = async {
            draft.finish().await?;
            draft.take_place(condition).await
        };
        let placed = placed.await;
        if placed.is_err() {
            draft.discard().await;
        }
        placed
    }
}

/// A small object, in a container that holds values, else files.
async fn value(nodes: &Nodes, path: &str, value: Bytes) -> NodeResult<NodeDraft> {
    let wrong = |error: &NodeError| error.kind == NodeErrorKind::WrongType;
    let mut draft = match draft(nodes, path, NodeType::KeyValue).await {
        Err(error) if wrong(&error) => draft(nodes, path, NodeType::File).await?,
        draft => draft?,
    };
    draft.write(value).await?;
    Ok(draft)
}

async fn draft(nodes: &Nodes, path: &str, kind: NodeType) -> NodeResult<NodeDraft> {
    nodes.make_folders(path).await?;
    nodes.draft(path, kind).await
}

/// A local file that takes its name when it is complete, and is gone when it never is.
pub(super) struct Draft {
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
