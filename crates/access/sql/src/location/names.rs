//! What the engine calls places and paths, and who knows the names.

use std::sync::Arc;

use forebay_client::Client;
use forebay_shards::OpenShards;
use forebay_types::{MountName, Result};
use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

use crate::reach::LocalFiles;

/// Scheme of the namespace's URLs inside of the engine: `forebay:///MOUNT/KEY`, and `forebay:///tmp/NODE` of temporary data. One store
/// serves all of it, so that its paths are what the client's paths are.
pub(crate) const SCHEME: &str = "forebay";

/// What the paths of a store that is no mount begin with: `s3:BUCKET`, `file:`. What a query has seen, footers, statistics and
/// pins are all kept by path, so that a path has to say alone which object is meant. No mount's name has a colon.
pub(crate) fn store_name(scheme: &str, host: &str) -> String {
    format!("{scheme}:{host}")
}

/// Whether a path of the namespace's store is one of temporary data.
pub(crate) fn is_temporary(path: &Path) -> bool {
    path.as_ref().split('/').next() == Some(MountName::temporary().as_str())
}

/// A path of the engine as its user would write it.
pub(crate) fn shown(path: &str) -> String {
    match path.split_once('/').and_then(|(name, rest)| Some((name.split_once(':')?, rest))) {
        Some(((scheme, host), rest)) => format!("{scheme}://{host}/{rest}"),
        None => format!("/{path}"),
    }
}

/// Where a path's bytes are: the names that the engine knows, and the stores behind them.
pub(crate) trait Namespace: Send + Sync + std::fmt::Debug {
    /// Whether `/NAME/...` is a path of the namespace.
    fn has(&self, name: &str) -> bool;

    /// The path in the namespace of a URL of shared storage that some mount covers.
    fn covers(&self, url: &str) -> Option<String>;

    /// The names, for messages.
    fn names(&self) -> Vec<String>;

    /// Which files of this machine may be named.
    fn local_files(&self) -> &LocalFiles;

    /// Whether statements may name what is at a URL here. `Denied` where not.
    fn check(&self, url: &Url) -> Result<()>;

    /// The store of a URL's scheme and host. `Denied` for one that statements may not name here.
    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>>;

    /// Who asks datasets of shards; none without a cluster.
    fn client(&self) -> Option<&Client>;

    /// Those that statements before have opened.
    fn datasets(&self) -> &OpenShards;
}

#[cfg(test)]
mod tests {
    use super::{is_temporary, shown};

    #[test]
    fn temporary_data_is_told_by_the_first_name() {
        let is = |path: &str| is_temporary(&path.into());
        assert!(is("tmp") && is("tmp/a/b.csv") && !is("tmpx/a") && !is("lake/tmp/a") && !is("file:/tmp/a"));
    }

    #[test]
    fn paths_are_shown_as_they_were_written() {
        assert_eq!(shown("lake/a:b/x.csv"), "/lake/a:b/x.csv");
        assert_eq!(shown("s3:bucket/a:b/x.csv"), "s3://bucket/a:b/x.csv");
        assert_eq!(shown("file:/tmp/x.csv"), "file:///tmp/x.csv");
    }
}
