//! The slots of a ring, each with one request and its answer.

use std::os::fd::OwnedFd;

use bytes::Bytes;
use forebay_protocol::Left;
use forebay_types::{Error, Result};

use super::lengths;
use super::memory::Memory;
use super::words::{AtomicU64, Ordering::*, copy_in, copy_out};

/// Bytes of a message and its payload together, of a request and of an answer: a value of 16 KiB, its path, and room to spare.
#[cfg(not(feature = "models"))]
pub(crate) const MESSAGE_BYTES_MAX: usize = 20 << 10;
/// Calls in a ring at a time. Each belongs to a caller that looks for its answer.
#[cfg(not(feature = "models"))]
const SLOTS: u64 = 16;
/// As little as shows everything: each word more is many orders more.
#[cfg(feature = "models")]
pub(crate) const MESSAGE_BYTES_MAX: usize = 8;
#[cfg(feature = "models")]
const SLOTS: u64 = 1;

/// What a ring's memory begins with. It names the layout: `docs/specs/protocol.md`.
const LAYOUT: u64 = u64::from_le_bytes(*b"fbring01");
/// The same where requests say how long their answers are waited for.
const LAYOUT_TIMED: u64 = u64::from_le_bytes(*b"fbring02");

// Words, 8 to a cache line. What one side writes while the other reads lies in lines of its own.
const LAYOUT_AT: usize = 0;
const AWAKE_AT: usize = 8;
const SLOTS_AT: usize = 16;
const LINE: usize = 8;
const MESSAGE_WORDS: usize = MESSAGE_BYTES_MAX / 8;
/// Of a slot: state, tag, lengths, and the request.
const STATE: usize = 0;
const TAG: usize = 1;
const LENGTHS: usize = 2;
const REQUEST: usize = 3;
/// Lengths of the answer, and the answer. A part begins with a word of its own, hence one more.
const ANSWER_LENGTHS: usize = (REQUEST + MESSAGE_WORDS + 1).next_multiple_of(LINE);
const ANSWER: usize = ANSWER_LENGTHS + 1;
const SLOT_WORDS: usize = (ANSWER + MESSAGE_WORDS + 1).next_multiple_of(LINE);
const WORDS: usize = SLOTS_AT + SLOTS as usize * SLOT_WORDS;

/// States of a slot, below the number of the call that it is about.
const FREE: u64 = 0;
/// The server is to take it.
const ASKED: u64 = 1;
/// The server has it.
const TAKEN: u64 = 2;
/// The client is to take the answer.
const ANSWERED: u64 = 3;
/// The answer comes by the socket.
const LATER: u64 = 4;
/// Taken, and the client wants the answer by the socket.
const LEFT: u64 = 5;
/// The client has taken the request back before the server took it.
const WITHDRAWN: u64 = 6;
const STATE_BITS: u32 = 3;

fn state(call: u64, state: u64) -> u64 {
    call << STATE_BITS | state
}

/// A ring's memory, from both sides. Calls have numbers, from 0 on; each uses the slot of its number, and both sides know whose
/// turn it is there.
pub(crate) struct Slots {
    memory: Memory,
    /// Requests say how long their answers are waited for.
    is_timed: bool,
}

/// A request that the server has taken.
pub(crate) struct Request {
    pub(crate) tag: u64,
    pub(crate) left: Left,
    pub(crate) meta: Bytes,
    pub(crate) payload: Bytes,
}

/// What the server finds of a call.
pub(super) enum Found {
    Nothing,
    /// There is nothing to do for this call.
    Withdrawn,
    Request(Request),
}

/// What the client finds of its call.
pub(super) enum Look {
    Nothing,
    Answer(Bytes, Bytes),
    /// The answer comes by the socket.
    Later,
    /// It was never taken: it is to be asked by the socket.
    Withdrawn,
}

impl Slots {
    /// New memory of a server, with the descriptor for its client, which `is_timed` if it says how long it waits.
    pub(crate) fn create(is_timed: bool) -> Result<(Self, OwnedFd)> {
        let (memory, descriptor) = Memory::create(WORDS * 8)?;
        memory.words()[LAYOUT_AT].store(if is_timed { LAYOUT_TIMED } else { LAYOUT }, Relaxed);
        Ok((Self { memory, is_timed }, descriptor))
    }

