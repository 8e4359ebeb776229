//! Where the configuration comes from, and what is wrong with it.

use std::fs;

use crate::support::{forebay_in, forebay_with};

fn value(ran: &crate::support::Ran, key: &str) -> (String, String) {
    let line = ran.json().into_iter().find(|line| line["key"] == key).unwrap();
    (line["value"].as_str().unwrap_or("").to_string(), line["source"].as_str().unwrap().to_string())
}

#[test]
fn file_then_variables_then_flags() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("forebay.toml"), "coordinator = \"127.0.0.1:1\"\ndram = \"64MiB\"\ndata-dir = \"here\"\n")
        .unwrap();
    let ran = forebay_with(
        home.path(),
        &["config", "--json", "--tls-ca", "ca.pem"],
        |command| {
            command.env("FOREBAY_COORDINATOR", "127.0.0.1:2").env("FOREBAY_TOKEN", "1234567890123456");
            command.env("FOREBAY_QUERY_HISTORY", "false").env("FOREBAY_DATA_SCHEDULER", "no");
        },
        b"",
    )
    .ok();
    assert_eq!(value(&ran, "coordinator"), ("127.0.0.1:2".into(), "FOREBAY_COORDINATOR".into()));
    assert_eq!(value(&ran, "dram"), ("64MiB".into(), "forebay.toml".into()));
    assert_eq!(value(&ran, "tls-ca"), ("ca.pem".into(), "--tls-ca".into()));
    assert_eq!(value(&ran, "worker-listen"), ("127.0.0.1:7401".into(), "default".into()));
    assert_eq!(value(&ran, "token").0, "(set)");
    for (switch, variable) in [("query-history", "FOREBAY_QUERY_HISTORY"), ("data-scheduler", "FOREBAY_DATA_SCHEDULER")] {
        assert_eq!(value(&ran, switch), ("false".into(), variable.into()));
    }
    let flag = forebay_with(
        home.path(),
        &["config", "--json", "--coordinator", "127.0.0.1:3"],
        |command| {
            command.env("FOREBAY_COORDINATOR", "127.0.0.1:2");
        },
        b"",
    );
    assert_eq!(value(&flag.ok(), "coordinator"), ("127.0.0.1:3".into(), "--coordinator".into()));
}

#[test]
fn file_roots_are_a_list_or_text_and_whole_paths() {
    let home = tempfile::tempdir().unwrap();
    for written in ["[\"/srv/a\", \"/srv/b\"]", "\"/srv/a, /srv/b\""] {
        fs::write(home.path().join("forebay.toml"), format!("file-roots = {written}\ndirect-stores = true\n")).unwrap();
        let ran = forebay_in(home.path(), &["config", "--json"]).ok();
        assert_eq!(value(&ran, "file-roots").0, "/srv/a,/srv/b", "{written}");
        assert_eq!(value(&ran, "direct-stores").0, "true");
    }
    fs::write(home.path().join("forebay.toml"), "file-roots = \"data\"\n").unwrap();
    forebay_in(home.path(), &["config"]).fails(2, &["whole path"]);
}

#[test]
fn what_config_prints_can_be_kept_as_a_file() {
    let home = tempfile::tempdir().unwrap();
    let printed = forebay_in(home.path(), &["config"]).ok().text();
    fs::write(home.path().join("kept.toml"), &printed).unwrap();
    let again = forebay_in(home.path(), &["config", "--config", "kept.toml"]).ok().text();
    let values = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(values(&again), values(&printed));
    assert!(values(&printed).contains(&"coordinator = \"127.0.0.1:7400\"".to_string()), "{printed}");
}

#[test]
fn slots_are_a_number_wherever_they_are_written() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("forebay.toml"), "slots = 3\ndata-scheduler = false\njob-order = \"fair\"\n").unwrap();
    let printed = forebay_in(home.path(), &["config"]).ok().text();
    for line in ["slots = 3\n", "data-scheduler = false\n", "job-order = \"fair\"\n"] {
        assert!(printed.contains(line), "no {line:?} in {printed}");
    }
    let variable = |slots: &'static str| {
        move |command: &mut std::process::Command| {
            command.env("FOREBAY_SLOTS", slots).env("FOREBAY_DATA_SCHEDULER", "yes");
        }
    };
    let ran = forebay_with(home.path(), &["config", "--json"], variable("4"), b"").ok();
    assert_eq!(value(&ran, "slots"), ("4".into(), "FOREBAY_SLOTS".into()));
    assert_eq!(value(&ran, "data-scheduler"), ("true".into(), "FOREBAY_DATA_SCHEDULER".into()));
    forebay_with(home.path(), &["config"], variable("0"), b"").fails(2, &["slots", "1 to 1024"]);
}

