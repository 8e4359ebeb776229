//! Stores in processes of their own: one that is killed leaves a warm folder, and two do not share one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use forebay_block_store::{BlockStore, StoreSettings};
use forebay_types::ErrorKind;

use crate::support::*;

const FOLDER: &str = "FOREBAY_TEST_CHILD_FOLDER";

/// Runs one of the ignored tests of this binary in a process of its own.
pub fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(FOLDER, folder).stdout(Stdio::piped());
    command
}

/// The folder that a child is to work in.
pub fn child_folder() -> std::path::PathBuf {
    std::env::var_os(FOLDER).expect("run by another test").into()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

fn wait_for_line(child: &mut Child, wanted: &str) -> BufReader<std::process::ChildStdout> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != wanted {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the child ended before it said {wanted:?}");
    }
    lines
}

#[test]
#[ignore = "run by the tests below in a process of its own, which they kill"]
fn fill_for_ever() {
    let store = with_disk(&child_folder(), 16 * MIB, 32 * MIB);
    let settled = spec(0, 3 * MIB as u32);
    fill(&store, &settled, all(&settled)).unwrap();
    store.set_keep(settled.id, true);
    wait(store.flush());
    say("settled");
    for number in 1.. {
        let spec = spec(number % 60 + 1, 300_000 + 5000 * (number % 60) as u32);
        fill(&store, &spec, all(&spec)).unwrap();
        if number % 5 == 0 {
            store.free(id(number / 2 % 60 + 1));
        }
        if number == 40 {
            say("busy");
        }
    }
}

#[test]
fn a_killed_process_leaves_a_folder_that_comes_back_warm() {
    let folder = folder();
    for round in 0..3 {
        let mut child = child("children::fill_for_ever", folder.path()).spawn().unwrap();
        let lines = wait_for_line(&mut child, "busy");
        std::thread::sleep(std::time::Duration::from_millis(50 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(lines);
        let store = with_disk(folder.path(), 64 * MIB, 32 * MIB);
        let settled = spec(0, 3 * MIB as u32);
        assert_eq!(wait(load_and_check(&store, &settled, all(&settled))), 768, "what was flushed is there");
        assert!(store.held(settled.id).keep);
        let others = (1..=60).map(|number| spec(number, 300_000 + 5000 * ((number + 59) % 60) as u32));
        let sizes = others.chain((1..=60).map(|number| spec(number, 300_000 + 5000 * (number - 1) as u32)));
        let there: u32 = sizes.map(|spec| wait(load_and_check(&store, &spec, all(&spec)))).sum();
        assert!(there > 256, "round {round}: {there} pages of the others came back");
    }
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let folder = folder();
    let mut child = child("children::fill_for_ever", folder.path()).spawn().unwrap();
    let lines = wait_for_line(&mut child, "settled");
    let error = BlockStore::open(StoreSettings::new(folder.path(), MIB)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("another process"), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(lines);
    BlockStore::open(StoreSettings::new(folder.path(), MIB)).unwrap();
}
