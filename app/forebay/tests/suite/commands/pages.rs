//! Commands that the README and the pages of docs/ show are there, with the flags that they show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::forebay_in;

/// What `--help` of a command tells.
struct Help {
    commands: BTreeSet<String>,
    wants_command: bool,
    flags: BTreeSet<String>,
}

impl Help {
    fn of(text: &str) -> Self {
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let commands = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).map(str::to_owned).collect();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        let flags = words.filter(|word| word.starts_with("--")).map(str::to_owned).collect();
        Self { commands, wants_command: text.contains("<COMMAND>"), flags }
    }
}

/// The pages below a folder, but for those of bytes.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("specs") {
            continue;
        }
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Text that is a shell's: blocks without a language or of `sh`, and what begins so between back quotes in a line.
fn shell(page: &str) -> Vec<String> {
    let (mut found, mut block, mut is_shell) = (Vec::new(), None, false);
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), &mut block) {
            (Some(language), None) => (block, is_shell) = (Some(String::new()), ["", "sh"].contains(&language)),
            (Some(_), Some(text)) => {
                found.extend(is_shell.then(|| std::mem::take(text)));
                block = None;
            }
            (None, Some(text)) => *text += &format!("{line}\n"),
            (None, None) => {
                let spoken = line.split('`').skip(1).step_by(2);
                found.extend(spoken.filter(|text| text.starts_with("forebay ")).map(str::to_owned));
            }
        }
    }
    found
}

/// The words behind each `forebay`, up to where its command ends; what is in quotes is left out.
fn commands(text: &str) -> Vec<Vec<String>> {
    let (mut found, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let text = text.replace("\\\n", " ");
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' | '\'' => {
                letters.by_ref().take_while(|other| *other != letter).for_each(drop);
                // A word all the same, and no flag.
                word.push('"');
            }
            '#' if word.is_empty() => {
                letters.by_ref().take_while(|other| *other != '\n').for_each(drop);
                end(&mut words, &mut found);
            }
            ' ' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                if letter != ' ' {
                    end(&mut words, &mut found);
                }
            }
            other => word.push(other),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    end(&mut words, &mut found);
    found
}

fn end(words: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let words = std::mem::take(words);
    // `sudo -u forebay` names a user.
    let at = (0..words.len()).find(|at| words[*at] == "forebay" && (*at == 0 || words[at - 1] != "-u"));
    found.extend(at.map(|at| words[at + 1..].to_vec()).filter(|words| !words.is_empty()));
}

/// What is wrong with a command, if anything.
fn wrong(words: &[String], helps: &mut BTreeMap<Vec<String>, Help>) -> Option<String> {
    let mut path = Vec::new();
    let mut rest = words.iter().peekable();
    loop {
        let help = helps.entry(path.clone()).or_insert_with(|| {
            let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
            Help::of(&forebay_in(&std::env::temp_dir(), &arguments).ok().text())
        });
        match rest.peek() {
            Some(word) if help.commands.contains(*word) => path.extend(rest.next().cloned()),
            Some(word) if help.wants_command && !word.starts_with('-') => return Some(format!("there is no command {word}")),
            _ => {
                let flags = rest.take_while(|word| *word != "--").filter(|word| word.starts_with("--"));
                let mut names = flags.map(|flag| flag.split('=').next().unwrap_or_default());
                return names.find(|name| !help.flags.contains(*name)).map(|name| format!("there is no flag {name}"));
            }
        }
    }
}

#[test]
fn a_command_or_a_flag_that_is_not_there_is_found() {
    let page = "Of `forebay here`, not `a forebay there`.\n```\n$ A=1 forebay ls -l \"a # b; c\" --json | head   # --x; forebay no\n\
                sudo -u forebay env B=2 forebay up \\\n  --dram 1GiB; X=$(forebay jobs cancel ID)\n```\n```python\nforebay none\n```\n";
    let found: Vec<String> = shell(page).iter().flat_map(|text| commands(text)).map(|words| words.join(" ")).collect();
    assert_eq!(found, ["here", "ls -l \" --json", "up --dram 1GiB", "jobs cancel ID"]);
    let mut helps = BTreeMap::new();
    let mut wrong = |command: &str| wrong(&command.split(' ').map(str::to_owned).collect::<Vec<_>>(), &mut helps);
    for right in ["ls -l /lake --json", "mount add lake s3://x --bandwidth=1Gbit", "worker --dram 1GiB", "worker drain 1 --wait"]
    {
        assert_eq!(wrong(right), None, "{right}");
    }
    for (wanted, command) in
        [("no command nothing", "nothing"), ("no command take", "mount take x"), ("no flag --wait", "ls --wait")]
    {
        assert!(wrong(command).is_some_and(|what| what.contains(wanted)), "{command}");
    }
}

#[test]
fn commands_that_pages_show_are_there_with_their_flags() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut paths);
    let (mut helps, mut found, mut seen) = (BTreeMap::new(), Vec::new(), 0);
    for path in paths {
        for command in shell(&std::fs::read_to_string(&path).unwrap()).iter().flat_map(|text| commands(text)) {
            // Words in capitals stand for any command.
            if command[0].chars().all(|letter| letter.is_ascii_uppercase()) {
                continue;
            }
            seen += 1;
            let what =
                wrong(&command, &mut helps).map(|what| format!("{}: {what}: forebay {}", path.display(), command.join(" ")));
            found.extend(what);
        }
    }
    assert!(seen > 100 && found.is_empty(), "{seen} commands\n{}", found.join("\n"));
}
