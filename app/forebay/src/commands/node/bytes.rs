//! `forebay node put`, `append`, `get` and `bag`: those that carry bytes in and out of temporary nodes.

use std::io::Write;

use forebay_client::{NodeErrorKind, NodePlace, NodeReader, Nodes};
use forebay_types::ResultExt;
use tokio::io::AsyncReadExt;

use super::{class, failed, location};
use crate::cli::NodeBytesArgs;
use crate::exit::{Failure, Outcome};
use crate::input;

/// Bytes that are read of the input at once.
const PIECE_BYTES: usize = 1 << 20;

pub(super) async fn put(nodes: &Nodes, args: NodeBytesArgs) -> Outcome {
    let mut value = Vec::new();
    input::open(args.file.as_deref()).await?.read_to_end(&mut value).await.context(|| name(&args))?;
    nodes.put_at(&args.path, value, &place(&args)?).await.map_err(failed)
}

pub(super) async fn append(nodes: &Nodes, args: NodeBytesArgs) -> Outcome {
    let mut input = input::open(args.file.as_deref()).await?;
    nodes.make_file(&args.path, &place(&args)?).await.map_err(failed)?;
    let mut writer = nodes.writer(&args.path).await.map_err(failed)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match input.read(&mut piece).await.context(|| name(&args))? {
            0 => break,
            read => writer.write(&piece[..read]).await.map_err(failed)?,
        }
    }
    writer.finish().await.map_err(failed)?;
    Ok(())
}

/// Prints a value or a file.
pub(super) async fn get(nodes: &Nodes, path: &str) -> Outcome {
    match nodes.get(path).await {
        Ok(value) => std::io::stdout().write_all(&value).map_err(Failure::of_stdout),
        Err(error) if error.kind == NodeErrorKind::WrongType => print(nodes.reader(path, 0).await.map_err(failed)?).await,
        Err(error) => Err(failed(error)),
    }
}

/// Prints all files of a bag.
pub(super) async fn bag(nodes: &Nodes, path: &str) -> Outcome {
    print(nodes.bag(path).await.map_err(failed)?).await
}

async fn print(mut reader: NodeReader) -> Outcome {
    let mut output = std::io::stdout();
    while let Some(bytes) = reader.next().await.map_err(failed)? {
        output.write_all(&bytes).map_err(Failure::of_stdout)?;
    }
    output.flush().map_err(Failure::of_stdout)
}

/// Where its blocks are to lie.
fn place(args: &NodeBytesArgs) -> Outcome<NodePlace> {
    Ok(NodePlace { class: class(args.storage_class.as_deref())?, location: location(args.location.as_deref())? })
}

fn name(args: &NodeBytesArgs) -> String {
    args.file.as_ref().map_or("the standard input".to_string(), |path| path.display().to_string())
}
