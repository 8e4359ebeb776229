//! What a process says of itself over HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A stopped process takes connections and never answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// No process says as much.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Whether it says yes: that it is up (`/healthz`), or that all of it has started, and can do what it is asked (`/readyz`).
pub(super) fn says_yes(address: SocketAddr, path: &str) -> bool {
    get(address, path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// The sum of a metric over all its labels; none when it is not told.
pub fn metric(address: SocketAddr, name: &str) -> io::Result<Option<f64>> {
    Ok(sum(&get(address, "/metrics")?, name))
}

fn sum(text: &str, name: &str) -> Option<f64> {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
    let values = text.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut socket = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    socket.set_read_timeout(Some(ANSWER_WITHIN))?;
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    socket.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_the_sum_over_its_labels_and_of_no_longer_name() {
        let text = "# TYPE a gauge\na{x=\"1\"} 2\na{x=\"2\"} 3.5\na_total 7\nb 1\n";
        assert_eq!((sum(text, "a"), sum(text, "b"), sum(text, "c")), (Some(5.5), Some(1.0), None));
    }
}
