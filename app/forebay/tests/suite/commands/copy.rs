//! `cp`, in every direction.

use std::fs;

use serde_json::json;

use crate::support::{Bucket, csv, forebay, forebay_with, lake};

#[test]
fn files_go_to_a_mount_and_come_back_unchanged() {
    for bucket in [Bucket::folder(), Bucket::s3()] {
        let (home, _up, at) = lake(&bucket);
        // More than one part of an upload.
        let data: Vec<u8> = (0..20_000_000u32).map(|n| (n / 3) as u8).collect();
        let (there, back) = (home.path().join("there"), home.path().join("back"));
        fs::write(&there, &data).unwrap();
        let copied = forebay(&at, &["cp", there.to_str().unwrap(), "/lake/a/x.bin", "--json"]).ok().json();
        assert_eq!((&copied[0]["to"], &copied[0]["bytes"]), (&json!("/lake/a/x.bin"), &json!(data.len())));
        forebay(&at, &["cp", "/lake/a/x.bin", back.to_str().unwrap()]).ok();
        assert!(fs::read(&back).unwrap() == data);
        forebay(&at, &["cp", "/lake/a/x.bin", "/lake/b/"]).ok();
        assert!(forebay(&at, &["cat", "/lake/b/x.bin"]).ok().stdout == data);
        assert!(forebay(&at, &["cp", "/lake/b/x.bin", "-"]).ok().stdout == data);
        forebay(&at, &["cp", "--no-clobber", there.to_str().unwrap(), "/lake/b/x.bin"])
            .fails(1, &["/lake/b/x.bin", "there already"]);
        forebay(&at, &["cp", "-n", "/lake/b/x.bin", back.to_str().unwrap()]).fails(1, &["there already"]);
    }
}

#[test]
fn the_standard_input_can_be_copied() {
    let bucket = Bucket::s3();
    let (home, _up, at) = lake(&bucket);
    let data = csv(100_000);
    forebay_with(home.path(), &["cp", "-", "/lake/in.csv", "--coordinator", &at], |_| (), &data).ok();
    assert!(forebay(&at, &["cat", "/lake/in.csv"]).ok().stdout == data);
}

