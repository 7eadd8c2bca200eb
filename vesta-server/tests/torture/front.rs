//! An address that outlives a fail-over: forwards connections to the current server.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Listens on a free port of loopback for as long as the program runs.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
}

impl Front {
    /// Starts the front of this server.
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = Arc::new(Mutex::new(server));
        let current = server.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = *current.lock().expect("no panic");
                // If the server is unreachable, the client finds its connection closed.
                thread::spawn(move || serve(client, server));
            }
        });
        Self { address, server }
    }

    /// Sends new connections to another server; existing ones end with theirs.
    pub(crate) fn point_to(&self, server: SocketAddr) {
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
