use forebay_types::{Error, HostId, Result, ResultExt};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// This host's identity: the kernel's boot id. Containers of one host share it; whether they share sockets shows when
/// the socket is tried.
pub fn host_id() -> Result<HostId> {
    let text = std::fs::read_to_string(BOOT_ID).context(|| BOOT_ID)?;
    match text.trim() {
        "" => Err(Error::internal(format!("{BOOT_ID} is empty"))),
        id => Ok(HostId(id.to_string())),
    }
}
