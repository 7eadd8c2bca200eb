//! Workers of a listener: a panic in one does not affect the others.

use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use vesta_boot::{Api, CancellationToken, Config, Running, Security};
use vesta_net::{self as net, Incoming, Limiter, Limits};
use vesta_service::{LocalIdService, MachineSource};

const PANIC: u8 = b'!';

/// Echoes each byte, or panics if the byte says so.
async fn answer(mut incoming: Incoming) {
    while let Some(connection) = poll_fn(|cx| Pin::new(&mut incoming).poll_next(cx)).await {
        let mut connection = connection.expect("a connection");
        let byte = connection.read_u8().await.expect("a byte");
        if byte == PANIC {
            // Before the client sees the connection end: until then another connection may arrive.
            drop(incoming);
            panic!("told to");
        }
        connection.write_u8(byte).await.expect("an open connection");
    }
}

fn running() -> Running {
    let mut config = Config::defaults(&[Api::Grpc]);
    config.limits.workers = 2;
    let service = LocalIdService::builder()
        .machine(MachineSource::Stateless(1))
        .build();
    Running {
        config,
        service: Arc::new(service.expect("a service")),
        segments: None,
        tinyid: None,
        serials: None,
        pool_server: None,
        security: Security::default(),
        metrics: Arc::default(),
        leaving: CancellationToken::new(),
        shutdown: CancellationToken::new(),
    }
}

/// The response to a byte.
fn ask(address: SocketAddr, byte: u8) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.write_all(&[byte]).expect("an open connection");
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer); // a panic resets the connection
    answer
}

#[test]
fn a_panicked_worker_gets_no_connection_and_without_workers_serving_ends() {
    let running = running();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let hour = Duration::from_secs(3600);
    let limits = Limits {
        opening: hour,
        opening_bytes: 1,
        stall: hour,
        idle: hour,
        unused: hour,
        lifetime: hour,
        misdirected: None,
    };
    let limiter = Limiter::new(
        99,
        99,
        limits,
        None,
        Arc::clone(&running.metrics.connections),
    );
    let listener = listener.try_into().expect("a listener");
    let server = std::thread::spawn(move || {
        net::serve(listener, &running.threads(), &limiter, drop, answer)
    });
    assert_eq!(ask(address, b'a'), b"a");
    assert_eq!(ask(address, PANIC), b"");
    for _ in 0..9 {
        assert_eq!(ask(address, b'b'), b"b");
    }
    assert_eq!(ask(address, PANIC), b"");
    let ended = server
        .join()
        .expect("no panic in the acceptor")
        .unwrap_err();
    assert_eq!(ended.to_string(), "a worker panicked");
}
