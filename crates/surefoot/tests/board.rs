//! `surefoot board`: output, address and errors.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use support::Folder;

#[test]
fn the_address_is_printed_and_served_until_the_process_ends() {
    let folder = Folder::new();
    let mut board = folder.start(&["board", "--port", "0", "--json"]);
    let mut line = String::new();
    BufReader::new(board.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["event"], "board");
    let address =
        event["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/');
    let request = || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /api/runs HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    // The first answer may come before the first look at the directory.
    let waits = std::iter::repeat_with(|| std::thread::sleep(Duration::from_millis(50)));
    let answer = waits.take(100).map(|()| request()).find(|it| it.contains("does not exist"));
    let answer = answer.unwrap_or_else(request);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("The directory runs does not exist"), "{answer}");
    board.kill().unwrap();
    let output = board.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("runs does not exist yet; its runs appear as soon as it does"), "{said}");
}

#[test]
fn wrong_paths_and_ports_are_rejected() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["board", "mysql://me:secret@db/x"]).shown());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome = folder.run(&["board", "--port", &port]);
    assert_snapshot!(outcome.shown().replace(&port, "PORT"));
    assert_snapshot!(folder.run(&["board", "--host", "192.0.2.1"]).shown());
}

#[test]
fn help_has_examples() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["board", "--help"]).shown());
}
