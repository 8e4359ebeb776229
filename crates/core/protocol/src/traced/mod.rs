//! Where in a trace something happens, as it goes from process to process.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::nodes::NODE_PEER_MESSAGE;
use crate::peer::PEER_MESSAGE;
use crate::version::TRACED_SINCE;

/// First byte of a [`DataRequest`](crate::DataRequest), a [`NodeCall`](crate::NodeCall) or a [`ControlCall`](crate::ControlCall) of
/// which it is said what it is done for; no other message begins with it.
pub const TRACED_MESSAGE: u8 = b't';
/// What begins with these is said of no other message.
const OTHERS: [u8; 3] = [TRACED_MESSAGE, NODE_PEER_MESSAGE, PEER_MESSAGE];
/// Bytes before the message itself.
const HEAD_BYTES: usize = 1 + 16 + 8;
/// Bytes of a `traceparent` of the version that is known; later ones may be longer.
const TEXT_BYTES: usize = 55;
/// The flag of those who record.
const SAMPLED: u8 = 1;

/// A place in a trace that is recorded: which trace, and which span of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace: u128,
    /// The span; never 0.
    pub span: u64,
}

impl TraceContext {
    /// What a client asks of a worker or of the coordinator, with this before it.
    pub fn before(self, message: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + message.len());
        bytes.put_u8(TRACED_MESSAGE);
        bytes.put_u128_le(self.trace);
        bytes.put_u64_le(self.span);
        assert_eq!(bytes.len(), HEAD_BYTES, "a message begins where it is looked for");
        bytes.extend_from_slice(message);
        bytes.freeze()
    }

    /// The message, with its place in a trace before it if there is one and a peer of `version` knows what that means.
    pub fn told(context: Option<Self>, version: u16, message: Bytes) -> Bytes {
        match context {
            Some(context) if version >= TRACED_SINCE => context.before(&message),
            _ => message,
        }
    }

    /// Takes the place in a trace off a message, if there is one. Messages between workers never have one: such bytes are left as they
    /// are, and no reader takes them for a message.
    pub fn split(message: Bytes) -> (Option<Self>, Bytes) {
        let is_traced = message.first() == Some(&TRACED_MESSAGE);
        if !is_traced || message.get(HEAD_BYTES).is_none_or(|first| OTHERS.contains(first)) {
            return (None, message);
        }
        let mut rest = message.slice(1..);
        let context = Self { trace: rest.get_u128_le(), span: rest.get_u64_le() };
        (context.is_one().then_some(context), rest)
    }

    fn is_one(&self) -> bool {
        self.trace != 0 && self.span != 0
    }
}

/// As a header `traceparent` has it.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{SAMPLED:02x}", self.trace, self.span)
    }
}

/// What somebody who asks says of the trace that it asks in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceParent {
    /// Nothing, or nothing that can be read.
    #[default]
    None,
    /// There is one, and nobody records it.
    Unrecorded,
    /// It is recorded.
    Recorded(TraceContext),
}

impl TraceParent {
    /// Reads a header `traceparent` (W3C Trace Context, version 00 and what later ones keep of it).
    pub fn read(text: &str) -> Self {
        Self::fields(text.trim()).unwrap_or_default()
    }

    fn fields(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let is_dash = |at: usize| bytes.get(at) == Some(&b'-');
        let version = hexadecimal(text.get(..2)?)? as u8;
        let ends = if version == 0 { bytes.len() == TEXT_BYTES } else { bytes.len() == TEXT_BYTES || is_dash(TEXT_BYTES) };
        if version == u8::MAX || !ends || ![2, 35, 52].into_iter().all(is_dash) {
            return None;
        }
        let (trace, span) = (hexadecimal(text.get(3..35)?)?, hexadecimal(text.get(36..52)?)? as u64);
        let flags = hexadecimal(text.get(53..TEXT_BYTES)?)? as u8;
        let context = TraceContext { trace, span };
        context.is_one().then_some(if flags & SAMPLED == 0 { Self::Unrecorded } else { Self::Recorded(context) })
    }
}

/// A number of small hexadecimal digits and nothing else.
fn hexadecimal(text: &str) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.bytes().all(is_digit).then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const CONTEXT: TraceContext = TraceContext { trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, span: 0xb7ad_6b71_6920_3331 };

    #[test]
    fn a_header_is_read_as_it_is_written() {
        assert_eq!(TraceParent::read(TEXT), TraceParent::Recorded(CONTEXT));
        assert_eq!(CONTEXT.to_string(), TEXT);
        assert_eq!(TraceParent::read(&TEXT.replace("-01", "-00")), TraceParent::Unrecorded);
        // A later version may say more behind what this one says.
        assert_eq!(TraceParent::read(&TEXT.replacen("00", "cc", 1)), TraceParent::Recorded(CONTEXT));
        assert_eq!(TraceParent::read(&format!("{}-what", TEXT.replacen("00", "cc", 1))), TraceParent::Recorded(CONTEXT));
    }

    #[test]
    fn what_is_no_header_says_nothing() {
        let wrong = [
            String::new(),
            "é".repeat(60),
            format!("{TEXT}-what"),
            TEXT.to_uppercase(),
            TEXT.replacen("00", "ff", 1),
            TEXT.replace('-', "_"),
            TEXT.replace("b7ad6b7169203331", "0000000000000000"),
            TEXT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            TEXT.replace("b7ad", "+7ad"),
            TEXT[..54].to_string(),
        ];
        for text in wrong {
            assert_eq!(TraceParent::read(&text), TraceParent::None, "{text}");
        }
    }

    #[test]
    fn a_place_is_told_to_peers_that_know_what_it_means() {
        let message = Bytes::from_static(b"\x03what is asked");
        assert_eq!(TraceContext::told(Some(CONTEXT), TRACED_SINCE - 1, message.clone()), message);
        assert_eq!(TraceContext::told(None, TRACED_SINCE, message.clone()), message);
        let told = TraceContext::told(Some(CONTEXT), TRACED_SINCE, message.clone());
        assert_eq!(TraceContext::split(told), (Some(CONTEXT), message));
    }

    #[test]
    fn a_message_is_as_it_was_without_what_stood_before_it() {
        let message = Bytes::from_static(b"\x03what is asked");
        assert_eq!(TraceContext::split(CONTEXT.before(&message)), (Some(CONTEXT), message.clone()));
        assert_eq!(TraceContext::split(message.clone()), (None, message));
        let short = Bytes::from_static(b"t only a little");
        let of_node = Bytes::from_static(b"n what is asked of a node");
        assert_eq!(TraceContext::split(CONTEXT.before(&of_node)), (Some(CONTEXT), of_node));
        let within = [b't', b'm', b'p'].map(|first| CONTEXT.before(&[first, 1, 2]));
        for none in within.into_iter().chain([short, CONTEXT.before(b"")]) {
            assert_eq!(TraceContext::split(none.clone()), (None, none), "which is no message then");
        }
        let nobody = TraceContext { trace: 0, span: 1 }.before(b"x");
        assert_eq!(TraceContext::split(nobody), (None, Bytes::from_static(b"x")));
    }
}
