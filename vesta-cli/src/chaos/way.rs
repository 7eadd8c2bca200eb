//! The way of one server to its store or pool server, which can be cut.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;

/// Forwards connections until it is cut. Its threads end with this process.
pub(super) struct Way {
    pub(super) address: SocketAddr,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    is_cut: bool,
    sockets: Vec<TcpStream>,
}

impl Way {
    pub(super) fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let way = Self {
            address: listener.local_addr()?,
            open: Arc::default(),
        };
        let open = Arc::clone(&way.open);
        spawn(move || {
            for from in listener.incoming().flatten() {
                let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                if !open.is_cut {
                    let _ = forward(from, server, &mut open.sockets); // a closed connection is an answer, too
                }
            }
        });
        Ok(way)
    }

    /// Closes every connection, and new ones at once; or forwards again.
    pub(super) fn cut(&self, is_cut: bool) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.is_cut = is_cut;
        for socket in open.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn forward(from: TcpStream, server: SocketAddr, sockets: &mut Vec<TcpStream>) -> io::Result<()> {
    let to = TcpStream::connect(server)?;
    for (from, to) in [(&from, &to), (&to, &from)] {
        sockets.push(from.try_clone()?);
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_cut_closes_connections_and_ends() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let way = Way::to(server.local_addr().expect("its address")).expect("a free port");
        let connect = || TcpStream::connect(way.address).expect("it listens");
        let passes = |mut from: TcpStream| {
            let (mut to, _) = server.accept().expect("forwarded");
            from.write_all(b"x").expect("open");
            let mut read = [0];
            to.read_exact(&mut read).expect("forwarded");
            from
        };
        let mut first = passes(connect());
        way.cut(true);
        assert_eq!(first.read(&mut [0]).unwrap_or(0), 0, "closed");
        assert_eq!(connect().read(&mut [0]).unwrap_or(0), 0, "closed at once");
        way.cut(false);
        passes(connect());
    }
}
