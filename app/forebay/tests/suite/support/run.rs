//! Runs the built binary to its end with an environment of its own and a deadline, and looks at what it said.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use forebay_demo::{ACCESS_KEY, SECRET_KEY};
use serde_json::Value;

/// No command of a test takes longer.
const DEADLINE: Duration = Duration::from_secs(90);

/// The binary with an environment of its own: no configuration of this machine, the test server's credentials.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("FOREBAY_")
            || text.starts_with("AWS_")
            || text.to_lowercase().ends_with("_proxy")
            || text == "RUST_LOG"
        {
            command.env_remove(&name);
        }
    }
    command
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        // The tables of tests are small.
        .env("FOREBAY_DISTRIBUTE_FROM", "0B")
        .env("FOREBAY_TASK_BYTES", "0B")
        .current_dir(home)
        .stdin(Stdio::null());
    command
}

/// The same after a line of shell, which sets what a process inherits. All that it reads and says goes by pipes.
pub fn after(line: &str, plain: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{line} && exec \"$0\" \"$@\"")]).arg(plain.get_program()).args(plain.get_args());
    shell.current_dir(plain.get_current_dir().unwrap());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// What a command did.
pub struct Ran {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    what: String,
}

impl Ran {
    fn of(what: String, output: Output) -> Self {
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: output.stdout, stderr: String::from_utf8_lossy(&output.stderr).into_owned(), what }
    }

    /// It must have gone well.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "forebay {} failed: {}", self.what, self.stderr);
        self
    }

    /// It must have failed with this code and a message that begins with `forebay: ` and holds all of `words`.
    #[track_caller]
    pub fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "forebay {}: {} {}", self.what, self.text(), self.stderr);
        let message = self.stderr.lines().find(|line| line.starts_with("forebay: "));
        let message = message.unwrap_or_else(|| panic!("forebay {} says no error: {:?}", self.what, self.stderr));
        let all = &self.stderr[self.stderr.find(message).unwrap()..];
        for word in words {
            assert!(all.contains(word), "forebay {}: {all:?} does not say {word:?}", self.what);
        }
        self
    }

    #[track_caller]
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_string).collect()
    }

    /// The output as one JSON object a line.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        let parse = |line: &String| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        self.lines().iter().map(parse).collect()
    }
}

/// Runs the binary in `home`.
#[track_caller]
pub fn forebay_in(home: &Path, arguments: &[&str]) -> Ran {
    forebay_with(home, arguments, |_| (), b"")
}

/// Runs the binary against a coordinator, with an empty home.
#[track_caller]
pub fn forebay(coordinator: &str, arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    forebay_with(home.path(), &[arguments, &["--coordinator", coordinator]].concat(), |_| (), b"")
}

/// The same as who shows this token, or nothing, and is of a user to whom no coordinator is announced.
#[track_caller]
pub fn forebay_as<'a>(token: impl Into<Option<&'a str>>, coordinator: &str, arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    let token: Option<&str> = token.into();
    let change = |command: &mut Command| {
        command.env("XDG_RUNTIME_DIR", "/none").envs(token.map(|token| ("FOREBAY_TOKEN", token)));
    };
    forebay_with(home.path(), &[arguments, &["--coordinator", coordinator]].concat(), change, b"")
}

/// Runs the binary against a coordinator until `is_ready`, and interrupts it then; gives its exit code, and how long it took to end.
#[track_caller]
pub fn interrupted(coordinator: &str, arguments: &[&str], is_ready: impl FnOnce()) -> (Option<i32>, Duration) {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(home.path());
    command.args(arguments).args(["--coordinator", coordinator]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    is_ready();
    interrupt(child)
}

/// Waits until this is there, 30 s at most.
#[track_caller]
pub fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(is) = is() {
            return is;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{what} does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Interrupts a run of the binary; gives its exit code, and how long it took to end.
#[track_caller]
pub fn interrupt(mut child: Child) -> (Option<i32>, Duration) {
    let began = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), began.elapsed());
        }
        if began.elapsed() > DEADLINE {
            let _ = child.kill();
            panic!("forebay does not end {DEADLINE:?} after it was interrupted");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs the binary as `change` wants it, with `input` as its standard input.
#[track_caller]
pub fn forebay_with(home: &Path, arguments: &[&str], change: impl FnOnce(&mut Command), input: &[u8]) -> Ran {
    let what = arguments.join(" ");
    let mut command = command(home);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    change(&mut command);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that doesn't read its input closes it.
        let _ = stdin.write_all(&input);
    });
    let id = child.id();
    let reader = std::thread::spawn(move || child.wait_with_output().unwrap());
    let started = Instant::now();
    while !reader.is_finished() {
        if started.elapsed() > DEADLINE {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            panic!("forebay {what} takes longer than {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    writer.join().unwrap();
    Ran::of(what, reader.join().unwrap())
}