#[test]
fn unknown_keys_are_errors_that_name_the_key_and_the_file() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("forebay.toml"), "data_dir = \"x\"\n").unwrap();
    forebay_in(home.path(), &["config"]).fails(2, &["\"data_dir\"", "forebay.toml", "did you mean data-dir?"]);
    fs::write(home.path().join("forebay.toml"), "").unwrap();
    let variable = |command: &mut std::process::Command| {
        command.env("FOREBAY_DISKS", "1GiB");
    };
    forebay_with(home.path(), &["config"], variable, b"").fails(2, &["FOREBAY_DISKS", "did you mean disk?"]);
    forebay_in(home.path(), &["config", "--config", "missing.toml"]).fails(2, &["missing.toml", "no such file"]);
}

#[test]
fn values_without_sense_are_errors_that_name_their_source() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("forebay.toml"), "dram = \"lots\"\n").unwrap();
    forebay_in(home.path(), &["config"]).fails(2, &["dram", "forebay.toml", "\"lots\" is no size"]);
    fs::write(home.path().join("forebay.toml"), "dram = [\n").unwrap();
    forebay_in(home.path(), &["config"]).fails(2, &["forebay.toml"]);
    fs::remove_file(home.path().join("forebay.toml")).unwrap();
    forebay_in(home.path(), &["up", "--lease", "5"]).fails(2, &["lease", "no duration"]);
    forebay_in(home.path(), &["up", "--dram", "lots"]).fails(2, &["--dram", "no size"]);
    forebay_in(home.path(), &["nonsense"]).fails(2, &["nonsense"]);
    forebay_in(home.path(), &["cat", "lake/x"]).fails(2, &["lake/x", "/MOUNT/KEY"]);
}

#[test]
fn settings_that_nothing_starts_with_are_wrong_usage_wherever_they_are_read() {
    let home = tempfile::tempdir().unwrap();
    let wrong = [
        ("FOREBAY_LEASE", "0s", "2s is the least"),
        ("FOREBAY_DRAM", "0B", "1MiB"),
        ("FOREBAY_DISK", "1B", "0B for none"),
        ("FOREBAY_DISK_FOLDERS", "/tmp=1B", "disk-folders"),
        ("FOREBAY_METADATA", "mysql://me:hidden@db", "sqlite:PATH"),
        ("FOREBAY_OTLP_ENDPOINT", "localhost:4318", "http://HOST:4318"),
        ("FOREBAY_S3_ACCESS_KEY", "half", "go together"),
        ("FOREBAY_CLUSTER_SECRET", "short", "16 or more"),
        ("FOREBAY_WINDOW", "1ms", "100ms"),
        ("FOREBAY_STORAGE_SHARE", "1%", "0.05"),
    ];
    for (variable, value, words) in wrong {
        for command in ["config", "up"] {
            let change = |command: &mut std::process::Command| {
                command.env(variable, value);
            };
            let ran = forebay_with(home.path(), &[command], change, b"").fails(2, &[words]);
            assert!(!ran.stderr.contains("hidden"), "{}", ran.stderr);
        }
    }
}

#[test]
fn an_empty_name_of_a_file_in_the_environment_is_none() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("forebay.toml"), "dram = \"64MiB\"\n").unwrap();
    let empty = |command: &mut std::process::Command| {
        command.env("FOREBAY_CONFIG", "");
    };
    let ran = forebay_with(home.path(), &["config", "--json"], empty, b"").ok();
    assert_eq!(value(&ran, "dram"), ("64MiB".into(), "forebay.toml".into()));
}

#[test]
fn an_empty_secret_in_the_environment_is_none() {
    let home = tempfile::tempdir().unwrap();
    let change = |command: &mut std::process::Command| {
        command.env("FOREBAY_TOKEN", "").env("FOREBAY_CLUSTER_SECRET", "");
    };
    let ran = forebay_with(home.path(), &["config", "--json"], change, b"").ok();
    assert_eq!(value(&ran, "token"), (String::new(), "default".into()));
}

#[test]
fn beyond_this_machine_a_secret_is_needed() {
    let home = tempfile::tempdir().unwrap();
    for flag in ["--coordinator-listen", "--worker-listen", "--http", "--flight"] {
        forebay_in(home.path(), &["up", flag, "0.0.0.0:0"]).fails(2, &[flag, "0.0.0.0:0", "FOREBAY_CLUSTER_SECRET"]);
    }
    for (variable, key) in [("FOREBAY_TOKEN", "token"), ("FOREBAY_CLUSTER_SECRET", "cluster-secret")] {
        let change = |command: &mut std::process::Command| {
            command.env(variable, "can be guessed");
        };
        forebay_with(home.path(), &["up"], change, b"").fails(2, &[key, "16 or more", "forebay token add"]);
    }
    forebay_in(home.path(), &["up", "--worker-listen", "nonsense"]).fails(2, &["--worker-listen", "HOST:PORT"]);
}

#[test]
fn shells_get_completions_and_people_get_help() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        assert!(forebay_in(home.path(), &["completions", shell]).ok().text().contains("forebay"));
    }
    let help = forebay_in(home.path(), &["--help"]).ok().text();
    for command in ["up", "mount", "sql", "status", "demo"] {
        assert!(help.contains(command), "{help}");
    }
    assert!(!help.contains("demo-s3-server"));
}
