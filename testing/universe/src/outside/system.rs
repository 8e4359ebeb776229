//! The system's clock and chance. What libc is asked for them is answered here, in this program alone: by the world on the thread
//! that simulates, by the kernel on all others. So no library, and no hash map, knows of anything that does not follow from the seed.
#![allow(unsafe_code, reason = "these two functions are libc's, whose callers pass plain pointers")]

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// What a simulated thread's clocks show.
#[derive(Clone, Copy)]
struct Clock {
    mono_ns: u64,
    wall_ns: u64,
    /// The same as `mono_ns`.
    at: Instant,
}

thread_local! {
    static CLOCK: Cell<Option<Clock>> = const { Cell::new(None) };
    /// The clock is being read, by way of the runtime's own.
    static READING: Cell<bool> = const { Cell::new(false) };
    static CHANCE: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    /// Whether it is said when time passes, and what was read since it did last.
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
    static SINCE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From now on this thread's chance follows from `seed`.
pub(crate) fn follow(seed: u64) {
    CHANCE.set(Some(StdRng::seed_from_u64(seed)));
}

/// Sets this thread's clocks: nanoseconds since the machine's start, and since 1970. Between two calls they go on as the time of the
/// runtime does that the thread is in.
pub(crate) fn set_clock(mono_ns: u64, wall_ns: u64) {
    time_passes();
    let clock = |at| Some(Clock { mono_ns, wall_ns, at });
    let Some(before) = CLOCK.get() else {
        let reading = READING.replace(true);
        // What `Instant::now` asks is answered by this, and nothing is added to it.
        CLOCK.set(clock(Instant::now()));
        CLOCK.set(clock(Instant::now()));
        READING.set(reading);
        return;
    };
    // Hosts are not all at one time.
    let by = Duration::from_nanos(mono_ns.abs_diff(before.mono_ns));
    CLOCK.set(clock(if mono_ns < before.mono_ns { before.at - by } else { before.at + by }));
}

/// From now on [`time_passes`] is called whenever it does on this thread, or no longer: clocks are read far more often.
pub(crate) fn told_of_time(is_told: bool) {
    IS_TOLD.set(is_told);
    time_passes();
}

/// The time of this thread's runtime may be another one by now.
pub(crate) fn time_passes() {
    SINCE.set(None);
}

/// Nanoseconds that a simulated thread is past what its clocks were set to.
fn since(clock: &Clock) -> u64 {
    if let Some(since) = SINCE.get() {
        return since;
    }
    if READING.replace(true) {
        return 0;
    }
    // Within a runtime, its paused time; else the time that was set.
    let now = tokio::time::Instant::now().into_std();
    READING.set(false);
    let since = now.saturating_duration_since(clock.at).as_nanos() as u64;
    if IS_TOLD.get() {
        SINCE.set(Some(since));
    }
    since
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(id: libc::clockid_t, into: *mut libc::timespec) -> libc::c_int {
    let clock = CLOCK.try_with(Cell::get).ok().flatten();
    let ns = match (clock, id) {
        (Some(clock), libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE) => clock.wall_ns + since(&clock),
        (
            Some(clock),
            libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_BOOTTIME,
        ) => clock.mono_ns + since(&clock),
        // SAFETY: the caller's arguments, as they are.
        _ => return unsafe { libc::syscall(libc::SYS_clock_gettime, id, into) as libc::c_int },
    };
    // SAFETY: the caller gives memory for it, as libc's own wants it.
    unsafe { into.write(libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(into: *mut libc::c_void, len: libc::size_t, flags: libc::c_uint) -> libc::ssize_t {
    // SAFETY: the caller gives memory of that length, as libc's own wants it.
    let bytes = unsafe {
        into.cast::<u8>().write_bytes(0, len);
        std::slice::from_raw_parts_mut(into.cast::<u8>(), len)
    };
    let drawn = CHANCE.try_with(|chance| chance.borrow_mut().as_mut().map(|chance| chance.fill_bytes(bytes))).ok().flatten();
    match drawn {
        Some(()) => len as libc::ssize_t,
        // SAFETY: the caller's arguments, as they are.
        None => unsafe { libc::syscall(libc::SYS_getrandom, into, len, flags) as libc::ssize_t },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::time::SystemTime;

    fn seen(seed: u64) -> (Vec<u32>, Duration, Duration, u64) {
        std::thread::spawn(move || {
            follow(seed);
            set_clock(5_000_000_000, 1_000_000_000_000_000_000);
            let (mono, wall) = (Instant::now(), SystemTime::now());
            let map: HashMap<u32, ()> = (0..100).map(|n| (n, ())).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let random = runtime.block_on(async {
                tokio::time::sleep(Duration::from_secs(7200)).await;
                std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1)
            });
            let _entered = runtime.enter();
            (map.into_keys().collect(), mono.elapsed(), wall.elapsed().unwrap(), random)
        })
        .join()
        .unwrap()
    }

    #[test]
    fn a_clock_is_set_back_and_forth() {
        let clocks = || {
            let read = |mono_ns| {
                set_clock(mono_ns, 1_000_000_000_000_000_000);
                Instant::now()
            };
            let (now, before, after) = (read(7_000_000_000), read(5_999_999_999), read(9_000_000_001));
            (now - before, after - now)
        };
        let (back, forth) = std::thread::spawn(clocks).join().unwrap();
        assert_eq!((back, forth), (Duration::from_nanos(1_000_000_001), Duration::from_nanos(2_000_000_001)));
        let seen = std::thread::spawn(|| {
            set_clock(7_000_000_000, 1_000_000_000_000_000_000);
            set_clock(3_000_000_000, 2_000_000_000_000_000_000);
            set_clock(8_000_000_000, 3_000_000_000_000_000_000);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let began = Instant::now();
                tokio::time::sleep(Duration::from_secs(60)).await;
                began.elapsed()
            })
        });
        assert_eq!(seen.join().unwrap(), Duration::from_secs(60));
    }

    #[test]
    fn what_was_read_of_a_clock_counts_until_time_passes() {
        let seen = std::thread::spawn(|| {
            set_clock(3_000_000_000, 1_000_000_000_000_000_000);
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_time().start_paused(true).on_thread_unpark(time_passes).build().unwrap();
            told_of_time(true);
            let seen = runtime.block_on(async {
                let began = Instant::now();
                assert!(began == Instant::now() && SINCE.get().is_some());
                tokio::time::sleep(Duration::from_secs(60)).await;
                began.elapsed()
            });
            told_of_time(false);
            (seen, SINCE.get())
        });
        assert_eq!(seen.join().unwrap(), (Duration::from_secs(60), None));
    }

    #[test]
    fn clocks_and_chance_of_a_thread_follow_from_what_was_set() {
        let (order, mono, wall, random) = seen(1);
        assert_eq!((mono, wall), (Duration::from_secs(7200), Duration::from_secs(7200)));
        assert_eq!(seen(1), (order.clone(), mono, wall, random));
        let other = seen(2);
        assert!(other.0 != order && other.3 != random);
        assert!(SystemTime::now() > SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_001), "this thread has the system's");
    }
}
