//! What a process shows at its port of HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The body of an answer, as JSON.
pub fn body(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// What a path answers that is there.
pub fn get(host: &str, path: &str) -> String {
    let answer = ask(host, path, "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// What a path of HTTP answers, head and all.
pub fn ask(host: &str, path: &str, headers: &str) -> String {
    send(host, "GET", path, headers, "")
}

/// The same to a body.
pub fn post(host: &str, path: &str, headers: &str, body: &str) -> String {
    send(host, "POST", path, &format!("{headers}Content-Length: {}\r\n", body.len()), body)
}

fn send(host: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
