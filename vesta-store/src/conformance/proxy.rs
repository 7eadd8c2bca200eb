//! A network with faults on demand, in front of a real server.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Forwards connections to a server until told otherwise. It listens on a free loopback port;
/// dropping it closes everything.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    servers: Vec<SocketAddr>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    /// Some connection may have a gap.
    dropped: bool,
    over: bool,
    made: u64,
    open: HashMap<u64, Connection>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Forward,
    Refuse,
    Freeze,
    DropReplies,
}

/// Both sockets, to be shut down from elsewhere.
#[derive(Debug)]
struct Connection(Vec<TcpStream>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Requests,
    Replies,
}

impl Proxy {
    /// Forwards to this server without faults. The server need not be running yet.
    ///
    /// # Errors
    /// If the address is invalid, or no port is free.
    pub fn start(server: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let servers = server.to_socket_addrs()?.collect();
        let shared = Arc::new(Shared {
            servers,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = {
            let shared = shared.clone();
            std::thread::spawn(move || shared.accept(&listener))
        };
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
        })
    }

    /// The address to connect to instead of the server's.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.shared.state().made
    }

    /// Closes every connection, and new ones immediately.
    pub fn refuse(&self) {
        let mut state = self.shared.state();
        state.mode = Mode::Refuse;
        state.open.values().for_each(Connection::close);
        self.shared.changed.notify_all();
    }

    /// Keeps the connections open, but holds back all data from now on until [`heal`](Self::heal).
    pub fn freeze(&self) {
        self.shared.state().mode = Mode::Freeze;
    }

    /// Requests reach the server, its replies are lost. The connections end with
    /// [`heal`](Self::heal): no real network delivers a stream with a gap.
    pub fn drop_replies(&self) {
        let mut state = self.shared.state();
        state.mode = Mode::DropReplies;
        state.dropped = true;
        self.shared.changed.notify_all();
    }

    /// Forwards everything again, including data held back by [`freeze`](Self::freeze).
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.mode = Mode::Forward;
        if std::mem::take(&mut state.dropped) {
            state.open.values().for_each(Connection::close);
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.over = true;
            state.open.values().for_each(Connection::close);
            self.shared.changed.notify_all();
        }
        let _ = TcpStream::connect(self.address); // wakes the accepting thread
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Connection {
    fn close(&self) {
        for side in &self.0 {
            let _ = side.shutdown(Shutdown::Both); // it may be closed already
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let mut state = self.state();
            if state.over {
                return;
            }
            let Ok(client) = client else { continue };
            state.made += 1;
            if state.mode == Mode::Refuse {
                continue; // dropped, and thereby closed
            }
            let Ok(side) = client.try_clone() else {
                continue;
            };
            let number = state.made;
            state.open.insert(number, Connection(vec![side]));
            let shared = self.clone();
            std::thread::spawn(move || {
                // An error only means that the connection has ended.
                let _ = shared.serve(number, client);
                if let Some(open) = shared.state().open.remove(&number) {
                    open.close();
                }
            });
        }
    }

    fn serve(self: &Arc<Self>, number: u64, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&self.servers[..])?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (to_client, from_server) = (client.try_clone()?, server.try_clone()?);
        {
            let mut state = self.state();
            if state.mode == Mode::Refuse || state.over {
                return Ok(());
            }
            if let Some(open) = state.open.get_mut(&number) {
                open.0.push(server.try_clone()?);
            }
        }
        let shared = self.clone();
        let replies = std::thread::spawn(move || {
            let _ = shared.pump(Way::Replies, from_server, to_client);
        });
        let outcome = self.pump(Way::Requests, client, server);
        let _ = replies.join();
        outcome
    }

    /// Forwards bytes until one side closes.
    fn pump(&self, way: Way, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer)?;
            match (self.may_pass(way), count) {
                (true, 0) => return to.shutdown(Shutdown::Write),
                (true, _) => to.write_all(&buffer[..count])?,
                (false, 0) => return Ok(()),
                (false, _) => {}
            }
        }
    }

    /// Waits while frozen. Returns whether the data is forwarded, or lost.
    fn may_pass(&self, way: Way) -> bool {
        let frozen = |state: &mut State| state.mode == Mode::Freeze && !state.over;
        let state = self
            .changed
            .wait_while(self.state(), frozen)
            .unwrap_or_else(PoisonError::into_inner);
        state.mode != Mode::DropReplies || way == Way::Requests
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    /// Echoes on each connection, and reports the data that arrived.
    fn echo() -> (SocketAddr, Receiver<Vec<u8>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, arrived) = channel();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, sender) = (client.unwrap(), sender.clone());
                std::thread::spawn(move || {
                    let mut buffer = [0; 1024];
                    while let Ok(count) = client.read(&mut buffer) {
                        // The receiver is gone once the test is over.
                        if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                            return;
                        }
                        if client.write_all(&buffer[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (address, arrived)
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        TcpStream::connect(proxy.address()).unwrap()
    }

    fn says(client: &mut TcpStream, text: &str) -> String {
        client.write_all(text.as_bytes()).unwrap();
        hears(client, text.len())
    }

    fn hears(client: &mut TcpStream, length: usize) -> String {
        let mut heard = vec![0; length];
        client.read_exact(&mut heard).unwrap();
        String::from_utf8(heard).unwrap()
    }

    /// True if no data arrives for a moment; a correct proxy always passes.
    fn hears_nothing(client: &mut TcpStream) -> bool {
        client
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let outcome = client.read(&mut [0; 16]);
        client.set_read_timeout(None).unwrap();
        outcome.is_err_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            )
        })
    }

    fn is_closed(client: &mut TcpStream) -> bool {
        let _ = client.write_all(b"?"); // a connection that was reset shows it here or below
        matches!(client.read(&mut [0; 16]), Ok(0) | Err(_))
    }

    #[test]
    fn the_proxy_forwards_data_and_the_end_of_connections() {
        let (server, arrived) = echo();
        let proxy = Proxy::start(server).unwrap();
        let mut clients = [connect(&proxy), connect(&proxy)];
        for round in 0..3 {
            for (i, client) in clients.iter_mut().enumerate() {
                let text = format!("{i} says {round}");
                assert_eq!(says(client, &text), text);
                assert_eq!(arrived.recv().unwrap(), text.as_bytes());
            }
        }
        clients[0].shutdown(Shutdown::Write).unwrap();
        assert_eq!(
            clients[0].read(&mut [0; 16]).unwrap(),
            0,
            "the server has closed, too"
        );
        assert_eq!(says(&mut clients[1], "still here"), "still here");
        assert_eq!(proxy.accepted(), 2);
    }

    #[test]
    fn a_refusing_proxy_closes_all_connections_until_healed() {
        let (server, _arrived) = echo();
        let proxy = Proxy::start(server).unwrap();
        let mut old = connect(&proxy);
        assert_eq!(says(&mut old, "a"), "a");
        proxy.refuse();
        assert!(is_closed(&mut old));
        assert!(is_closed(&mut connect(&proxy)));
        proxy.heal();
        assert!(is_closed(&mut old), "it does not come back");
        assert_eq!(says(&mut connect(&proxy), "b"), "b");
    }

    #[test]
    fn frozen_data_arrives_after_healing() {
        let (server, arrived) = echo();
        let proxy = Proxy::start(server).unwrap();
        let mut client = connect(&proxy);
        assert_eq!(says(&mut client, "a"), "a");
        arrived.recv().unwrap();
        proxy.freeze();
        client.write_all(b"b").unwrap();
        assert!(hears_nothing(&mut client));
        assert!(arrived.try_recv().is_err());
        let mut new = connect(&proxy);
        new.write_all(b"c").unwrap();
        assert!(hears_nothing(&mut new));
        proxy.heal();
        assert_eq!(
            (hears(&mut client, 1), hears(&mut new, 1)),
            ("b".into(), "c".into())
        );
    }

    #[test]
    fn a_request_whose_reply_is_dropped_has_arrived() {
        let (server, arrived) = echo();
        let proxy = Proxy::start(server).unwrap();
        let mut client = connect(&proxy);
        assert_eq!(says(&mut client, "a"), "a");
        arrived.recv().unwrap();
        proxy.drop_replies();
        client.write_all(b"b").unwrap();
        assert_eq!(arrived.recv().unwrap(), b"b");
        assert!(hears_nothing(&mut client));
        proxy.heal();
        assert!(is_closed(&mut client), "it has a gap");
        assert_eq!(says(&mut connect(&proxy), "c"), "c");
    }

    #[test]
    fn an_unreachable_server_closes_the_connection() {
        let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let proxy = Proxy::start(gone).unwrap();
        assert!(is_closed(&mut connect(&proxy)));
    }

    #[test]
    fn dropping_the_proxy_closes_everything() {
        let (server, _arrived) = echo();
        let proxy = Proxy::start(server).unwrap();
        let (mut client, mut frozen) = (connect(&proxy), connect(&proxy));
        assert_eq!(
            (says(&mut client, "a"), says(&mut frozen, "b")),
            ("a".into(), "b".into())
        );
        proxy.freeze();
        frozen.write_all(b"c").unwrap();
        let address = proxy.address();
        drop(proxy);
        assert!(is_closed(&mut client) && is_closed(&mut frozen));
        assert!(TcpStream::connect(address).is_err());
    }
}
