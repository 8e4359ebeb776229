//! Types into the prompt of `forebay sql` on a real terminal, and waits for what it shows.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A command on a terminal of its own, which `script` makes.
pub struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    /// Starts the prompt of `forebay sql` and waits for it.
    #[track_caller]
    pub fn open(home: &Path, coordinator: &str, flags: &str) -> Self {
        let command = format!("{} sql {flags} --coordinator {coordinator}", env!("CARGO_BIN_EXE_forebay"));
        Self::start(home, &command, "forebay> ")
    }

    /// Starts `forebay top` and waits for its first picture.
    #[track_caller]
    pub fn top(home: &Path, coordinator: &str) -> Self {
        let command = format!("stty cols 160 rows 40; {} top --coordinator {coordinator}", env!("CARGO_BIN_EXE_forebay"));
        // Blanks are not drawn: what is waited for is one word.
        Self::start(home, &command, "waiting")
    }

    #[track_caller]
    fn start(home: &Path, command: &str, first: &str) -> Self {
        let mut child = Command::new("script")
            .args(["-q", "-e", "-c", command, "/dev/null"])
            .env("HOME", home)
            .env("TERM", "xterm")
            .env("AWS_ACCESS_KEY_ID", forebay_demo::ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", forebay_demo::SECRET_KEY)
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdout, shown) = (child.stdout.take().unwrap(), Arc::new(Mutex::new(String::new())));
        let screen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut bytes) {
                screen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        let terminal = Self { keys: child.stdin.take(), child, shown };
        terminal.wait_for(first, 1);
        terminal
    }

    /// Types a line.
    #[track_caller]
    pub fn line(&mut self, text: &str) {
        let keys = self.keys.as_mut().unwrap();
        keys.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    #[track_caller]
    pub fn wait_for(&self, words: &str, times: usize) {
        let started = Instant::now();
        while self.shown.lock().unwrap().matches(words).count() < times {
            assert!(started.elapsed() < Duration::from_secs(60), "no {words:?} in {}", self.shown.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Quits; gives everything that was shown.
    #[track_caller]
    pub fn quit(mut self) -> String {
        // The prompt takes it as a command, all else takes the `q` alone.
        self.line("\\q");
        let status = self.child.wait().unwrap();
        let shown = self.shown.lock().unwrap().clone();
        assert!(status.success(), "{status}: {shown}");
        shown
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
