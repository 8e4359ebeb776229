//! Whether the metadata database answers, for whoever asks whether the coordinator can serve.

use std::sync::Arc;
use std::time::Duration;

use forebay_metadata::Metadata;
use forebay_types::Error;
use tracing::{info, warn};

use super::shared::Shared;
use super::writer::MEMBERS;

/// Time between two looks: who asks gets the last one's result, so that a flood of questions reaches no database.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Looks for ever.
pub(crate) async fn look(metadata: Metadata, shared: Arc<Shared>) -> Error {
    loop {
        let answers = answers(&metadata).await;
        match (shared.saw_metadata(answers), answers) {
            (true, false) => warn!(database = metadata.shown(), "metadata database does not answer"),
            (false, true) => info!(database = metadata.shown(), "metadata database answers again"),
            _ => {}
        }
        forebay_runtime::time::sleep(LOOK_EVERY).await;
    }
}

async fn answers(metadata: &Metadata) -> bool {
    matches!(forebay_runtime::time::timeout(ANSWER_WITHIN, metadata.checkpoint(MEMBERS)).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_that_is_closed_does_not_answer() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = Metadata::open(&format!("sqlite:{}", folder.path().join("metadata.db").display())).await.unwrap();
        assert!(answers(&metadata).await);
        metadata.close().await;
        assert!(!answers(&metadata).await);
    }
}
