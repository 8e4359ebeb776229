//! The terminal: what is drawn on it, and the keys that come from it.

use std::io;
use std::time::Duration;

use forebay_types::Result;
use futures::FutureExt;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::draw::{Picture, draw};
use super::history::History;
use super::sample::{Asker, Sample};
use super::view::{Press, View};
use crate::exit::{Failure, Outcome};

/// Keys that wait to be done.
const KEYS_MAX: usize = 64;
/// How often it is looked whether keys are still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The terminal, taken over until this is dropped.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Outcome<Self> {
        ratatui::try_init().map(Self).map_err(Failure::of_stdout)
    }

    fn draw(&mut self, picture: &Picture<'_>) -> Outcome {
        self.0.draw(|frame| draw(frame, picture)).map(|_| ()).map_err(Failure::of_stdout)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

/// Draws the cluster until somebody quits: at each look, and at each key.
pub(super) async fn run(asker: &Asker<'_>, interval: Duration) -> Outcome {
    let mut screen = Screen::open()?;
    let (sender, mut presses) = mpsc::channel(KEYS_MAX);
    let _listening = AbortOnDropHandle::new(forebay_runtime::spawn_blocking(move || listen(&sender)));
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

/// Hands keys over as long as somebody wants them. Reading them waits, so that this has a thread of its own.
fn listen(presses: &mpsc::Sender<Press>) -> io::Result<()> {
    while !presses.is_closed() {
        if !event::poll(LOOK)? {
            continue;
        }
        let press = match event::read()? {
            Event::Key(key) if !key.is_release() => of_key(key),
            Event::Resize(..) => Some(Press::Redraw),
            _ => None,
        };
        if let Some(press) = press
            && presses.blocking_send(press).is_err()
        {
            return Ok(());
        }
    }
    Ok(())
}

fn of_key(key: KeyEvent) -> Option<Press> {
    Some(match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => Press::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Press::Quit,
        KeyCode::Tab => Press::NextPane,
        KeyCode::BackTab => Press::PaneBefore,
        KeyCode::Char(digit @ '1'..='9') => Press::Pane(digit as usize - '1' as usize),
        KeyCode::Left | KeyCode::Char('<') => Press::Left,
        KeyCode::Right | KeyCode::Char('>') => Press::Right,
        KeyCode::Char('r') => Press::Reverse,
        KeyCode::Up | KeyCode::Char('k') => Press::Up,
        KeyCode::Down | KeyCode::Char('j') => Press::Down,
        KeyCode::PageUp => Press::PageUp,
        KeyCode::PageDown => Press::PageDown,
        KeyCode::Home => Press::First,
        KeyCode::End => Press::Last,
        KeyCode::Char('p' | ' ') => Press::Pause,
        KeyCode::Char('?' | 'h') => Press::Help,
        _ => return None,
    })
}
