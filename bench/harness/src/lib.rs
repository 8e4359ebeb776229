//! What all benchmarks share: how a figure is printed, CPU time and memory of processes, the secret by which the processes of one
//! benchmark know each other, how they tell their addresses, answer and end together, and Redis as a peer.

pub mod cpu;
mod figure;
mod redis;
mod rounds;
mod served;

use std::io::{BufRead, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

pub use figure::{Bar, Figure, at_least, at_most, line, median};
use forebay_transport::Security;
use forebay_types::Result;
pub use redis::Redis;
pub use rounds::Rounds;
pub use served::Served;

/// Where programs lie that were built or fetched for benchmarks.
pub fn cache() -> PathBuf {
    let home = || std::env::home_dir().unwrap_or_default().join(".cache/forebay");
    std::env::var_os("FOREBAY_CACHE").map_or_else(home, PathBuf::from)
}

/// Of every process of a benchmark, so that they let each other in.
pub fn security() -> Security {
    Security::owner("the secret of the benchmark").expect("it is long enough")
}

/// What a benchmark's process ends with, by whether all bars are met.
pub fn exit(program: &str, all_met: Result<bool>) -> ExitCode {
    match all_met {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Where nobody listens yet.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Tells whoever started this process a line.
pub fn say(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// Returns when the input ends, which it does with whoever started this process.
pub async fn until_input_ends() {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().for_each(drop);
        // The process may be on its way out already.
        let _ = ended.send(());
    });
    let _ = end.await;
}
