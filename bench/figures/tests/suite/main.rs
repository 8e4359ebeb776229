//! Rounds, the record and the pages together, and the checkout's own pages.

#![expect(clippy::unwrap_used, reason = "what is unexpected in a test ends it")]

mod checkout;
mod measuring;
mod pages;
