//! The ring between a client and a server, in every order that their threads can run in: `make loom`.

use bytes::Bytes;
use forebay_protocol::Left;
use loom::thread;

use super::slots::{Found, Look, Slots};

/// What became of a call at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Never,
    /// The client looks in the ring for it.
    InRing,
    /// By the socket.
    Otherwise,
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(check);
}

fn sides() -> (Slots, Slots) {
    let (server, _) = Slots::create(true).unwrap();
    let client = server.other_side();
    (server, client)
}

fn request(call: u64) -> [u8; 4] {
    (call as u32 + 7).to_le_bytes()
}

/// Takes a call if it is there, and answers with what it asked.
fn serve(server: &Slots, call: u64) -> Served {
    match server.take(call).unwrap() {
        Found::Nothing | Found::Withdrawn => Served::Never,
        Found::Request(found) => {
            assert_eq!((found.tag, &found.meta[..]), (call + 1, &request(call)[..]), "the request as it was put in");
            if server.answer(call, &found.meta, &[Bytes::new()]) { Served::InRing } else { Served::Otherwise }
        }
    }
}

/// What the client knows in the end is what the server did.
fn agree(call: u64, look: &Look, served: Served) {
    match look {
        Look::Answer(meta, _) => {
            assert_eq!(&meta[..], &request(call)[..], "the answer as it was given");
            assert_eq!(served, Served::InRing);
        }
        Look::Later => assert_eq!(served, Served::Otherwise, "somebody waits at the socket"),
        Look::Withdrawn => assert_eq!(served, Served::Never, "it is asked again by the socket"),
        Look::Nothing => panic!("a client that leaves knows what comes"),
    }
}

#[test]
fn who_leaves_is_answered_once_or_was_never_heard() {
    model(|| {
        let (server, client) = sides();
        let serving = thread::spawn(move || (serve(&server, 0), server));
        assert!(client.put(0, 1, Left::default(), &request(0), b""));
        let look = match client.look(0).unwrap() {
            Look::Nothing => client.leave(0).unwrap(),
            found => found,
        };
        let (served, server) = serving.join().unwrap();
        agree(0, &look, served);
        // A request that was taken back is seen by the server, and then its slot is another call's.
        if server.has(0) {
            assert!(matches!(look, Look::Withdrawn));
            assert!(matches!(server.take(0).unwrap(), Found::Withdrawn));
        }
        assert!(client.put(1, 2, Left::default(), &request(1), b""), "the slot is free again");
        assert_eq!(serve(&server, 1), Served::InRing);
        agree(1, &client.look(1).unwrap(), Served::InRing);
    });
}

#[test]
fn a_slot_that_was_left_is_never_mixed_up_with_the_next_call() {
    model(|| {
        let (server, client) = sides();
        assert!(client.put(0, 1, Left::default(), &request(0), b""));
        let serving = thread::spawn(move || {
            let first = serve(&server, 0);
            // The next number is looked at once the one before is over.
            let second = if first == Served::Never { Served::Never } else { serve(&server, 1) };
            (first, second)
        });
        let first = client.leave(0).unwrap();
        let second = client.put(1, 2, Left::default(), &request(1), b"").then(|| client.leave(1).unwrap());
        let served = serving.join().unwrap();
        agree(0, &first, served.0);
        if let Some(second) = second { agree(1, &second, served.1) } else { assert_eq!(served.1, Served::Never) }
    });
}
