//! Who somebody is, and what they show for it: secrets, tokens, who is let in, and what of it is written down.

pub(crate) mod admission;
pub(crate) mod audit;
pub(crate) mod credential;
pub(crate) mod peer;
pub(crate) mod token;
