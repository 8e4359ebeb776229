//! What happens in a run of the model.

/// What happens at a time, other than the arrival of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A segment has come to a worker.
    Loaded { worker: u32, segment: u32 },
    /// An access that had to wait for its segment is at its worker.
    Access { query: u32, segment: u32, worker: u32 },
    /// An access comes to the worker that its client has chosen by asking.
    Asked { query: u32, segment: u32, worker: u32 },
    /// No other worker gives an access its segment in time.
    Fetch { query: u32, segment: u32, worker: u32 },
    /// A client asks for the routing table.
    Poll { client: u32, periodic: bool },
    /// The oldest table that is on its way is with all clients.
    Told,
    /// A new segment comes into being.
    Fresh { segment: u32 },
    /// A window ends.
    Window,
}