    /// A server's memory, for its client.
    pub(super) fn open(descriptor: OwnedFd) -> Result<Self> {
        let memory = Memory::open(descriptor, WORDS * 8)?;
        match memory.words()[LAYOUT_AT].load(Relaxed) {
            LAYOUT => Ok(Self { memory, is_timed: false }),
            LAYOUT_TIMED => Ok(Self { memory, is_timed: true }),
            _ => Err(Error::invalid("the server's shared memory is of another layout: run one version of forebay")),
        }
    }

    /// The other side of a model.
    #[cfg(all(test, feature = "models"))]
    pub(super) fn other_side(&self) -> Self {
        Self { memory: self.memory.clone(), is_timed: self.is_timed }
    }

    #[cfg_attr(feature = "models", expect(clippy::modulo_one, reason = "a model has one slot"))]
    fn slot(&self, call: u64) -> &[AtomicU64] {
        &self.memory.words()[SLOTS_AT + (call % SLOTS) as usize * SLOT_WORDS..][..SLOT_WORDS]
    }

    /// Whether the server polls.
    pub(super) fn is_awake(&self) -> bool {
        self.memory.words()[AWAKE_AT].load(Relaxed) != 0
    }

    /// The server says whether it polls.
    pub(super) fn set_awake(&self, awake: bool) {
        self.memory.words()[AWAKE_AT].store(awake.into(), Release);
    }

    /// The client puts a request in; false when the slot is in use, or the request too long.
    pub(super) fn put(&self, call: u64, tag: u64, left: Left, meta: &[u8], payload: &[u8]) -> bool {
        let slot = self.slot(call);
        if slot[STATE].load(Acquire) & ((1 << STATE_BITS) - 1) != FREE || meta.len() + payload.len() > MESSAGE_BYTES_MAX {
            return false;
        }
        slot[TAG].store(tag, Relaxed);
        slot[LENGTHS].store(lengths::asked(self.is_timed, left, meta.len(), payload.len()), Relaxed);
        put_message(&slot[REQUEST..ANSWER_LENGTHS], meta, payload);
        slot[STATE].store(state(call, ASKED), Release);
        true
    }

    /// The client looks for the answer. The slot is free for another call unless there is nothing. `Invalid` when what is there
    /// makes no sense.
    pub(super) fn look(&self, call: u64) -> Result<Look> {
        let slot = self.slot(call);
        let found = slot[STATE].load(Acquire);
        let look = match found ^ state(call, 0) {
            ASKED | TAKEN => return Ok(Look::Nothing),
            ANSWERED => {
                let (meta, payload) = message(lengths::of_answer(slot[ANSWER_LENGTHS].load(Relaxed)), &slot[ANSWER..])?;
                Look::Answer(meta, payload)
            }
            LATER => Look::Later,
            _ => return Err(Error::invalid(format!("a ring's slot says {found:#x} of call {call}"))),
        };
        slot[STATE].store(state(call, FREE), Release);
        Ok(look)
    }

    /// The client waits no longer: takes the request back, or has the answer come by the socket, unless it has just come.
    pub(super) fn leave(&self, call: u64) -> Result<Look> {
        let word = &self.slot(call)[STATE];
        if word.compare_exchange(state(call, ASKED), state(call, WITHDRAWN), AcqRel, Acquire).is_ok() {
            return Ok(Look::Withdrawn);
        }
        if word.compare_exchange(state(call, TAKEN), state(call, LEFT), AcqRel, Acquire).is_ok() {
            return Ok(Look::Later);
        }
        self.look(call)
    }

    /// Whether there is something for the server to do about a call.
    pub(super) fn has(&self, call: u64) -> bool {
        let found = self.slot(call)[STATE].load(Relaxed);
        found == state(call, ASKED) || found == state(call, WITHDRAWN)
    }

