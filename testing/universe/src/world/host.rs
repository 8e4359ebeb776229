//! A host: a runtime of its own, whose time is the world's as long as it is run.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::outside::disks;
use crate::outside::network::Network;
use crate::outside::packet::HostId;
use crate::outside::system;

/// When a world begins: nanoseconds since its machines started, and since 1970.
const MONO_NS: u64 = 1_000_000_000_000;
const WALL_NS: u64 = 1_750_000_000_000_000_000;

/// A host and its process.
pub(super) struct Host {
    id: HostId,
    network: Arc<Network>,
    /// None while its process is down.
    runtime: Option<Runtime>,
    /// When its process started: by its own time in microseconds, and by its runtime's.
    started: Option<(u64, Instant)>,
    /// What its process has seen of the world's time, in microseconds.
    at_us: u64,
    /// Its time of the day is so much ahead, in milliseconds.
    ahead_ms: i64,
    drift: Drift,
    /// Not run, so many times over.
    stopped: u32,
}

/// How far clocks are from the world's, all of them: what they once were ahead they stay, since no clock goes back by it.
#[derive(Clone, Copy, Default)]
struct Drift {
    /// So far ahead at a time of the world, in microseconds.
    ahead_us: i64,
    since_us: u64,
    /// From then on so much faster, in millionths.
    by_ppm: i64,
}

impl Drift {
    /// What they show at a time of the world.
    fn shown_us(&self, at_us: u64) -> u64 {
        at_us.saturating_add_signed(self.ahead_us + (at_us - self.since_us) as i64 * self.by_ppm / 1_000_000)
    }
}

/// Sets this thread's clocks to a time of the world.
pub(super) fn set_clock(at_us: u64, ahead_ms: i64) {
    let wall_ns = (WALL_NS + at_us * 1_000).saturating_add_signed(ahead_ms * 1_000_000);
    system::set_clock(MONO_NS + at_us * 1_000, wall_ns);
}

impl Host {
    pub(super) fn new(id: HostId, network: &Arc<Network>) -> Self {
        let (network, drift) = (Arc::clone(network), Drift::default());
        Self { id, network, runtime: None, started: None, at_us: 0, ahead_ms: 0, drift, stopped: 0 }
    }

    pub(super) fn start(&mut self, now_us: u64, main: impl Future<Output = ()> + Send + 'static) {
        assert!(self.runtime.is_none(), "a process is started when there is none");
        self.enter(now_us);
        self.at_us = now_us;
        let mut builder = Builder::new_current_thread();
        let builder = builder.enable_time().start_paused(true).on_thread_unpark(system::time_passes);
        let runtime = builder.build().expect("a runtime without a driver");
        runtime.spawn(main);
        self.started = Some((self.drift.shown_us(now_us), runtime.block_on(async { Instant::now() })));
        self.runtime = Some(runtime);
    }

    /// Runs its process until a time, unless it is stopped.
    pub(super) fn run(&mut self, until_us: u64) {
        if self.stopped > 0 {
            return;
        }
        self.enter(self.at_us);
        let (Some(runtime), Some((started_us, started))) = (&self.runtime, self.started) else { return };
        // Sleeps end at whole milliseconds: from one to the next they would add up, and its clock go ahead of the others'.
        let until = started + Duration::from_micros(self.drift.shown_us(until_us) - started_us);
        // It passes when the runtime has nothing left to do, and not between.
        system::told_of_time(true);
        runtime.block_on(async { tokio::time::sleep_until(until).await });
        system::told_of_time(false);
        self.at_us = until_us;
    }

    /// Ends its process, wherever it is.
    pub(super) fn crash(&mut self, now_us: u64) {
        self.enter(now_us);
        self.network.set_crashing(true);
        disks::set_ending(true);
        drop(self.runtime.take());
        disks::set_ending(false);
        self.network.set_crashing(false);
    }

    /// How far it is behind a time, in microseconds; none when it is not run.
    pub(super) fn behind(&self, now_us: u64) -> Option<u64> {
        (self.stopped == 0 && self.runtime.is_some()).then(|| now_us - self.at_us)
    }

    pub(super) fn is_up(&self) -> bool {
        self.runtime.is_some()
    }

