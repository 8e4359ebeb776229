use forebay_protocol::PROTOCOL_VERSION;
use forebay_types::{Error, Result};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 32;

/// A random number that is used for one handshake.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// Who proves. The two sides' proofs differ, so that one can't be sent back as the other.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A fresh nonce.
pub(crate) fn nonce() -> Result<Nonce> {
    let mut nonce = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut nonce).map_err(|_| Error::internal("the system gives no random numbers"))?;
    Ok(nonce)
}

/// The proof that `side` knows the token: HMAC-SHA256 over its label, the protocol's version and both nonces.
pub(crate) fn prove(token: &str, side: Side, client: &Nonce, server: &Nonce) -> Vec<u8> {
    hmac::sign(&key(token), &transcript(side, client, server)).as_ref().to_vec()
}

/// Whether `proof` is `side`'s; takes the same time wherever it differs.
pub(crate) fn verify(token: &str, side: Side, client: &Nonce, server: &Nonce, proof: &[u8]) -> bool {
    hmac::verify(&key(token), &transcript(side, client, server), proof).is_ok()
}

fn key(token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes())
}

fn transcript(side: Side, client: &Nonce, server: &Nonce) -> Vec<u8> {
    let label: &[u8] = match side {
        Side::Client => b"forebay client proof\0",
        Side::Server => b"forebay server proof\0",
    };
    [label, &PROTOCOL_VERSION.to_le_bytes(), client, server].concat()
}
