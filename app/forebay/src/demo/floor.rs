//! The time that no system could beat for a query, from bytes, computing and CPU time, so that figures have a bound.

use serde::Serialize;

/// What no system could be faster than, query by query: the larger of the three.
///
/// A cold query has to move bytes that nobody has moved before, has to compute its answer, and both take CPU time of
/// cores that there are only so many of. The S3 server's CPU time counts as well, since it runs on the same cores.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Floor {
    /// The bytes that the cold query fetched, at the link's full bandwidth, and one request's latency.
    pub(crate) transfer_secs: f64,
    /// The query over local files.
    pub(crate) compute_secs: f64,
    /// CPU seconds of both, spread over all cores.
    pub(crate) cpu_secs: f64,
}

impl Floor {
    /// The floor itself.
    pub(crate) fn secs(&self) -> f64 {
        self.transfer_secs.max(self.compute_secs).max(self.cpu_secs)
    }

    /// Which of the three it is.
    pub(crate) fn name(&self) -> &'static str {
        if self.secs() == self.transfer_secs {
            "transfer"
        } else if self.secs() == self.compute_secs {
            "compute"
        } else {
            "cpu"
        }
    }
}

/// What transfers cost on this machine, measured while everything was copied.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TransferCost {
    /// Of the link.
    pub(crate) bytes_per_sec: f64,
    /// Of a request.
    pub(crate) latency_secs: f64,
    /// CPU seconds a byte of who receives.
    pub(crate) receiver_cpu_per_byte: f64,
    /// CPU seconds a byte of the S3 server.
    pub(crate) server_cpu_per_byte: f64,
    /// Of this machine.
    pub(crate) cores: usize,
}

impl TransferCost {
    /// The floor of a query that fetches `bytes` and computes for that long with that much CPU time.
    pub(crate) fn floor(&self, bytes: u64, compute_secs: f64, compute_cpu_secs: f64) -> Floor {
        let fetched = bytes as f64;
        let latency_secs = if bytes > 0 { self.latency_secs } else { 0.0 };
        let transfer_cpu_secs = fetched * (self.receiver_cpu_per_byte + self.server_cpu_per_byte);
        Floor {
            transfer_secs: fetched / self.bytes_per_sec + latency_secs,
            compute_secs,
            cpu_secs: (compute_cpu_secs + transfer_cpu_secs) / self.cores as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_three_is_the_floor() {
        let cost = TransferCost {
            bytes_per_sec: 50e6,
            latency_secs: 0.01,
            receiver_cpu_per_byte: 1e-9,
            server_cpu_per_byte: 1e-9,
            cores: 2,
        };
        let floor = cost.floor(100_000_000, 1.0, 1.8);
        assert_eq!((floor.name(), floor.secs()), ("transfer", 2.01));
        assert_eq!(cost.floor(0, 1.0, 1.8).name(), "compute");
        assert_eq!(cost.floor(0, 1.0, 2.4).name(), "cpu");
    }
}
