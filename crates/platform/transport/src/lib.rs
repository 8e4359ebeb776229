//! Connections between Forebay's processes: framed, pipelined, over TCP (with or without TLS) and Unix sockets.
//!
//! Owns: sockets, the handshake with its proofs of credentials, the pairing of replies with requests,
//! cancelling, the passing of descriptors, and the limits on all of it. The bytes are specified in
//! `docs/specs/protocol.md`. Never does: reading messages (they are bytes here), retrying, choosing a peer.
//!
//! Start with [`Connection::connect`] and [`Connection::call`] for the asking side, with [`Listener::bind`],
//! [`Server::start`] and the traits [`Service`] and [`Session`] for the answering side.

mod answer;
mod asking;
mod budget;
mod caught;
mod credentials;
mod delegate;
mod entrance;
mod frames;
mod guarded;
mod handshake;
mod in_flight;
mod listener;
mod local;
mod ring;
mod security;
mod serve;
mod server;
mod service;
mod sockets;
mod tls;
mod waited;

pub use answer::Answer;
pub use asking::Connection;
pub use budget::{Budget, BudgetShare, Spent, SpentShare};
pub use caught::{caught, caught_future};
pub use credentials::admission::{Admission, unix_now};
pub use credentials::audit::{AUDIT, Deed, begin_audit, is_audited, tell};
pub use credentials::peer::Peer;
pub use credentials::{Credential, SECRET_BYTES_MIN, random_secret};
pub use entrance::{Counted, Entrance, Heard, Introduced, Seldom, Served, Spare, connections_max, some_descriptors};
pub use guarded::{Guard, Guarded};
pub use listener::Listener;
pub use security::{Security, TlsSettings};
pub use server::Server;
pub use service::{Place, Response, Sent, ServerLimits, Service, Session};
pub use sockets::address::Address;
pub use sockets::leaving::Leaving;
pub use tls::{Acceptor, Spoken};