    /// The server takes a request. `Invalid` when its lengths are none: the client breaks the protocol.
    pub(super) fn take(&self, call: u64) -> Result<Found> {
        let slot = self.slot(call);
        match slot[STATE].compare_exchange(state(call, ASKED), state(call, TAKEN), AcqRel, Acquire) {
            Ok(_) => {
                let (left, lengths) = lengths::of_request(self.is_timed, slot[LENGTHS].load(Relaxed));
                let (meta, payload) = message(lengths, &slot[REQUEST..ANSWER_LENGTHS])?;
                Ok(Found::Request(Request { tag: slot[TAG].load(Relaxed), left, meta, payload }))
            }
            Err(found) if found == state(call, WITHDRAWN) => {
                slot[STATE].store(state(call, FREE), Release);
                Ok(Found::Withdrawn)
            }
            Err(_) => Ok(Found::Nothing),
        }
    }

    /// The server answers; false when the answer is to go by the socket, as the client knows then: it is too long, or the client
    /// waits there. The slot may be another call's after this.
    pub(crate) fn answer(&self, call: u64, meta: &[u8], payload: &[Bytes]) -> bool {
        let bytes = meta.len() + payload.iter().map(Bytes::len).sum::<usize>();
        let slot = self.slot(call);
        let fits = bytes <= MESSAGE_BYTES_MAX && payload.len() <= 1;
        if fits {
            let payload = payload.first().map_or(&[][..], |payload| payload);
            slot[ANSWER_LENGTHS].store(lengths::answered(meta.len(), payload.len()), Relaxed);
            put_message(&slot[ANSWER..], meta, payload);
        }
        let to = if fits { ANSWERED } else { LATER };
        self.give_back(call, to) && fits
    }

    /// The server answers by the socket. The slot may be another call's after this.
    pub(crate) fn later(&self, call: u64) {
        self.give_back(call, LATER);
    }

    /// Whether the client looks in the ring still. A slot that it has left, or scribbled on, is free.
    fn give_back(&self, call: u64, to: u64) -> bool {
        let word = &self.slot(call)[STATE];
        let given = word.compare_exchange(state(call, TAKEN), state(call, to), AcqRel, Acquire).is_ok();
        if !given {
            word.store(state(call, FREE), Release);
        }
        given
    }
}

fn put_message(words: &[AtomicU64], meta: &[u8], payload: &[u8]) {
    let at = copy_in(words, meta);
    copy_in(&words[at..], payload);
}

/// Copies a message out. The lengths were read once; what they say is checked before it is used.
fn message((meta, payload): (usize, usize), words: &[AtomicU64]) -> Result<(Bytes, Bytes)> {
    if meta + payload > MESSAGE_BYTES_MAX {
        return Err(Error::invalid(format!("a message of {meta} + {payload} bytes is too long for a ring")));
    }
    let of_payload = &words[meta.div_ceil(8)..];
    let payload = if payload == 0 { Bytes::new() } else { copy_out(of_payload, payload).into() };
    Ok((copy_out(words, meta).into(), payload))
}

