//! How the system's allocator keeps the memory of a process that serves.
#![allow(unsafe_code, reason = "the C library's setting of its allocator")]

/// Has the threads of this process share as many arenas of memory as there are cores, where the environment says nothing else. The C
/// library makes eight a core, and each keeps what was freed in it: a worker that merges changes of shards, whose threads come and go,
/// holds far more than it uses. False where the C library is another one.
pub fn few_arenas() -> bool {
    #[cfg(target_env = "gnu")]
    {
        let is_set = ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"].iter().any(|name| std::env::var_os(name).is_some());
        let cores = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 1024);
        // SAFETY: the call takes two numbers, and keeps out whoever allocates meanwhile.
        is_set || unsafe { libc::mallopt(libc::M_ARENA_MAX, cores as libc::c_int) == 1 }
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_env = "gnu")]
    fn the_allocator_takes_the_setting() {
        assert!(super::few_arenas());
    }
}
