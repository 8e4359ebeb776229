//! Keeps a panic of a foreign decoder from ending more than its statement, and names the files that may be damaged.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use forebay_types::{Error, Result};
use futures::FutureExt;

use crate::error::said;
use crate::stores::Seen;

/// Files that a message names.
const NAMED_MAX: usize = 3;

/// Runs a part of the engine whose decoders of foreign files may panic at a damaged one: that ends the statement, not the
/// process or the connection.
pub(crate) async fn caught<T>(seen: &Seen, part: impl Future<Output = T>) -> Result<T> {
    // What panicked is not used again: the statement ends.
    AssertUnwindSafe(part).catch_unwind().await.map_err(|panic| told(seen, panic.as_ref()))
}

fn told(seen: &Seen, panic: &(dyn Any + Send)) -> Error {
    let (files, more) = seen.named(NAMED_MAX);
    let files = match (files.is_empty(), more) {
        (true, _) => "it had read no file".to_string(),
        (false, 0) => format!("it had read {}, which may be damaged", files.join(", ")),
        (false, more) => format!("it had read {} and {more} more, one of which may be damaged", files.join(", ")),
    };
    Error::internal(format!("the engine gave up ({}): {files}", said(panic)))
}

#[cfg(test)]
mod tests {
    use object_store::ObjectMeta;
    use object_store::path::Path;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_that_names_what_was_read() {
        let seen = Seen::default();
        assert_eq!(caught(&seen, async { 7 }).await.unwrap(), 7);
        let panics = async || caught(&seen, async { panic!("range of {} bytes", 3) }).await.map(|(): ()| ()).unwrap_err();
        assert!(panics().await.message().contains("range of 3 bytes"));
        for path in ["s3:b/x.parquet", "lake/1", "lake/2", "lake/3"] {
            let location = Path::from(path);
            seen.note(&ObjectMeta { location, last_modified: Default::default(), size: 1, e_tag: None, version: None });
        }
        let error = panics().await;
        assert!(error.message().contains("/lake/1, /lake/2, /lake/3 and 1 more"), "{error}");
    }
}