#[cfg(test)]
#[cfg(not(feature = "models"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair() -> (Slots, Slots) {
        let (server, descriptor) = Slots::create(true).unwrap();
        (server, Slots::open(descriptor).unwrap())
    }

    fn put(client: &Slots, call: u64, tag: u64, meta: &[u8], payload: &[u8]) -> bool {
        client.put(call, tag, Left::default(), meta, payload)
    }

    fn taken(server: &Slots, call: u64) -> Option<Request> {
        match server.take(call).unwrap() {
            Found::Request(request) => Some(request),
            Found::Nothing | Found::Withdrawn => None,
        }
    }

    #[test]
    fn a_call_goes_there_and_back_until_the_ring_is_full() {
        let (server, client) = pair();
        for round in 0..3 {
            let calls = round * SLOTS..(round + 1) * SLOTS;
            for call in calls.clone() {
                assert!(taken(&server, call).is_none());
                assert!(put(&client, call, call + 7, b"meta", &call.to_le_bytes()));
            }
            assert!(!put(&client, calls.end, 1, b"", b""), "full");
            for call in calls.clone() {
                let request = taken(&server, call).unwrap();
                assert_eq!(
                    (request.tag, &request.meta[..], &request.payload[..]),
                    (call + 7, &b"meta"[..], &call.to_le_bytes()[..])
                );
                assert!(matches!(client.look(call).unwrap(), Look::Nothing));
                assert!(server.answer(call, b"answer", &[request.payload]));
                assert!(taken(&server, call).is_none(), "taken once");
            }
            for call in calls {
                let Look::Answer(meta, payload) = client.look(call).unwrap() else { panic!("no answer to {call}") };
                assert_eq!((&meta[..], &payload[..]), (&b"answer"[..], &call.to_le_bytes()[..]));
            }
        }
    }

    #[test]
    fn who_leaves_gets_the_answer_by_the_socket_or_was_never_heard() {
        let (server, client) = pair();
        assert!(put(&client, 0, 1, b"a", b""));
        assert!(matches!(client.leave(0).unwrap(), Look::Withdrawn));
        assert!(server.has(0));
        assert!(matches!(server.take(0).unwrap(), Found::Withdrawn));
        assert!(put(&client, 1, 2, b"b", b""));
        taken(&server, 1).unwrap();
        assert!(matches!(client.leave(1).unwrap(), Look::Later));
        assert!(!server.answer(1, b"b", &[]));
        assert!(put(&client, 2, 3, b"c", b""));
        taken(&server, 2).unwrap();
        assert!(server.answer(2, b"c", &[]));
        assert!(matches!(client.leave(2).unwrap(), Look::Answer(..)));
        assert!(put(&client, 3, 4, b"d", b""));
        taken(&server, 3).unwrap();
        assert!(!server.answer(3, &vec![0; MESSAGE_BYTES_MAX + 1], &[]), "too long");
        assert!(matches!(client.look(3).unwrap(), Look::Later));
        // All of their slots are free again.
        for call in 4..4 + SLOTS {
            assert!(put(&client, call, call, b"", b""), "{call}");
        }
    }

    #[test]
    fn memory_that_is_no_ring_is_refused() {
        let (_, descriptor) = Memory::create(WORDS * 8).unwrap();
        assert!(Slots::open(descriptor).is_err());
        let (_, descriptor) = Memory::create(4096).unwrap();
        assert!(Slots::open(descriptor).is_err());
    }

    /// Words as a process writes them that means harm: of any value, and states near those that mean something.
    fn scribble() -> impl Strategy<Value = Vec<(usize, u64)>> {
        let word = prop_oneof![0..64u64, any::<u64>(), (0..40_000u64, 0..40_000u64).prop_map(|(a, b)| a | b << 32)];
        let place =
            prop_oneof![0..WORDS, (0..SLOTS as usize, 0..4usize).prop_map(|(slot, at)| SLOTS_AT + slot * SLOT_WORDS + at)];
        proptest::collection::vec((place, word), 0..64)
    }

    proptest! {
        #[test]
        fn neither_side_is_harmed_by_what_the_other_scribbles(rounds in proptest::collection::vec(scribble(), 1..20)) {
            let (server, client) = pair();
            let mut next = 0;
            for (call, scribbled) in rounds.into_iter().enumerate() {
                put(&client, call as u64, 1, b"meta", &[7; 100]);
                for (at, word) in scribbled {
                    client.memory.words()[at].store(word, Relaxed);
                }
                match server.take(next) {
                    Ok(Found::Request(request)) => {
                        prop_assert!(request.meta.len() + request.payload.len() <= MESSAGE_BYTES_MAX);
                        server.answer(next, &request.meta, &[request.payload]);
                        next += 1;
                    }
                    Ok(Found::Withdrawn) => next += 1,
                    Ok(Found::Nothing) => {}
                    // The connection would end here.
                    Err(_) => return Ok(()),
                }
                if let Ok(Look::Answer(meta, payload)) = client.look(call as u64) {
                    prop_assert!(meta.len() + payload.len() <= MESSAGE_BYTES_MAX);
                }
            }
        }
    }
}
