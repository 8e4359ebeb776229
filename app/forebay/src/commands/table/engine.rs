//! Which engine `forebay table` needs: none of a cluster where all paths are local, so that it works without one.

use std::path::Path;

use forebay_sql::{Engine, EngineSettings};
use forebay_types::ErrorKind;

use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;

/// An engine for these paths: that of the running cluster, or, where none runs and none is needed, one without.
pub(super) async fn engine(config: &Config, settings: EngineSettings, paths: &[&str]) -> Outcome<Engine> {
    // A path that begins with a `/` may be below a mount; the others can't.
    if !paths.iter().any(|path| path.starts_with('/') || (path.contains("://") && !path.starts_with("file://"))) {
        return Ok(Engine::over_object_store(Vec::new(), settings));
    }
    match connect(config).await {
        Ok(client) => Ok(Engine::over_client(client, settings)),
        Err(error) if matches!(error.kind(), ErrorKind::Retry | ErrorKind::Closed) && paths.iter().all(|path| is_local(path)) => {
            Ok(Engine::over_object_store(Vec::new(), settings))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a path is on this machine, or could be written there. Of a pattern, the folder that it begins with.
fn is_local(path: &str) -> bool {
    if path.contains("://") {
        return path.starts_with("file://");
    }
    let plain = path.split(['*', '?', '[']).next().unwrap_or(path);
    let folder = if plain.len() < path.len() { Path::new(plain).parent().filter(|_| !plain.ends_with('/')) } else { None };
    let path = folder.unwrap_or(Path::new(plain));
    let parent = path.parent().is_some_and(|parent| parent.parent().is_some() && parent.is_dir());
    !path.has_root() || path.exists() || parent
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn paths_of_this_machine_are_told_from_those_of_mounts() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().to_str().expect("a name");
        assert!(is_local(&format!("{folder}/new.albis")) && is_local(&format!("{folder}/*.parquet")) && is_local("x.csv"));
        assert!(!is_local("/no-such-mount/x.csv") && !is_local("/no-such-mount/*.csv") && !is_local("s3://bucket/x.csv"));
    }
}
