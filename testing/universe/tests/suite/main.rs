//! Worlds as `make universe` runs them: each is the built program, in a process of its own.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::path::Path;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

/// Runs worlds, and gives their lines.
fn worlds(arguments: &[&str], folder: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_forebay-universe")).args(arguments).current_dir(folder).output().unwrap();
    let lines: Vec<Value> =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert!(!lines.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    lines
}

#[test]
fn a_seed_gives_the_same_world_in_another_process_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &str, folder| worlds(&["--seed", seed, "--seconds", "20", "--as-it-is"], folder).remove(0);
    let (here, there) = (run("3", Path::new("/")), run("3", folder.path()));
    assert_eq!(here, there, "all that is told of it, the hash of its trace too");
    assert_ne!(here["hash"], run("4", folder.path())["hash"]);
}

/// What a world's process writes, its outcome and its trace, where it has so many of this machine's cores at most, and so many bytes more lie
/// above its stack.
fn written(cores: usize, above: usize, folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let all = sched_getaffinity(None).unwrap();
    let mut some = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).take(cores).for_each(|core| some.set(core));
    // Of this thread, and of what it starts.
    sched_setaffinity(None, &some).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay-universe"));
    command.args(["--world", "3", "--seconds", "10", "--trace"]).env_remove("RUST_LOG").env("ABOVE", "x".repeat(above));
    let output = command.current_dir(folder).output().unwrap();
    (output.stdout, output.stderr)
}

#[test]
fn a_seed_gives_the_same_bytes_of_trace_on_another_number_of_cores_and_at_other_addresses() {
    let folder = tempfile::tempdir().unwrap();
    // Each on a thread of its own, which keeps the cores that it was left.
    let run =
        |cores, above, folder: &Path| std::thread::scope(|scope| scope.spawn(|| written(cores, above, folder)).join().unwrap());
    let one = run(1, 0, Path::new("/"));
    let all = run(usize::MAX, 50_000, folder.path());
    let lines = one.1.split(|byte| *byte == b'\n').count();
    assert!(!one.0.is_empty() && lines > 1_000, "{lines} lines of trace");
    let differs = one.1.split(|byte| *byte == b'\n').zip(all.1.split(|byte| *byte == b'\n')).find(|(one, all)| one != all);
    let differs = differs.map(|(one, all)| (String::from_utf8_lossy(one), String::from_utf8_lossy(all)));
    assert!(one == all, "{} and {} bytes of trace, first {differs:?}", one.1.len(), all.1.len());
}

#[test]
fn worlds_that_begin_at_once_take_nothing_of_each_others_chance() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--seed", "5", "--seconds", "10", "--as-it-is"];
    let at_once: Vec<Vec<Value>> = std::thread::scope(|scope| {
        let run = || scope.spawn(|| worlds(&arguments, folder.path()));
        let running = [(); 8].map(|()| run());
        running.map(|world| world.join().unwrap()).into()
    });
    assert!(at_once.iter().all(|world| *world == at_once[0]), "one seed, one world: {at_once:?}");
}

#[test]
fn nothing_is_wrong_in_some_worlds_and_much_happens_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let all = worlds(&["--seed", "100", "--seeds", "3", "--seconds", "30", "--as-it-is"], folder.path());
    assert!(all.iter().any(|world| world["refused"].as_u64().unwrap() > 0), "somebody asks for what may not be: {all:?}");
    for world in all {
        assert_eq!(world["violations"], 0, "{world}");
        let (operations, seconds) = (world["operations"].as_u64().unwrap(), world["simulated_seconds"].as_u64().unwrap());
        assert!(operations >= 30 * 5 && seconds >= 30, "{world}");
        assert!(world["views"].as_u64() > Some(0), "clients look at what they are shown of the cluster: {world}");
        assert!(world["commit"].as_str().is_some_and(|commit| !commit.is_empty()), "{world}");
        let passed = |place: &str| world["points"][place]["passed"].as_u64().unwrap_or(0) > 0;
        assert!(["beat", "fetch", "members-not-written", "peers-not-asked", "tell"].into_iter().all(passed), "{world}");
    }
}

