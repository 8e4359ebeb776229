//! The outbox of a connection, in every order that its threads can run in: `make loom`.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{FrameKind, PROTOCOL_VERSION};
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;

use super::{Direct, Outbox, Through};
use crate::frames::batch::{Batch, OutFrame};

/// A socket that is full at one of its calls, and the bytes that it took.
struct Wire {
    calls: AtomicUsize,
    full_at: usize,
    took: AtomicUsize,
    /// Senders within: never more than one.
    within: AtomicUsize,
}

impl Direct for Wire {
    fn send(&self, batch: &mut Batch) -> io::Result<usize> {
        assert_eq!(self.within.fetch_add(1, SeqCst), 0, "two send at once");
        let full = self.calls.fetch_add(1, SeqCst) == self.full_at;
        let sent = match full {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => batch.send_with(|slices, _| {
                let bytes = slices.iter().map(|slice| slice.len()).sum();
                self.took.fetch_add(bytes, SeqCst);
                Ok(bytes)
            }),
        };
        self.within.fetch_sub(1, SeqCst);
        sent
    }
}

/// The writer's end of it.
struct Writer(Arc<Wire>);

impl Through for Writer {
    async fn send(&mut self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            match self.0.send(batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
        }
    }

    async fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn frame(tag: u64) -> OutFrame {
    OutFrame::new(PROTOCOL_VERSION, FrameKind::Request, tag, Bytes::from_static(b"asked"), Vec::new(), None).unwrap()
}

/// Two threads put frames in while the writer runs and the socket may be full: all go through, once, by one sender at a time. A frame
/// that nobody sends is waited for for ever, which loom sees.
fn all_go_through(full_at: usize, put: [fn(&Outbox, OutFrame); 2]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let wire = Arc::new(Wire { calls: AtomicUsize::new(0), full_at, took: AtomicUsize::new(0), within: AtomicUsize::new(0) });
        let direct: Arc<dyn Direct> = wire.clone();
        let outbox = Arc::new(Outbox::over(Some(direct), false, Arc::default()));
        let writing = thread::spawn({
            let (outbox, writer) = (Arc::clone(&outbox), Writer(Arc::clone(&wire)));
            move || loom::future::block_on(outbox.write(writer)).unwrap()
        });
        let other = thread::spawn({
            let outbox = Arc::clone(&outbox);
            move || put[1](&outbox, frame(2))
        });
        put[0](&outbox, frame(1));
        other.join().unwrap();
        loom::future::block_on(outbox.drained_to(0));
        assert_eq!(wire.took.load(SeqCst), frame(1).bytes + frame(2).bytes);
        outbox.close();
        writing.join().unwrap();
    });
}

fn soon(outbox: &Outbox, frame: OutFrame) {
    outbox.send_soon(frame, usize::MAX);
}

fn by_twos(outbox: &Outbox, frame: OutFrame) {
    outbox.send_soon(frame, 2);
}

#[test]
fn frames_sent_at_once_go_through() {
    for full_at in [0, 1, usize::MAX] {
        all_go_through(full_at, [Outbox::send, Outbox::send]);
    }
}

#[test]
fn frames_left_to_the_writer_go_through() {
    for full_at in [0, 1, usize::MAX] {
        all_go_through(full_at, [Outbox::send, soon]);
        all_go_through(full_at, [soon, soon]);
    }
}

#[test]
fn frames_that_the_last_one_sends_together_go_through() {
    for full_at in [0, 1, usize::MAX] {
        all_go_through(full_at, [by_twos, by_twos]);
        all_go_through(full_at, [Outbox::send, by_twos]);
    }
}
