//! Descriptors that pass over Unix sockets.

use std::io::{Read, Seek};
use std::os::fd::OwnedFd;

use forebay_transport::ServerLimits;
use tokio::task::JoinSet;

use crate::desk::{open, open_at, ours, unix};

fn contents(descriptor: OwnedFd) -> String {
    let mut file = std::fs::File::from(descriptor);
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_descriptor_comes_with_its_answer() {
    let (_folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = open.connect().await;
    let answer = connection.call("file".into(), vec![]).await.unwrap();
    assert_eq!(contents(answer.descriptor.unwrap()), "what the descriptor holds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descriptors_find_their_answers_among_others() {
    let (_folder, address) = unix();
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let connection = open.connect().await;
    let mut calls = JoinSet::new();
    for i in 0..300 {
        let connection = connection.clone();
        calls.spawn(async move {
            let what = ["file", "echo", "give 100000", "file"][i % 4];
            let answer = connection.call(what.into(), vec![]).await.unwrap();
            assert_eq!(answer.descriptor.is_some(), what == "file");
            if let Some(descriptor) = answer.descriptor {
                assert_eq!(contents(descriptor), "what the descriptor holds");
            }
        });
    }
    calls.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tcp_there_is_none() {
    let open = open().await;
    let answer = open.connect().await.call("file".into(), vec![]).await.unwrap();
    assert!(answer.descriptor.is_none());
}
