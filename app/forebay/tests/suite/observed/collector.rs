//! A collector of OpenTelemetry: what it was sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Takes spans at `POST /v1/traces`, until the test ends.
pub(super) struct Collector {
    pub(super) endpoint: String,
    spans: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let spans = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&spans);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, all) = (socket.unwrap(), Arc::clone(&all));
                std::thread::spawn(move || while take(&socket, &all).is_some() {});
            }
        });
        Self { endpoint, spans }
    }

    /// All spans that came so far.
    pub(super) fn spans(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }
}

/// Answers one request; none at the connection's end.
fn take(mut socket: &TcpStream, all: &Mutex<Vec<Value>>) -> Option<()> {
    let mut came = Vec::new();
    let body = loop {
        let text = String::from_utf8_lossy(&came).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() == length.unwrap_or(0usize) {
                break body.to_string();
            }
        }
        let mut some = [0; 16 << 10];
        match socket.read(&mut some) {
            Ok(read @ 1..) => came.extend_from_slice(&some[..read]),
            _ => return None,
        }
    };
    let body: Value = serde_json::from_str(&body).unwrap();
    for resource in body["resourceSpans"].as_array().unwrap() {
        for scope in resource["scopeSpans"].as_array().unwrap() {
            all.lock().unwrap().extend(scope["spans"].as_array().unwrap().iter().cloned());
        }
    }
    socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}").ok()
}
