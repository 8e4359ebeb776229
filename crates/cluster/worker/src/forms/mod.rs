//! The table form of popular columns: made once from the bytes that are held, kept as any segment, never written anywhere.

mod clock;
mod costs;
mod decode;
mod footers;
mod gather;
mod make;
mod queue;
mod read;
mod thread;

pub(crate) use queue::Forms;
