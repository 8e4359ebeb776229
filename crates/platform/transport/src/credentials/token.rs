//! Proofs of knowing a secret, in the way of SCRAM (RFC 5802): who checks them keeps a hash of what is proved, and proves itself
//! first. Secrets are long and random, so there is no stretching of them.

use forebay_types::{Error, Result, TokenKeys};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

pub(crate) const NONCE_BYTES: usize = 32;
pub(crate) const PROOF_BYTES: usize = 32;

/// A random number that is used for one handshake.
pub(crate) type Nonce = [u8; NONCE_BYTES];
/// What one side says to prove itself.
pub(crate) type Proof = [u8; PROOF_BYTES];

pub(crate) fn nonce() -> Result<Nonce> {
    let mut nonce = [0; NONCE_BYTES];
    fill(&mut nonce)?;
    Ok(nonce)
}

pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    if forebay_runtime::fill_repeated(bytes) {
        return Ok(());
    }
    SystemRandom::new().fill(bytes).map_err(|_| Error::internal("the system gives no random numbers"))
}

/// What both sides have said before the proofs.
pub(crate) struct Transcript<'a> {
    /// Of the protocol, as both have agreed.
    pub(crate) version: u16,
    pub(crate) client: &'a Nonce,
    pub(crate) server: &'a Nonce,
    /// Of the credential.
    pub(crate) id: &'a str,
}

impl Transcript<'_> {
    /// The two sides' differ, so that one's proof can't be sent back as the other's.
    fn bytes(&self, label: &[u8]) -> Vec<u8> {
        [label, &self.version.to_le_bytes(), self.client, self.server, self.id.as_bytes()].concat()
    }
}

/// What is kept of a secret by those who check proofs of it.
pub(crate) fn keys_of(secret: &[u8]) -> TokenKeys {
    TokenKeys { stored: sha256(&client_key(secret)), server: server_key(secret) }
}

/// The server's proof that it knows the credential.
pub(crate) fn prove_server(keys: &TokenKeys, said: &Transcript<'_>) -> Proof {
    mac(&keys.server, &said.bytes(b"forebay server proof\0"))
}

/// Whether a proof is a server's that knows `secret`.
pub(crate) fn is_server(secret: &[u8], said: &Transcript<'_>, proof: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &server_key(secret));
    hmac::verify(&key, &said.bytes(b"forebay server proof\0"), proof).is_ok()
}

/// The client's proof that it holds `secret`.
pub(crate) fn prove_client(secret: &[u8], said: &Transcript<'_>) -> Proof {
    let key = client_key(secret);
    xor(key, mac(&sha256(&key), &said.bytes(b"forebay client proof\0")))
}

/// Whether a proof is of the holder of the secret that `keys` are of.
pub(crate) fn is_client(keys: &TokenKeys, said: &Transcript<'_>, proof: &[u8]) -> bool {
    let Ok(proof) = Proof::try_from(proof) else { return false };
    let key = xor(proof, mac(&keys.stored, &said.bytes(b"forebay client proof\0")));
    // Of a hash: where the two differ says nothing about the key.
    sha256(&key) == keys.stored
}

fn client_key(secret: &[u8]) -> [u8; 32] {
    mac(secret, b"forebay client key")
}

fn server_key(secret: &[u8]) -> [u8; 32] {
    mac(secret, b"forebay server key")
}

fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

fn xor(mut a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_secret_checks_proofs_and_makes_none() {
        let (client, server) = (nonce().unwrap(), nonce().unwrap());
        let said = Transcript { version: 8, client: &client, server: &server, id: "etl.1" };
        let keys = keys_of(b"a secret of the cluster");
        assert!(is_server(b"a secret of the cluster", &said, &prove_server(&keys, &said)));
        let proof = prove_client(b"a secret of the cluster", &said);
        assert!(is_client(&keys, &said, &proof));
        assert!(!is_client(&keys, &said, &prove_client(b"another secret, as long", &said)));
        // Neither what is kept, nor the server's proof sent back, nor a proof of another handshake or name.
        assert!(!is_client(&keys, &said, &keys.stored) && !is_client(&keys, &said, &prove_server(&keys, &said)));
        assert!(!is_client(&keys, &Transcript { client: &server, server: &client, ..said }, &proof));
        assert!(!is_client(&keys, &Transcript { version: 9, ..said }, &proof));
        assert!(!is_client(&keys, &Transcript { id: "etl.2", ..said }, &proof));
        assert!(!is_client(&keys, &said, &[]) && !is_server(b"a secret of the cluster", &said, &[]));
    }
}
