//! What happens in a run of the model.

/// What happens at a time, other than the arrival of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A segment has come to a worker.
    Loaded { worker: u32, segment: u32 },
    /// An access that had to wait, or was sent away, comes to a worker.
    Access { query: u32, segment: u32, worker: u32, tries: u32 },
    /// An access comes to the worker that its client has chosen by asking.
    Asked { query: u32, segment: u32, worker: u32 },
    /// A client asks for the routing table.
    Poll { client: u32, periodic: bool },
    /// A new segment comes into being.
    Fresh { segment: u32 },
    /// A window ends.
    Window,
}
