//! A checkout in a temporary folder with two benches that are shell scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use forebay_bench_figures::{Bench, Checkout, Machine, Measured, Programs, Record, Run, Table, gather};

const TABLE: &str = "[[bench]]\nname = 'first'\npackage = 'fast'\nargs = ['one']\n\
    [[bench.figure]]\nname = 'a'\nsays = 'figure a'\nline = { what = 'a' }\nunit = 'us'\npeer = 'pread'\nbar = '<= 2x'\nlimit = 'the page cache'\n\
    [[bench.figure]]\nname = 'b'\nsays = 'figure b'\nline = { what = 'b*' }\nunit = 'ops/s'\nbar = '>= 10 ops/s'\n\
    [[bench]]\nname = 'second'\npackage = 'slow'\n\
    [[bench.figure]]\nname = 'c'\nsays = 'figure c'\nline = { what = 'c' }\nunit = 'GB/s'\n";

const FIRST: &str = "#!/bin/sh\necho first $1 >> order\necho '{\"what\":\"a\",\"value\":10,\"peer_value\":5}'\n\
    echo '{\"what\":\"b (7)\",\"value\":9}'\nexit 1\n";
pub(crate) const SECOND: &str = "#!/bin/sh\necho second >> order\necho '{\"what\":\"c\",\"value\":3.5}'\n";
pub(crate) const BROKEN: &str = "#!/bin/sh\necho 'no server' >&2\nexit 101\n";

/// One with its own folder, which goes with it.
pub(crate) struct Made {
    pub(crate) checkout: Checkout,
    pub(crate) table: Table,
    programs: Programs,
    _folder: tempfile::TempDir,
}

impl Made {
    /// The second bench is this script.
    pub(crate) fn with_second(second: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("bench")).unwrap();
        fs::create_dir_all(root.join("docs")).unwrap();
        let section = |name: &str| format!("head\n<!-- {name}:begin -->\n<!-- {name}:end -->\ntail\n");
        fs::write(root.join("README.md"), section("figures")).unwrap();
        fs::write(root.join("docs/benchmarks.md"), section("figures")).unwrap();
        fs::write(root.join("docs/limits.md"), section("limits")).unwrap();
        fs::write(root.join("bench/figures.toml"), TABLE).unwrap();
        let programs = [("fast", FIRST), ("slow", second)].map(|(name, text)| (name.to_owned(), script(root, name, text)));
        let checkout = Checkout::at(root);
        let table = Table::read(&checkout.table()).unwrap();
        Self { checkout, table, programs: Programs::known(programs), _folder: folder }
    }

    /// Runs these benches so many rounds and puts what came of it in the place of what was there.
    pub(crate) fn measured(&self, record: &Record, began: &str, benches: &[&str], rounds: usize) -> Record {
        let benches: Vec<&Bench> = self.table.benches.iter().filter(|bench| benches.contains(&bench.name.as_str())).collect();
        let mut measured = Measured::default();
        for round in 1..=rounds {
            gather(&self.checkout.root, &benches, &self.programs, round, &mut measured, |_| ()).unwrap();
        }
        let (commit, machine) = (format!("commit of {began}"), Machine::here().unwrap());
        let run = Run { commit, changed: false, rounds, machine, starts: measured.starts };
        record.with_run(&self.table, began, run, &measured.points)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.checkout.file(path)).unwrap()
    }

    /// Changes a file by hand.
    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.text(path);
        assert!(text.contains(from), "{path} has no {from:?}: {text}");
        fs::write(self.checkout.file(path), text.replace(from, to)).unwrap();
    }
}

fn script(root: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = root.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
