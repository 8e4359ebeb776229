//! What is asked of a worker about what is cached and served, and what it answers.

mod failed;
mod reply;
mod request;

pub use reply::DataReply;
pub use request::DataRequest;