#[test]
fn folders_are_copied_with_everything_below() {
    let bucket = Bucket::s3();
    let (home, _up, at) = lake(&bucket);
    let source = home.path().join("source");
    fs::create_dir_all(source.join("deep/er")).unwrap();
    fs::write(source.join("a.txt"), "a").unwrap();
    fs::write(source.join("deep/er/b c%20é.txt"), "b").unwrap();
    forebay(&at, &["cp", source.to_str().unwrap(), "/lake/copy/"]).fails(2, &["-r"]);
    forebay(&at, &["cp", "-r", source.to_str().unwrap(), "/lake/copy/"]).ok();
    assert_eq!(forebay(&at, &["ls", "-r", "/lake/copy/"]).ok().lines(), ["a.txt", "deep/er/b c%20é.txt"]);
    forebay(&at, &["cp", "-r", "/lake/copy", "/lake/again"]).ok();
    let back = home.path().join("back");
    forebay(&at, &["cp", "-r", "/lake/again/", back.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(back.join("deep/er/b c%20é.txt")).unwrap(), "b");
    // What is there is kept, and does not keep the rest from coming.
    fs::write(source.join("a.txt"), "another").unwrap();
    fs::write(source.join("z.txt"), "z").unwrap();
    fs::remove_file(back.join("deep/er/b c%20é.txt")).unwrap();
    let (from, to) = (source.to_str().unwrap(), back.to_str().unwrap());
    forebay(&at, &["cp", "-n", "-r", from, "/lake/copy/"]).fails(1, &["2 files are there already", "/lake/copy/a.txt"]);
    assert_eq!(forebay(&at, &["cat", "/lake/copy/a.txt", "/lake/copy/z.txt"]).ok().text(), "az");
    forebay(&at, &["cp", "-n", "-r", "/lake/copy/", to]).fails(1, &["a.txt is there already"]);
    assert_eq!(fs::read_to_string(back.join("deep/er/b c%20é.txt")).unwrap(), "b");
    assert_eq!(fs::read_to_string(back.join("z.txt")).unwrap(), "z");
}

#[test]
fn temporary_data_is_copied_to_and_fro() {
    let bucket = Bucket::folder();
    let (home, _up, at) = lake(&bucket);
    let (source, back) = (home.path().join("source"), home.path().join("back"));
    let (from, to) = (source.to_str().unwrap(), back.to_str().unwrap());
    // More than a value may have.
    let large: Vec<u8> = (0..(33u32 << 20)).map(|n| (n / 3) as u8).collect();
    fs::create_dir_all(source.join("deep")).unwrap();
    fs::write(source.join("large"), &large).unwrap();
    fs::write(source.join("deep/small"), "small").unwrap();
    forebay(&at, &["cp", "-r", from, "forebay://tmp/job/"]).ok();
    assert_eq!(forebay(&at, &["node", "get", "/tmp/job/deep/small"]).ok().text(), "small");
    assert!(forebay(&at, &["node", "get", "/tmp/job/large"]).ok().stdout == large);
    forebay(&at, &["cp", "-n", "-r", from, "forebay://tmp/job"]).fails(1, &["2 files are there already"]);
    forebay(&at, &["cp", "forebay://tmp/job", to]).fails(2, &["/tmp/job", "-r"]);
    forebay(&at, &["cp", "-r", "forebay://tmp/job", to]).ok();
    assert!(fs::read(back.join("large")).unwrap() == large);
    assert_eq!(fs::read_to_string(back.join("deep/small")).unwrap(), "small");
    forebay(&at, &["cp", "-r", "forebay://tmp/job/", "/lake/job"]).ok();
    assert_eq!(forebay(&at, &["ls", "-r", "/lake/job/"]).ok().lines(), ["deep/small", "large"]);
    let copied = forebay(&at, &["cp", "/lake/job/deep/small", "forebay://tmp/more/", "--json"]).ok().json();
    assert_eq!(copied[0]["to"], json!("forebay://tmp/more/small"));
    assert_eq!(forebay(&at, &["cp", "forebay://tmp/more/small", "-"]).ok().text(), "small");
    forebay(&at, &["cp", "forebay://tmp/missing", to]).fails(1, &["/tmp/missing", "forebay node ls"]);
    // A plain path is this machine's, and who meant the other one is told its name.
    forebay(&at, &["cp", "/tmp/no such file", "/lake/x"]).fails(1, &["forebay://tmp/no such file"]);
}

#[test]
fn nothing_is_left_of_a_copy_that_fails() {
    let bucket = Bucket::s3();
    let (home, _up, at) = lake(&bucket);
    let target = home.path().join("folder");
    forebay(&at, &["cp", "/lake/missing", target.join("x").to_str().unwrap()]).fails(1, &["/lake/missing"]);
    assert!(!target.join("x").exists());
    forebay(&at, &["cp", home.path().join("missing").to_str().unwrap(), "/lake/x"]).fails(1, &["missing"]);
    forebay(&at, &["stat", "/lake/x"]).fails(1, &["/lake/x"]);
    forebay(&at, &["cp", "/nosuchmount/x", "y"]).fails(1, &["nosuchmount", "neither a mount"]);
    forebay(&at, &["cp", "./x", "./y"]).fails(2, &["neither", "below a mount"]);
    // Keys that would leave the folder are refused.
    bucket.put("bad//key", b"x");
    forebay(&at, &["cp", "-r", "/lake/", target.to_str().unwrap()]).fails(1, &["bad//key"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bucket = Bucket::s3();
    let (_home, up, _) = lake(&bucket);
    bucket.put("x.csv", &csv(500_000));
    for command in ["cat /lake/x.csv", "sql --csv \"select * from '/lake/x.csv'\""] {
        let script =
            format!("set -o pipefail; {} --coordinator {} {command} | head -n 1", env!("CARGO_BIN_EXE_forebay"), up.address());
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((text.as_ref(), errors.as_ref(), output.status.code()), ("n,square,word\n", "", Some(0)), "{command}");
    }
}
