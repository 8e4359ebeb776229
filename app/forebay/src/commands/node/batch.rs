//! `forebay node batch`: a line of JSON in, a line out, so that programs of any language use temporary nodes.

use forebay_client::Nodes;

use crate::cli::NodeBatchArgs;
use crate::exit::Outcome;
use crate::input::Operations;

/// No operation is longer.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Answers operations line by line, each as soon as it is done.
pub(super) async fn run(nodes: &Nodes, args: NodeBatchArgs) -> Outcome {
    let mut operations = Operations::open(args.operations.as_deref(), LINE_BYTES_MAX).await?;
    while let Some(operation) = operations.next().await? {
        let answer = nodes.answer_json(operation).await;
        operations.answer(&answer)?;
    }
    Ok(())
}
