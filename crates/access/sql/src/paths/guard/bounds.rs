//! Bounds on what files may ask for.

use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;

/// Values that a file may have without any byte for them, such as nulls without a type: a few bytes can say that there are 2^60.
pub(super) const WITHOUT_BYTES_MAX: u64 = 1 << 24;

/// Bytes that one message or block may take when it is decoded: what SQL may use.
pub(super) fn decoded_bytes_max(runtime: &RuntimeEnv) -> u64 {
    match runtime.memory_pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes as u64,
        _ => forebay_data_folder::default_dram_bytes(),
    }
}
