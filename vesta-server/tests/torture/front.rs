//! An address that outlives a fail-over: forwards connections to the current server.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Listens on a free port of loopback for as long as the program runs.
pub(crate) struct Front {
    pub(crate) port: u16,
    server: Arc<Mutex<u16>>,
}

impl Front {
    /// Starts the front of the server at this port.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let server = Arc::new(Mutex::new(server));
        let current = server.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let port = *current.lock().expect("no panic");
                // If the server is unreachable, the client finds its connection closed.
                thread::spawn(move || serve(client, (Ipv4Addr::LOCALHOST, port).into()));
            }
        });
        Self { port, server }
    }

    /// Sends new connections to another server; existing ones end with theirs.
    pub(crate) fn point_to(&self, server: u16) {
        *self.server.lock().expect("no panic") = server;
    }
}

fn serve(client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for side in [&client, &server] {
        side.set_nodelay(true)?;
    }
    let back = (server.try_clone()?, client.try_clone()?);
    let replies = thread::spawn(move || pass(back.0, back.1));
    pass(client, server);
    let _ = replies.join();
    Ok(())
}

/// Copies until either side closes, then closes both.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    for side in [&from, &to] {
        let _ = side.shutdown(Shutdown::Both); // it may be closed already
    }
}
