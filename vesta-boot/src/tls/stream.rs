//! One accepted connection, encrypted or not.

use std::fmt;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, sleep_until};
use tokio_rustls::server::{FallibleAccept, TlsStream};

use super::Tls;

/// An accepted connection. TLS is set up while it is first read or written, so that nobody waits for
/// one that is slow, and within a time limit.
pub struct Stream(State);

enum State {
    Plain(TcpStream),
    Opening(Box<Opening>),
    /// The handshake has failed. What the client still sends is read, because a connection with
    /// unread bytes is reset, and the client would not learn why.
    Closing(Box<Closing>),
    Open(Box<TlsStream<TcpStream>>),
    Closed,
}

struct Opening {
    tls: Tls,
    handshake: FallibleAccept<TcpStream>,
    patience: Pin<Box<Sleep>>,
}

struct Closing {
    stream: TcpStream,
    error: Option<io::Error>,
    patience: Pin<Box<Sleep>>,
}

impl Stream {
    /// Takes a connection over; with TLS, its handshake may take as long as `patience`. Must be called
    /// inside a Tokio runtime.
    pub fn new(stream: TcpStream, tls: Option<&Tls>, patience: Duration) -> Self {
        Self(match tls {
            None => State::Plain(stream),
            Some(tls) => State::Opening(Box::new(Opening {
                handshake: tls.acceptor().accept(stream).into_fallible(),
                tls: tls.clone(),
                patience: Box::pin(sleep(patience)),
            })),
        })
    }

    /// Ready when TLS is set up, or was never asked for.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.0 {
                State::Plain(_) | State::Open(_) => return Poll::Ready(Ok(())),
                State::Opening(opening) => {
                    let late = opening.patience.as_mut().poll(cx).is_ready();
                    self.0 = match Pin::new(&mut opening.handshake).poll(cx) {
                        Poll::Ready(Ok(stream)) => State::Open(Box::new(stream)),
                        Poll::Ready(Err((error, stream))) => {
                            tracing::debug!(%error, "a client could not set up TLS");
                            opening.tls.handshake_failed();
                            let end = opening.patience.deadline();
                            let patience = Box::pin(sleep_until(end));
                            State::Closing(Box::new(Closing {
                                stream,
                                error: Some(error),
                                patience,
                            }))
                        }
                        Poll::Pending if late => {
                            tracing::debug!("a client did not set up TLS in time");
                            opening.tls.handshake_failed();
                            self.0 = State::Closed;
                            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                        }
                        Poll::Pending => return Poll::Pending,
                    };
                }
                State::Closing(closing) => {
                    ready!(closing.poll(cx));
                    let error = closing.error.take();
                    self.0 = State::Closed;
                    return Poll::Ready(Err(
                        error.unwrap_or(io::ErrorKind::ConnectionAborted.into())
                    ));
                }
                State::Closed => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
            }
        }
    }

    /// The bytes of HTTP, once TLS is set up.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Bytes>>> {
        if !matches!(self.0, State::Plain(_) | State::Open(_)) {
            ready!(self.poll_open(cx))?;
        }
        Poll::Ready(match &mut self.0 {
            State::Plain(stream) => Ok(Pin::new(stream)),
            State::Open(stream) => Ok(Pin::new(&mut **stream)),
            _ => Err(io::ErrorKind::ConnectionAborted.into()),
        })
    }
}

trait Bytes: AsyncRead + AsyncWrite + Unpin {}
impl Bytes for TcpStream {}
impl Bytes for TlsStream<TcpStream> {}

impl Closing {
    /// Ready when the client has closed its side, or there was time enough for it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut stream = Pin::new(&mut self.stream);
        let _ = ready!(stream.as_mut().poll_shutdown(cx));
        loop {
            let mut scratch = [0; 1024];
            let mut scratch = ReadBuf::new(&mut scratch);
            match ready!(stream.as_mut().poll_read(cx, &mut scratch)) {
                Ok(()) if !scratch.filled().is_empty() => {}
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_bytes(cx))?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_bytes(cx))?.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_bytes(cx))?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true // so are both kinds
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            State::Plain(stream) => Pin::new(stream).poll_flush(cx),
            State::Open(stream) => Pin::new(&mut **stream).poll_flush(cx),
            // Nothing was written yet.
            State::Opening(_) | State::Closing(_) | State::Closed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            State::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            State::Open(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            // Nothing was said that could be ended.
            State::Opening(_) | State::Closing(_) | State::Closed => Poll::Ready(Ok(())),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.0 {
            State::Plain(_) => "plain",
            State::Opening(_) => "opening",
            State::Closing(_) => "closing",
            State::Open(_) => "open",
            State::Closed => "closed",
        };
        f.debug_tuple("Stream").field(&state).finish()
    }
}
