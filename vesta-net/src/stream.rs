//! Byte stream of a connection: a socket, or TLS over it.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio_rustls::server::{FallibleAccept, TlsStream};
use tokio_util::either::Either;

use super::Tls;
use super::address::Accepted;

/// Byte stream of the protocol.
pub(super) type Bytes = Either<Accepted, Box<TlsStream<Accepted>>>;

/// The socket stays open until its connection is dropped, which returns the permit first.
pub(super) enum Stream {
    Open(Bytes),
    /// `None` in place of TLS, which counts failures, marks a handshake that timed out.
    Handshake(Option<Tls>, Box<FallibleAccept<Accepted>>),
    /// The handshake failed for this reason, which is reported once. Further bytes from the client
    /// are read and discarded: closing a connection with unread bytes resets it, and the client
    /// would not learn the reason.
    Failed(Accepted, Option<io::Error>),
}

impl Stream {
    pub(super) fn new(stream: Accepted, tls: Option<&Tls>) -> Self {
        match tls {
            None => Stream::Open(Either::Left(stream)),
            Some(tls) => Stream::Handshake(Some(tls.clone()), Box::new(tls.accept(stream))),
        }
    }

    /// The bytes, if TLS is set up or not in use.
    pub(super) fn opened(&mut self) -> Option<Pin<&mut Bytes>> {
        match self {
            Stream::Open(bytes) => Some(Pin::new(bytes)),
            _ => None,
        }
    }

    /// Ready with the bytes once TLS is set up.
    pub(super) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut Bytes>>> {
        if !matches!(self, Stream::Open(_)) {
            ready!(self.poll_handshake(cx))?;
        }
        Poll::Ready(
            self.opened()
                .ok_or_else(|| io::ErrorKind::ConnectionAborted.into()),
        )
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Stream::Handshake(Some(tls), handshake) = self {
            match ready!(Pin::new(&mut **handshake).poll(cx)) {
                Ok(stream) => *self = Stream::Open(Either::Right(Box::new(stream))),
                Err((error, stream)) => {
                    tls.handshake_failed(&error);
                    *self = Stream::Failed(stream, Some(error));
                }
            }
        }
        if let Stream::Failed(stream, error) = self {
            ready!(poll_drained(stream, cx));
            return Poll::Ready(error.take().map_or(Ok(()), Err));
        }
        Poll::Ready(Ok(()))
    }

    /// Aborts a handshake that takes too long.
    pub(super) fn time_out(&mut self) {
        if let Stream::Handshake(tls, _) = self
            && let Some(tls) = tls.take()
        {
            tls.handshake_failed(&io::ErrorKind::TimedOut.into());
        }
    }
}

/// Ready once the client has closed its side.
fn poll_drained(stream: &mut Accepted, cx: &mut Context<'_>) -> Poll<()> {
    let mut stream = Pin::new(stream);
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
