//! The terminal: what is drawn on it, and the keys that come from it.

use std::io::{Stdout, stdout};
use std::time::Duration;

use forebay_types::Result;
use futures::FutureExt;
use ratatui::Terminal;
use ratatui::backend::TermionBackend;
use ratatui::termion::event::Key;
use ratatui::termion::get_tty;
use ratatui::termion::input::TermRead;
use ratatui::termion::raw::{IntoRawMode, RawTerminal};
use ratatui::termion::screen::{AlternateScreen, IntoAlternateScreen};
use tokio::sync::mpsc;

use super::draw::{Picture, draw};
use super::history::History;
use super::sample::{Asker, Sample};
use super::view::{Press, View};
use crate::exit::{Failure, Outcome};

/// Keys that wait to be done.
const KEYS_MAX: usize = 64;

/// The terminal, taken over until this is dropped.
struct Screen(Terminal<TermionBackend<AlternateScreen<RawTerminal<Stdout>>>>);

impl Screen {
    fn open() -> Outcome<Self> {
        let raw = stdout().into_raw_mode().and_then(IntoAlternateScreen::into_alternate_screen);
        raw.and_then(|taken| Terminal::new(TermionBackend::new(taken))).map(Self).map_err(Failure::of_stdout)
    }

    fn draw(&mut self, picture: &Picture<'_>) -> Outcome {
        self.0.draw(|frame| draw(frame, picture)).map(|_| ()).map_err(Failure::of_stdout)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing. The rest is given back as what took it is dropped.
        let _ = self.0.show_cursor();
    }
}

/// Draws the cluster until somebody quits: at each look, and at each key.
pub(super) async fn run(asker: &Asker<'_>, interval: Duration) -> Outcome {
    let mut screen = Screen::open()?;
    let (sender, mut presses) = mpsc::channel(KEYS_MAX);
    // It waits for keys, which may never come: the process ends without waiting for it.
    std::thread::Builder::new().name("keys".to_string()).spawn(move || listen(&sender)).map_err(Failure::of_stdout)?;
    let (mut view, mut history) = (View::default(), History::default());
    let (mut sample, mut wrong): (Option<Sample>, Option<String>) = (None, None);
    let mut next = asker.sample().boxed_local();
    loop {
        screen.draw(&Picture { view: &view, history: &history, sample: sample.as_ref(), wrong: wrong.as_deref() })?;
        tokio::select! {
            looked = &mut next => {
                match looked {
                    Ok(looked) if !view.is_paused => {
                        history.note(&looked);
                        (sample, wrong) = (Some(looked), None);
                    }
                    Ok(_) => {}
                    // A coordinator that is away may come back: what was seen last stays.
                    Err(error) => wrong = Some(error.to_string()),
                }
                next = later(asker, interval).boxed_local();
            }
            press = presses.recv() => {
                let lines = sample.as_ref().map_or(0, |sample| view.pane().count(sample));
                match press {
                    Some(press) if view.press(press, lines) => {}
                    _ => return Ok(()),
                }
            }
        }
    }
}

async fn later(asker: &Asker<'_>, interval: Duration) -> Result<Sample> {
    forebay_runtime::time::sleep(interval).await;
    asker.sample().await
}

/// Hands keys over as long as somebody wants them.
fn listen(presses: &mpsc::Sender<Press>) {
    let Ok(terminal) = get_tty() else { return };
    for key in terminal.keys() {
        let Ok(key) = key else { return };
        if let Some(press) = of_key(key)
            && presses.blocking_send(press).is_err()
        {
            return;
        }
    }
}

fn of_key(key: Key) -> Option<Press> {
    Some(match key {
        Key::Char('q') | Key::Esc | Key::Ctrl('c' | 'd') => Press::Quit,
        Key::Ctrl('l') => Press::Redraw,
        Key::Char('\t') => Press::NextPane,
        Key::BackTab => Press::PaneBefore,
        Key::Char(digit @ '1'..='9') => Press::Pane(digit as usize - '1' as usize),
        Key::Left | Key::Char('<') => Press::Left,
        Key::Right | Key::Char('>') => Press::Right,
        Key::Char('r') => Press::Reverse,
        Key::Up | Key::Char('k') => Press::Up,
        Key::Down | Key::Char('j') => Press::Down,
        Key::PageUp => Press::PageUp,
        Key::PageDown => Press::PageDown,
        Key::Home => Press::First,
        Key::End => Press::Last,
        Key::Char('p' | ' ') => Press::Pause,
        Key::Char('?' | 'h') => Press::Help,
        _ => return None,
    })
}