#[test]
fn s3_clients_are_told_what_all_others_are_whatever_goes_wrong_with_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed, seconds| worlds(&["--seed", seed, "--seconds", seconds, "--as-it-is"], folder.path()).remove(0);
    let (with, without) = (run("5", "60"), run("4", "10"));
    assert_eq!(with["violations"], 0, "{with}");
    let reads = ["get", "get_range", "get_if_none_match", "not_modified", "list"];
    let writes = ["put", "put_if_match", "put_if_none_match", "upload", "copy", "delete"];
    let temporary = ["tmp_put", "tmp_upload", "tmp_swap", "tmp_get"];
    for kind in reads.into_iter().chain(writes).chain(temporary) {
        assert!(with["of_s3"][kind].as_u64().unwrap_or(0) > 0, "{kind}: {with}");
    }
    assert!(without["of_s3"].as_object().unwrap().is_empty(), "it has no gateway: {without}");
}

#[test]
fn records_are_in_one_order_and_a_dataset_says_what_its_objects_do_whatever_goes_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--seed", "200", "--seeds", "2", "--seconds", "30", "--shards", "--as-it-is"];
    let run = || worlds(&arguments, folder.path());
    let here = run();
    assert_eq!(here, run(), "the same worlds again");
    for world in &here {
        assert_eq!(world["violations"], 0, "{world}");
    }
    let without = worlds(&[&arguments[..6], &arguments[7..]].concat(), folder.path());
    let of_records = |world: &Value| world["of_records"].as_u64().unwrap();
    assert!(here.iter().all(|world| of_records(world) >= 10), "clients use the dataset too: {here:?}");
    let on_two_disks = |world: &Value| world["on_two_disks"].as_u64().unwrap() > 0;
    assert_eq!((on_two_disks(&here[0]), on_two_disks(&here[1])), (false, true), "in every second one: {here:?}");
    assert!(without.iter().all(|world| of_records(world) == 0), "{without:?}");
}

#[test]
fn queries_have_each_row_once_whatever_happens_to_schedulers_and_executors() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--seed", "300", "--seeds", "2", "--seconds", "30", "--as-it-is", "--queries"];
    let here = worlds(&arguments, folder.path());
    for world in &here {
        assert_eq!(world["violations"], 0, "{world}");
        let tasks = world["tasks"].as_object().unwrap();
        assert!(tasks.len() >= 4 && tasks.values().all(|tasks| tasks.as_u64() > Some(0)), "of each process: {world}");
    }
    let answered = |world: &Value| world["queries"]["answered"].as_u64().unwrap_or(0);
    assert!(here.iter().map(answered).sum::<u64>() >= 8 && here.iter().all(|world| answered(world) > 0), "{here:?}");
    let again = worlds(&["--seed", "301", "--seconds", "30", "--as-it-is", "--queries"], folder.path());
    assert_eq!(again[..], here[1..], "the same world again");
    let without = worlds(&["--seed", "301", "--seconds", "10", "--as-it-is"], folder.path());
    assert_eq!(without[0]["queries"], serde_json::json!({}), "nobody asks");
}

/// In the profile `fast`, by `make test-universe`: in `dev` each takes as long as ten there.
#[test]
#[cfg_attr(debug_assertions, ignore = "make test-universe runs them, compiled for it")]
fn nothing_is_wrong_in_two_hundred_worlds() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(64).to_string();
    let all = ["--seconds", "60", "--as-it-is", "--jobs", &jobs];
    let plain = worlds(&[&all[..], &["--seed", "1", "--seeds", "150"]].concat(), folder.path());
    // Each of these takes as long as some of the others.
    let more = ["--seed", "151", "--seeds", "50", "--standby", "--shards", "--queries"];
    let with_all = worlds(&[&all[..], &more].concat(), folder.path());
    assert_eq!((plain.len(), with_all.len()), (150, 50));
    let wrong: Vec<&Value> = plain.iter().chain(&with_all).filter(|world| world["violations"] != 0).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let came = |what: &str| with_all.iter().map(|world| world["queries"][what].as_u64().unwrap_or(0)).sum::<u64>();
    for what in ["answered", "again", "copies"] {
        assert!(came(what) > 0, "{what}");
    }
    assert!(with_all.iter().any(|world| world["broken"].as_u64().unwrap() > 0), "packets are lost, and connections break");
}
