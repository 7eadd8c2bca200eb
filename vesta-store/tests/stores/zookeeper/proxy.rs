//! A connection to ZooKeeper that can be observed and disturbed.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// Kinds of requests, as encoded on the wire.
pub(crate) const SET_DATA: i32 = 5;
pub(crate) const CREATE: i32 = 15;
pub(crate) const MULTI: i32 = 14;
const CLOSE_SESSION: i32 = -11;

pub(crate) struct Proxy {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    connections: Vec<TcpStream>,
    /// The server's reply at the start of the last session, with its number and password.
    welcome: Vec<u8>,
    silent: bool,
    held: Option<i32>,
    caught: bool,
    lost: Option<i32>,
    /// The number of the request whose reply is dropped.
    lost_request: Option<i32>,
}

fn number(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; usize::try_from(number(&length, 0)).expect("a length")];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

fn write_frame(stream: &mut TcpStream, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).expect("a length");
    stream.write_all(&[&length.to_be_bytes(), frame].concat())
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) {
        drop(
            self.changed
                .wait_while(self.state(), |state| condition(state))
                .expect("no panic"),
        );
    }

    fn requests(&self, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
        let hello = read_frame(&mut from)?; // begins the session
        self.wait_while(|state| state.silent);
        write_frame(&mut to, &hello)?;
        loop {
            let request = read_frame(&mut from)?;
            let kind = Some(number(&request, 4));
            if self.state().held == kind {
                self.change(|state| state.caught = true);
            }
            self.wait_while(|state| state.silent || state.held == kind);
            if self
                .state()
                .lost
                .take_if(|lost| Some(*lost) == kind)
                .is_some()
            {
                self.change(|state| state.lost_request = Some(number(&request, 0)));
            }
            write_frame(&mut to, &request)?;
        }
    }

    fn replies(&self, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
        let welcome = read_frame(&mut from)?;
        // The answer to a client that asks for an expired session is session 0.
        if welcome[8..16] != [0; 8] {
            self.change(|state| state.welcome = welcome.clone());
        }
        write_frame(&mut to, &welcome)?;
        loop {
            let reply = read_frame(&mut from)?;
            self.wait_while(|state| state.silent);
            let request = number(&reply, 0);
            if self
                .state()
                .lost_request
                .take_if(|lost| *lost == request)
                .is_some()
            {
                return Ok(());
            }
            write_frame(&mut to, &reply)?;
        }
    }

    fn pass_on(self: Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&self.server)?;
        let both = [client.try_clone()?, server.try_clone()?];
        for stream in &both {
            stream.set_nodelay(true)?;
            self.state().connections.push(stream.try_clone()?);
        }
        let end = move |_: io::Result<()>| {
            for stream in &both {
                let _ = stream.shutdown(Shutdown::Both); // it may be closed already
            }
        };
        let (from, to) = (server.try_clone()?, client.try_clone()?);
        let (replies, requests) = (self.clone(), self);
        let end_too = {
            let (client, server) = (client.try_clone()?, server.try_clone()?);
            move |_: io::Result<()>| {
                let _ = (
                    client.shutdown(Shutdown::Both),
                    server.shutdown(Shutdown::Both),
                );
            }
        };
        thread::spawn(move || end(replies.replies(from, to)));
        thread::spawn(move || end_too(requests.requests(client, server)));
        Ok(())
    }
}

impl Proxy {
    pub(crate) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        let shared = Arc::new(Shared {
            server: server.into(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let proxy = Self {
            address,
            shared: shared.clone(),
        };
        thread::spawn(move || {
            for client in listener.incoming() {
                let _ = shared.clone().pass_on(client.expect("a connection")); // else it is closed
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sets whether all data is held back while the connections stay open.
    pub(crate) fn silence(&self, silent: bool) {
        self.shared.change(|state| state.silent = silent);
    }

    /// Drops the next reply to such a request and closes the connection instead.
    pub(crate) fn lose_reply(&self, kind: i32) {
        self.shared.change(|state| state.lost = Some(kind));
    }

    /// Holds back such requests from now on.
    pub(crate) fn hold(&self, kind: i32) {
        self.shared.change(|state| state.held = Some(kind));
    }

    /// Waits until such a request is held back.
    pub(crate) fn wait_until_caught(&self) {
        self.shared.wait_while(|state| !state.caught);
    }

    pub(crate) fn release(&self) {
        self.shared
            .change(|state| (state.held, state.caught) = (None, false));
    }

    /// Ends the last session without its client, as the server does on expiry.
    pub(crate) fn expire_session(&self) {
        self.silence(true); // otherwise the client would resume its session
        let mut server = TcpStream::connect(&self.shared.server).expect("the server is there");
        let welcome = self.shared.state().welcome.clone();
        // Protocol, last seen change, timeout, session, password, read-only.
        let hello = [&[0; 12], &welcome[4..36], &[0]].concat();
        write_frame(&mut server, &hello).expect("it takes it");
        let taken_over = read_frame(&mut server).expect("it answers");
        // On a busy machine it may have expired already: the server answers with session 0.
        if taken_over[8..16] != [0; 8] {
            assert_eq!(taken_over[8..16], welcome[8..16], "the same session");
            let close = [1i32.to_be_bytes(), CLOSE_SESSION.to_be_bytes()].concat();
            write_frame(&mut server, &close).expect("it takes it");
            read_frame(&mut server).expect("it is closed");
        }
        self.silence(false);
    }
}
