//! One run of one bench: its lines, or why there are none.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Bench;

/// How often a bench is asked whether it has ended.
const EVERY: Duration = Duration::from_millis(50);
/// Of what a bench said last when it failed.
const REASON_CHARS_MAX: usize = 160;

/// Runs a program until it ends, and gives what it printed. A bench that missed its own bar ends with 1, and its lines count.
///
/// # Errors
/// A program that can't be started, does not end in time, or ends in any other way.
pub(crate) fn run(program: &Path, bench: &Bench, root: &Path) -> Result<String, String> {
    // Files and no pipes: what a bench leaves running can't hold this up.
    let mut out = tempfile::tempfile().map_err(|error| format!("no file for the output: {error}"))?;
    let mut err = tempfile::tempfile().map_err(|error| format!("no file for the output: {error}"))?;
    let mut child = start(program, bench, root, &out, &err).map_err(|error| format!("{}: {error}", program.display()))?;
    let status = wait(&mut child, Duration::from_secs(bench.timeout_secs))?;
    let said = text(&mut out)?;
    match status.code() {
        Some(0) => Ok(said),
        Some(1) if !said.trim().is_empty() => Ok(said),
        _ => Err(reason(&text(&mut err)?, status)),
    }
}

fn start(program: &Path, bench: &Bench, root: &Path, out: &File, err: &File) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(&bench.args).envs(&bench.env).current_dir(root).stdin(Stdio::null());
    command.stdout(out.try_clone()?).stderr(err.try_clone()?).spawn()
}

fn wait(child: &mut Child, timeout: Duration) -> Result<ExitStatus, String> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if began.elapsed() < timeout => std::thread::sleep(EVERY),
            Ok(None) => {
                // It may end by itself meanwhile; either way it is gone after this.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {} s", timeout.as_secs()));
            }
            Err(error) => return Err(format!("can't be waited for: {error}")),
        }
    }
}

fn text(file: &mut File) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(|error| format!("its output: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What it said last, or of what it panicked.
fn reason(said: &str, status: ExitStatus) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // A panic says where on one line and why on the next; what follows is for who looks closer.
    let panic = lines.clone().skip_while(|line| !line.contains("panicked at")).nth(1);
    let what = panic.or_else(|| lines.next_back()).map(|line| line.chars().take(REASON_CHARS_MAX).collect::<String>());
    what.map_or_else(|| status.to_string(), |what| format!("{status}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    fn bench(script: &str, timeout_secs: u64) -> Bench {
        let text = format!(
            "[[bench]]\nname = 'b'\npackage = 'p'\nargs = ['-c', '''{script}''']\nenv = {{ SAID = 'given' }}\nfigure = []\n\
             timeout_secs = {timeout_secs}"
        );
        Table::parse(&text).unwrap().benches.remove(0)
    }

    fn shell(script: &str) -> Result<String, String> {
        run(Path::new("/bin/sh"), &bench(script, 20), Path::new("/"))
    }

    #[test]
    fn lines_of_a_bench_that_missed_its_bar_count() {
        assert_eq!(shell("echo one; exit 1"), Ok("one\n".to_owned()));
    }

    #[test]
    fn a_bench_has_the_environment_that_the_table_gives_it() {
        assert_eq!(shell("echo $SAID"), Ok("given\n".to_owned()));
    }

    #[test]
    fn a_bench_that_fails_says_why() {
        let failed = shell("echo '{}'; echo starting >&2; echo 'no redis-server' >&2; exit 3").unwrap_err();
        assert!(failed.contains('3') && failed.ends_with(": no redis-server"), "{failed}");
        let panicked = shell("printf 'thread main panicked at a.rs:1:2:\\nno server\\nnote: more\\n' >&2; exit 101").unwrap_err();
        assert!(panicked.ends_with(": no server"), "{panicked}");
        assert!(shell("exit 1").is_err(), "nothing was measured");
        assert!(shell("kill -9 $$").unwrap_err().contains('9'));
        assert!(run(Path::new("/none"), &bench("", 20), Path::new("/")).unwrap_err().contains("/none"));
    }

    #[test]
    fn a_bench_that_does_not_end_is_ended() {
        let slept = run(Path::new("/bin/sh"), &bench("echo one; exec sleep 30", 1), Path::new("/"));
        assert!(slept.unwrap_err().contains("did not end within 1 s"));
    }
}
