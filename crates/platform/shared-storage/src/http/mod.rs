//! HTTP as this crate needs it: connections that count and hold back what they read, and one client over them.

mod client;
mod connect;
mod payload;
mod tls;

pub(crate) use client::{HttpClient, SendError};
pub(crate) use connect::LinkLocal;
pub(crate) use payload::{BodyError, Payload};
pub(crate) use tls::config as tls_config;
