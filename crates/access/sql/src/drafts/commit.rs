//! The end of a statement whose files executors have drafted: all of them become visible, or none stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use forebay_client::{Client, Draft, Drafts};
use forebay_types::Error;
use futures::future::join_all;
use futures::{TryStreamExt, stream};

use super::rows::heard;
use super::writing::Writing;
use crate::error::{ended_early, external};

/// Files that are made visible at once.
const AT_ONCE: usize = 16;

/// The one row of a statement, which says how many rows it has written: it comes when all of its files are there.
pub(crate) fn committed(
    told: SendableRecordBatchStream,
    writing: &Writing,
    client: &Client,
    drafts: Drafts,
    schema: SchemaRef,
) -> SendableRecordBatchStream {
    let (client, single, columns) = (client.clone(), writing.single, Arc::clone(&schema));
    let count = async move {
        let (all, count) = match written(told).await {
            Ok(written) => written,
            Err(error) => {
                drafts.end().await;
                return Err(error);
            }
        };
        // Goes on when who asked goes away: half of the files would be left.
        let committing = forebay_runtime::spawn(async move {
            let made = commit(&drafts, &all).await;
            // Back when nothing is being made any more that was waited for too long.
            drafts.end().await;
            let Err((tried, error)) = made else { return Ok(()) };
            assert!((1..=all.len()).contains(&tried), "{tried} of {} files were to be made", all.len());
            if !single {
                remove(&client, &all[..tried]).await;
            }
            Err(error)
        });
        committing.await.map_err(|_| external(ended_early()))?.map_err(external)?;
        Ok(RecordBatch::try_new(columns, vec![Arc::new(UInt64Array::from(vec![count]))])?)
    };
    Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(count)))
}

/// The drafts that tasks have told of, and the number of their rows.
async fn written(mut told: SendableRecordBatchStream) -> Result<(Vec<Draft>, u64), DataFusionError> {
    let (mut all, mut count) = (Vec::new(), 0u64);
    while let Some(batch) = told.try_next().await? {
        count = count.saturating_add(heard(&batch, &mut all)?);
    }
    let paths = all.iter().map(|draft| &draft.path).collect::<BTreeSet<_>>().len();
    if paths == all.len() { Ok((all, count)) } else { internal_err!("two tasks have written the same file") }
}

/// Makes drafts objects. Where one can't be, how many were tried, which are to be removed again; but not one whose name the statement
/// says: there may have been something before.
async fn commit(drafts: &Drafts, all: &[Draft]) -> Result<(), (usize, Error)> {
    for (turn, some) in all.chunks(AT_ONCE).enumerate() {
        let made = join_all(some.iter().map(|draft| drafts.commit(draft))).await;
        if let Some(error) = made.into_iter().find_map(|made| made.err()) {
            return Err((turn * AT_ONCE + some.len(), error));
        }
    }
    Ok(())
}

/// Removes files whose names are this statement's own, whether they were made or not.
async fn remove(client: &Client, files: &[Draft]) {
    for some in files.chunks(AT_ONCE) {
        let removed = join_all(some.iter().map(|draft| client.delete(&draft.path))).await;
        for (draft, error) in some.iter().zip(removed).filter_map(|(draft, removed)| Some((draft, removed.err()?))) {
            tracing::warn!(path = %draft.path, %error, "a file of a statement that failed is left: remove it");
        }
    }
}
