//! Who a worker is, over restarts.

use std::fs;
use std::io::Write;
use std::path::Path;

use forebay_types::{Error, HostId, Result, ResultExt, WorkerId};

/// The id in `folder`'s file `worker-id`; at the first start a random one, written there before it is used.
pub(crate) fn worker_id(folder: &Path) -> Result<WorkerId> {
    let path = folder.join("worker-id");
    match fs::read_to_string(&path) {
        Ok(text) => u64::from_str_radix(text.trim().trim_start_matches('w'), 16).map(WorkerId).map_err(|_| {
            Error::invalid(format!("{}: {text:?} is no worker's id: remove the file to get a new one", path.display()))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = WorkerId(forebay_runtime::random());
            // Written aside and renamed: a crash leaves no half of an id behind.
            let draft = folder.join("worker-id.new");
            let write = || -> std::io::Result<()> {
                let mut file = fs::File::create(&draft)?;
                writeln!(file, "{id}")?;
                file.sync_all()?;
                fs::rename(&draft, &path)
            };
            write().context(|| path.display())?;
            Ok(id)
        }
        Err(error) => Err(Error::from(error).context(path.display())),
    }
}

/// The machine's boot id: equal for all processes of a host, and another one on each host.
pub(crate) fn host_id() -> Result<HostId> {
    if let Some(host) = forebay_runtime::simulated::host() {
        return Ok(HostId(host));
    }
    let path = "/proc/sys/kernel/random/boot_id";
    let id = fs::read_to_string(path).context(|| format!("{path}: the host's boot id is needed"))?;
    Ok(HostId(id.trim().to_string()))
}

/// The machine's name, for an address that others can use where none was set; `localhost` when it has none.
pub(crate) fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_string())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_string())
}
