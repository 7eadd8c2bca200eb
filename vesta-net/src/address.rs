//! Listener addresses: IP address and port, or a Unix socket.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::Error;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;

/// Address of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.strip_prefix("unix:") {
            // A relative path would be a different file in each working folder.
            Some(path) if Path::new(path).is_absolute() => Ok(Self::Unix(path.into())),
            Some(_) => Err("must have an absolute path after unix:".to_owned()),
            None => {
                let numeric = match text.strip_prefix("localhost:") {
                    Some(port) => format!("127.0.0.1:{port}"),
                    None => text.to_owned(),
                };
                let must =
                    "must be an IP address and a port, such as 127.0.0.1:50051, or unix:/PATH";
                numeric.parse().map(Self::Tcp).map_err(|_| must.to_owned())
            }
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// True if other hosts can reach it.
    pub fn beyond_loopback(&self) -> bool {
        match self {
            Self::Tcp(address) => !address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => false,
        }
    }

    /// True if two listeners cannot have both addresses.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(a), Self::Tcp(b)) => {
                let wide = a.ip().is_unspecified() || b.ip().is_unspecified();
                a.port() != 0 && a.port() == b.port() && (wide || a.ip() == b.ip())
            }
            (a, b) => a == b,
        }
    }

    /// Address at which clients on this host reach the listener.
    pub fn reachable(&self) -> Self {
        match self {
            Self::Tcp(address) if address.ip().is_unspecified() => {
                let here: IpAddr = match address {
                    SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                    SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                };
                Self::Tcp(SocketAddr::new(here, address.port()))
            }
            other => other.clone(),
        }
    }

    /// Checks whether a listener could have this address now. Binds it for a moment.
    ///
    /// # Errors
    /// One sentence with the reason and the remedy.
    pub fn check(&self) -> Result<(), Error> {
        Bound::new("", self).map(drop)
    }
}

/// Connections that the kernel queues.
const BACKLOG: i32 = 1024;

/// A bound address without a listener yet: until IDs can be made, callers are refused at once
/// instead of left waiting.
#[derive(Debug)]
pub struct Bound<'a> {
    setting: &'static str,
    address: &'a Address,
    /// `None` for a Unix socket: its path is not reserved until a process listens on it.
    socket: Option<Socket>,
}

impl<'a> Bound<'a> {
    /// Binds the address of a setting.
    ///
    /// # Errors
    /// One sentence with the reason and the remedy.
    pub fn new(setting: &'static str, address: &'a Address) -> Result<Self, Error> {
        let bind = || match address {
            Address::Tcp(at) => {
                let socket = Socket::new(Domain::for_address(*at), Type::STREAM, None)?;
                socket.set_reuse_address(true)?;
                socket.bind(&(*at).into())?;
                Ok(Some(socket))
            }
            Address::Unix(path) => is_free(path).map(|()| None),
        };
        let socket = bind().map_err(|error| cannot_listen(setting, address, &error))?;
        Ok(Self {
            setting,
            address,
            socket,
        })
    }

    /// Starts accepting connections.
    ///
    /// # Errors
    /// One sentence with the reason and the remedy.
    pub fn listen(self) -> Result<Listening, Error> {
        let listen = || match (self.socket, self.address) {
            (Some(socket), _) => {
                socket.listen(BACKLOG)?;
                Listening::try_from(std::net::TcpListener::from(socket))
            }
            (None, Address::Unix(path)) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                is_free(path)?;
                let _ = std::fs::remove_file(path); // left by a killed process
                socket.bind(&SockAddr::unix(path)?)?;
                let path = OnPath(Some(path.clone()));
                socket.listen(BACKLOG)?;
                let socket = Either::Right((socket.into(), path));
                Ok(Listening {
                    socket,
                    address: self.address.clone(),
                })
            }
            (None, Address::Tcp(_)) => Err(io::ErrorKind::InvalidInput.into()),
        };
        listen().map_err(|error| cannot_listen(self.setting, self.address, &error))
    }
}

/// Fails if the path is in use by a listener or is not a socket.
fn is_free(path: &Path) -> io::Result<()> {
    match StdUnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && path.parent().is_some_and(Path::is_dir) =>
        {
            Ok(())
        }
        // A killed process leaves its socket.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    path.symlink_metadata()
        .is_ok_and(|file| file.file_type().is_socket())
}

fn cannot_listen(setting: &str, address: &Address, error: &io::Error) -> Error {
    let (other, privileged) = match address {
        Address::Tcp(_) => ("port", "choose a port above 1023"),
        Address::Unix(_) => ("path", "choose a folder that it may write to"),
    };
    let fault = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("is already in use; stop the process that uses it, or choose another {other}")
        }
        io::ErrorKind::AddrNotAvailable => {
            "is not an address of this host; choose one that is".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            format!("needs privileges that this process does not have; {privileged}")
        }
        _ => format!("cannot be listened on: {error}"),
    };
    Error(format!("{setting}: {address} {fault}"))
}

