//! Raises this process's limit of open files, which shells set too low for a server.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Fewer open files than this, and a server soon refuses connections: each is a file, and so is each file that is mapped.
const FEW: u64 = 4096;

/// Takes as many open files as the process may have: shells hand out 1,024, too few for the connections of a server.
pub(super) fn raise_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "can't raise the limit of open files");
    }
    if let Some(files) = maximum.filter(|files| *files < FEW) {
        tracing::warn!(files, "few open files are allowed: raise the hard limit (ulimit -Hn, LimitNOFILE of systemd)");
    }
}