    /// Tasks that its process has begun and that have not ended.
    pub(super) fn tasks(&self) -> usize {
        self.runtime.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks())
    }

    pub(super) fn stop(&mut self) {
        self.stopped += 1;
    }

    /// Goes on: what was missed of the time passes at once.
    pub(super) fn go_on(&mut self, now_us: u64) {
        self.stopped -= 1;
        if let (0, Some(runtime)) = (self.stopped, &self.runtime) {
            let missed = Duration::from_micros(self.drift.shown_us(now_us) - self.drift.shown_us(self.at_us));
            self.enter(self.at_us);
            runtime.block_on(async { tokio::time::advance(missed).await });
            self.at_us = now_us;
        }
    }

    pub(super) fn jump(&mut self, by_ms: i64) {
        self.ahead_ms += by_ms;
    }

    /// Its clocks go faster from now on, or slower.
    pub(super) fn drift(&mut self, by_ppm: i64) {
        let shown_us = self.drift.shown_us(self.at_us);
        let ahead_us = shown_us as i64 - self.at_us as i64;
        self.drift = Drift { ahead_us, since_us: self.at_us, by_ppm: self.drift.by_ppm + by_ppm };
    }

    fn enter(&self, at_us: u64) {
        self.network.turn(self.id);
        disks::turn(self.id);
        set_clock(self.drift.shown_us(at_us), self.ahead_ms);
    }
}

/// A new folder, in memory where there is one: files of a world are to outlive its processes alone. Its name is drawn by a thread
/// whose chance is the machine's: worlds at the same time would draw the same one, and each that is taken moves the chance on.
pub(super) fn in_memory() -> TempDir {
    let shared = Path::new("/dev/shm");
    let within = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let made = std::thread::spawn(move || TempDir::new_in(within)).join();
    made.expect("it does not panic").expect("a folder of the world")
}

/// The folder of a world's files, by a path that is the same in every process: errors tell it, and what is sent is to be the same.
pub(super) struct Folder {
    path: PathBuf,
    _handle: OwnedFd,
    _made: TempDir,
}

/// The descriptor that a folder is reached by: one that nothing else has.
const HANDLE: RawFd = 900;

impl Folder {
    pub(super) fn new() -> Self {
        let made = in_memory();
        let handle = at(HANDLE, &File::open(made.path()).expect("it was made")).expect("a descriptor for the folder");
        Self { path: format!("/proc/self/fd/{}", handle.as_raw_fd()).into(), _handle: handle, _made: made }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The same file by another descriptor, the first free one from `least` on.
#[allow(unsafe_code, reason = "the standard library does not let a descriptor be chosen")]
fn at(least: RawFd, file: &File) -> std::io::Result<OwnedFd> {
    // SAFETY: `file` is open, and the call takes no memory of ours.
    let handle = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) };
    if handle < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was made by the call above, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(handle) })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::trace::Trace;

    #[test]
    fn a_host_is_never_a_millisecond_ahead_of_its_world() {
        // Clocks that are set are those of a thread.
        let shown = std::thread::spawn(|| {
            set_clock(0, 0);
            let network = Network::new(vec!["one".to_owned()], StdRng::seed_from_u64(7), Arc::new(Trace::new(false)));
            let mut host = Host::new(0, &Arc::new(network));
            host.start(0, std::future::pending());
            (1..=200).for_each(|turn| host.run(turn * 5_300));
            let (runtime, (_, started)) = (host.runtime.as_ref().unwrap(), host.started.unwrap());
            runtime.block_on(async { started.elapsed() })
        });
        let shown = shown.join().unwrap().as_micros();
        assert!((1_060_000..1_061_000).contains(&shown), "{shown} us after 1,060,000");
    }

    #[test]
    fn clocks_that_drift_never_go_back() {
        let shown = std::thread::spawn(|| {
            set_clock(0, 0);
            let network = Network::new(vec!["one".to_owned()], StdRng::seed_from_u64(7), Arc::new(Trace::new(false)));
            let mut host = Host::new(0, &Arc::new(network));
            host.start(0, std::future::pending());
            let started = host.started.unwrap().1;
            [(1_000_000, 20_000), (2_000_000, -40_000), (3_000_000, 20_000), (4_000_000, 0)].map(|(until_us, then_ppm)| {
                host.run(until_us);
                host.drift(then_ppm);
                host.runtime.as_ref().unwrap().block_on(async { started.elapsed() }).as_millis()
            })
        });
        assert_eq!(shown.join().unwrap(), [1_000, 2_020, 3_000, 4_000]);
    }
}