/// A listener, bound and non-blocking.
#[derive(Debug)]
pub struct Listening {
    socket: Either<std::net::TcpListener, (StdUnixListener, OnPath)>,
    address: Address,
}

/// Path of a Unix socket, unless another handle has it; the file is removed with its listener.
#[derive(Debug)]
pub struct OnPath(Option<PathBuf>);

impl Drop for OnPath {
    fn drop(&mut self) {
        let _ = self.0.as_deref().map(std::fs::remove_file);
    }
}

impl TryFrom<std::net::TcpListener> for Listening {
    type Error = io::Error;

    fn try_from(listener: std::net::TcpListener) -> io::Result<Self> {
        let address = Address::Tcp(listener.local_addr()?);
        Ok(Self {
            socket: Either::Left(listener),
            address,
        })
    }
}

impl Listening {
    /// Another handle of the same listener. Connections that neither has accepted stay with the other one. The
    /// file of a Unix socket is removed with the original.
    pub fn again(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            Either::Left(listener) => Either::Left(listener.try_clone()?),
            Either::Right((listener, _)) => Either::Right((listener.try_clone()?, OnPath(None))),
        };
        let address = self.address.clone();
        Ok(Self { socket, address })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// An accepted connection.
pub type Accepted = Either<TcpStream, UnixStream>;

/// A listener attached to a Tokio runtime.
#[derive(Debug)]
pub enum Acceptor {
    /// Of TCP.
    Tcp(TcpListener),
    /// Of Unix sockets.
    Unix(
        UnixListener,
        #[allow(dead_code, reason = "removes the socket when dropped")] OnPath,
    ),
}

impl TryFrom<Listening> for Acceptor {
    type Error = io::Error;

    fn try_from(listening: Listening) -> io::Result<Self> {
        match listening.socket {
            Either::Left(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Self::Tcp)
            }
            Either::Right((listener, path)) => {
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(UnixListener::from_std(listener)?, path))
            }
        }
    }
}

impl Acceptor {
    /// Accepts the next connection and the address of its peer; `None` for a Unix socket, whose
    /// peer is this host.
    pub async fn accept(&self) -> io::Result<(Accepted, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Either::Left(stream), Some(peer.ip())))
            }
            Self::Unix(listener, _) => Ok((Either::Right(listener.accept().await?.0), None)),
        }
    }
}

/// A connection in transit to another runtime.
#[derive(Debug)]
pub(super) enum Handed {
    Tcp(std::net::TcpStream),
    Unix(StdUnixStream),
}

impl Handed {
    pub(super) fn new(stream: Accepted) -> io::Result<Self> {
        match stream {
            Either::Left(stream) => stream.into_std().map(Self::Tcp),
            Either::Right(stream) => stream.into_std().map(Self::Unix),
        }
    }

    pub(super) fn taken(self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Either::Left),
            Self::Unix(stream) => UnixStream::from_std(stream).map(Either::Right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_as_text() {
        for text in ["127.0.0.1:50051", "[::1]:0", "unix:/run/vesta.sock"] {
            assert_eq!(
                text.parse::<Address>().expect("an address").to_string(),
                text
            );
        }
        assert_eq!(
            "localhost:5"
                .parse::<Address>()
                .expect("a name")
                .to_string(),
            "127.0.0.1:5"
        );
        for text in ["", "5", "example.com:5", "unix:", "unix:vesta.sock"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        for (bound, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("unix:/run/vesta.sock", "unix:/run/vesta.sock"),
        ] {
            let address: Address = bound.parse().expect("an address");
            assert_eq!(address.reachable().to_string(), reached);
        }
    }

    #[test]
    fn a_unix_socket_is_taken_over_only_from_a_dead_process_and_removed_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vesta.sock");
        let address = Address::Unix(path.clone());
        drop(StdUnixListener::bind(&path).expect("a socket")); // like a socket left by kill -9
        assert!(path.exists());
        let first = Bound::new("grpc.listen", &address).expect("no listener");
        let listening = first.listen().expect("no listener");
        let second = Bound::new("grpc.listen", &address)
            .expect_err("in use")
            .to_string();
        assert!(
            second.contains("is already in use; stop the process"),
            "{second}"
        );
        drop(listening);
        assert!(!path.exists());

        std::fs::write(&path, "somebody's").expect("a file");
        let refused = Bound::new("grpc.listen", &address)
            .expect_err("no socket")
            .to_string();
        assert!(refused.contains("cannot be listened on"), "{refused}");
        assert!(path.exists(), "a file that is not a socket stays");
        let nowhere = Address::Unix(folder.path().join("none/vesta.sock"));
        assert!(nowhere.check().is_err());
    }
}
