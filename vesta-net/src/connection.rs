//! Guarded connection: an accepted socket, with or without TLS, with timeouts and a permit.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::either::Either;

use super::address::Accepted;
use super::permit::{Permit, Seat};
use super::requests::{IdleWatch, Requests};
use super::stream::{Bytes, Stream};
use super::tls::Tls;

/// Timeouts of a connection. `Duration::MAX` disables one.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Timeout from accept until TLS is set up and the first bytes have been read.
    pub opening: Duration,
    /// The number of those first bytes, at least 1.
    pub opening_bytes: usize,
    /// Timeout for the rest of a request, for its response, and for the peer to read it. A stall is detected
    /// after one to two timeouts.
    pub stall: Duration,
    /// Timeout between a response and the next bytes.
    pub idle: Duration,
    /// Timeout of a connection without a request among [`Requests`], whatever bytes arrive.
    pub unused: Duration,
    /// The age at which a connection ends, whatever it does.
    pub lifetime: Duration,
    /// Clients of the other version of HTTP; `None` leaves them to the server.
    pub misdirected: Option<Misdirected>,
}

/// Clients that take a port for another one, and their answer.
#[derive(Debug, Clone, Copy)]
pub struct Misdirected {
    /// True for the first bytes of such a client.
    pub begins: fn(&[u8]) -> bool,
    /// The answer, in the protocol of the client. The connection then ends.
    pub answer: &'static [u8],
}

/// An accepted connection that returns an error when its peer stalls. The first read or write sets
/// TLS up, so that a slow peer delays no other connection.
pub struct Connection {
    /// Returned before the socket closes: a client that sees the end finds the permit free.
    place: Place,
    stream: Stream,
    watch: Watch,
    unused: IdleWatch,
    end: Option<Pin<Box<Sleep>>>,
    /// Until they are passed on.
    first: Option<First>,
}

/// The first bytes, which are judged before anything is written.
struct First {
    misdirected: Misdirected,
    unread: Vec<u8>,
    is_refused: bool,
}

/// The right to stay open: until the connection ends, or until it gives way to another one.
pub(super) type Place = Either<Permit, Arc<Seat>>;

impl Connection {
    /// Must be called inside a Tokio runtime.
    pub(super) fn new(stream: Accepted, tls: Option<&Tls>, limits: Limits, place: Place) -> Self {
        // Small responses must not wait for the acknowledgement of the previous one. If the option
        // fails, later reads and writes will report why.
        if let Either::Left(stream) = &stream {
            let _ = stream.set_nodelay(true);
        }
        let requests = match &place {
            Either::Left(_) => Requests::default(),
            Either::Right(seat) => seat.requests().clone(),
        };
        Self {
            place,
            stream: Stream::new(stream, tls),
            watch: Watch::new(limits),
            unused: IdleWatch::new(limits.unused, requests),
            end: (limits.lifetime < Duration::MAX).then(|| Box::pin(sleep(limits.lifetime))),
            first: limits.misdirected.map(|misdirected| First {
                misdirected,
                unread: Vec::new(),
                is_refused: false,
            }),
        }
    }

    /// Requests on this connection, counted by the server of its protocol.
    pub fn requests(&self) -> &Requests {
        self.unused.requests()
    }

    /// Ready once another connection has taken over the permit.
    fn poll_given_way(&self, cx: &Context<'_>) -> Poll<()> {
        match &self.place {
            Either::Left(_) => Poll::Pending,
            Either::Right(seat) => seat.poll(cx),
        }
    }

    /// Ready with an error once the peer has stalled, the connection went unused for too long or is too old, or
    /// another connection has taken over its permit.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let end = self.end.as_mut().map(|end| end.as_mut().poll(cx));
        if end.is_none_or(|end| end.is_pending())
            && self.poll_given_way(cx).is_pending()
            && self.watch.poll(cx).is_pending()
        {
            ready!(self.unused.poll(cx));
        }
        self.stream.time_out();
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Ready once the first bytes are those of a client of this port. Another one gets its answer, and what it sends
    /// is discarded until it closes: closing before that would reset the connection, and the answer with it.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(first) = self.first.as_mut().filter(|first| first.unread.is_empty()) else {
            return Poll::Ready(Ok(()));
        };
        let mut stream = ready!(self.stream.poll_open(cx))?;
        loop {
            let mut bytes = [0; 64];
            let mut bytes = ReadBuf::new(&mut bytes);
            ready!(stream.as_mut().poll_read(cx, &mut bytes))?;
            let bytes = bytes.filled();
            if bytes.is_empty() && first.is_refused {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            } else if bytes.is_empty() {
                self.first = None; // the end, which the server reads
                return Poll::Ready(Ok(()));
            } else if first.is_refused {
                continue;
            } else if (first.misdirected.begins)(bytes) {
                first.is_refused = true;
                // A fresh socket has room for it.
                let _ = stream.as_mut().poll_write(cx, first.misdirected.answer);
                let _ = stream.as_mut().poll_shutdown(cx);
            } else {
                first.unread = bytes.to_vec();
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut Bytes>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.poll_first(cx)?.is_ready()
            && let Poll::Ready(stream) = self.stream.poll_open(cx)?
            && let Poll::Ready(written) = write(stream, cx)
        {
            self.watch.paid();
            return Poll::Ready(written);
        }
        self.watch.owes();
        self.poll_stalled(cx).map(Err)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if this.poll_first(cx)?.is_pending() {
            return this.poll_stalled(cx).map(Err);
        }
        if let Some(first) = this.first.take() {
            let taken = first.unread.len().min(buf.remaining());
            let (taken, rest) = first.unread.split_at(taken);
            buf.put_slice(taken);
            this.watch.read(taken.len());
            let unread = rest.to_vec();
            this.first = (!rest.is_empty()).then_some(First { unread, ..first });
            return Poll::Ready(Ok(()));
        }
        if let Poll::Ready(stream) = this.stream.poll_open(cx)?
            && let Poll::Ready(result) = stream.poll_read(cx, buf)
        {
            this.watch.read(buf.filled().len() - before);
            return match this.poll_given_way(cx) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
                Poll::Pending => Poll::Ready(result),
            };
        }
        this.poll_stalled(cx).map(Err)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_written(cx, |stream, cx| stream.poll_write(cx, data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_written(cx, |stream, cx| stream.poll_write_vectored(cx, data))
    }

    fn is_write_vectored(&self) -> bool {
        true // so are sockets, with and without TLS
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Until the connection is open, nothing has been written.
        let Some(stream) = this.stream.opened() else {
            return Poll::Ready(Ok(()));
        };
        let flushed = stream.poll_flush(cx);
        if flushed.is_ready() {
            this.watch.flushed();
            return flushed;
        }
        this.watch.owes_flush();
        this.poll_stalled(cx).map(Err)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream
            .opened()
            .map_or(Poll::Ready(Ok(())), |stream| stream.poll_shutdown(cx))
    }
}

/// Detects a peer that has stalled.
///
/// A busy connection must not pay for a clock or a timer per request. So the timer keeps running,
/// and only its expiry checks whether the phase is still the one for which it was set.
struct Watch {
    limits: Limits,
    phase: Phase,
    /// Generation of the phase.
    turn: u32,
    /// Some written bytes have not been sent: TLS buffers some.
    unflushed: bool,
    timer: Option<Pin<Box<Sleep>>>,
    /// The generation for which the timer was set, and its timeout; `None` if it is not running.
    timed: Option<(u32, Duration)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// This many of the first bytes are still missing.
    Opening(usize),
    /// A request is incomplete, its response is pending, or the peer has not read the response.
    Owing,
    /// The peer may send its next request.
    Idle,
}

impl Watch {
    fn new(limits: Limits) -> Self {
        let phase = Phase::Opening(limits.opening_bytes);
        Self {
            limits,
            phase,
            turn: 0,
            unflushed: false,
            timer: None,
            timed: None,
        }
    }

    fn turn_to(&mut self, phase: Phase) {
        self.phase = phase;
        self.turn = self.turn.wrapping_add(1);
    }

    fn read(&mut self, bytes: usize) {
        match &mut self.phase {
            Phase::Opening(missing) if *missing > bytes => *missing -= bytes,
            Phase::Opening(_) | Phase::Idle if bytes > 0 => self.turn_to(Phase::Owing),
            _ => {}
        }
    }

    /// Records that a response cannot be written. A limit that is already running continues.
    fn owes(&mut self) {
        if self.phase == Phase::Idle {
            self.turn_to(Phase::Owing);
        }
    }

    /// Records that a response, or a part of it, was written.
    fn paid(&mut self) {
        if self.phase == Phase::Owing {
            self.turn_to(Phase::Idle);
        }
    }

    /// Records that written bytes have not been sent yet.
    fn owes_flush(&mut self) {
        self.unflushed = true;
        self.owes();
    }

    /// Records that all written bytes, if any, have been sent.
    fn flushed(&mut self) {
        if std::mem::take(&mut self.unflushed) {
            self.paid();
        }
    }

    fn limit(&self) -> Duration {
        match self.phase {
            Phase::Opening(_) => self.limits.opening,
            Phase::Owing => self.limits.stall,
            Phase::Idle => self.limits.idle,
        }
    }

    /// Ready once the peer has stalled.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit();
        if limit == Duration::MAX {
            return Poll::Pending;
        }
        loop {
            let timer = match (&mut self.timer, self.timed) {
                (Some(timer), Some((_, timed))) if timed <= limit => timer,
                (timer, _) => {
                    self.timed = Some((self.turn, limit));
                    let end = Instant::now() + limit;
                    let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
                    timer.as_mut().reset(end);
                    timer
                }
            };
            ready!(timer.as_mut().poll(cx));
            if self.timed == Some((self.turn, limit)) {
                return Poll::Ready(());
            }
            self.timed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);
    const LIMITS: Limits = Limits {
        opening: LIMIT,
        opening_bytes: 1,
        stall: LIMIT,
        idle: LIMIT,
        unused: Duration::MAX,
        lifetime: Duration::MAX,
        misdirected: None,
    };

    /// A watch whose first bytes have arrived and were answered.
    fn watch(idle: Duration) -> Watch {
        let mut watch = Watch::new(Limits {
            opening_bytes: 2,
            idle,
            ..LIMITS
        });
        watch.read(2);
        watch.paid();
        watch
    }

    async fn is_stalled_after(watch: &mut Watch, wait: Duration) -> bool {
        tokio::time::advance(wait).await;
        std::future::poll_fn(|cx| Poll::Ready(watch.poll(cx).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_bytes_are_due_after_the_limit_even_if_they_trickle_in() {
        let limits = Limits {
            opening_bytes: 3,
            stall: Duration::MAX,
            idle: Duration::MAX,
            ..LIMITS
        };
        let mut watch = Watch::new(limits);
        for _ in 0..2 {
            assert!(!is_stalled_after(&mut watch, LIMIT / 3).await);
            watch.read(1);
        }
        assert!(is_stalled_after(&mut watch, LIMIT).await);
        let mut watch = Watch::new(limits);
        assert!(!is_stalled_after(&mut watch, Duration::ZERO).await);
        watch.read(3);
        assert!(
            !is_stalled_after(&mut watch, LIMIT * 9).await,
            "there is no other limit"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_debt_is_due_after_one_to_two_limits() {
        let mut watch = watch(Duration::MAX);
        assert!(
            !is_stalled_after(&mut watch, LIMIT * 9).await,
            "an idle connection owes nothing"
        );

        watch.read(1);
        assert!(!is_stalled_after(&mut watch, Duration::ZERO).await);
        watch.read(1); // more of the same request: the debt keeps its age
        assert!(!is_stalled_after(&mut watch, LIMIT - Duration::from_millis(10)).await);
        watch.paid();
        watch.read(1);
        assert!(
            !is_stalled_after(&mut watch, Duration::from_millis(20)).await,
            "a young debt"
        );
        assert!(
            is_stalled_after(&mut watch, LIMIT).await,
            "and due in its turn"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stays_in_the_buffers_is_a_debt_too() {
        let mut one = watch(Duration::MAX);
        one.read(1);
        one.flushed();
        assert!(!is_stalled_after(&mut one, Duration::ZERO).await);
        assert!(
            is_stalled_after(&mut one, LIMIT).await,
            "nothing to flush pays for no request"
        );

        let mut one = watch(Duration::MAX);
        one.owes_flush();
        assert!(!is_stalled_after(&mut one, Duration::ZERO).await);
        one.flushed();
        assert!(!is_stalled_after(&mut one, LIMIT).await, "it was taken");
        one.owes_flush();
        assert!(!is_stalled_after(&mut one, Duration::ZERO).await);
        assert!(is_stalled_after(&mut one, LIMIT).await);
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_own_limit() {
        let mut watch = watch(LIMIT * 10);
        assert!(!is_stalled_after(&mut watch, Duration::ZERO).await);
        watch.read(1);
        assert!(!is_stalled_after(&mut watch, Duration::ZERO).await);
        assert!(
            is_stalled_after(&mut watch, LIMIT).await,
            "not only when idling would be over"
        );

        watch.paid();
        assert!(!is_stalled_after(&mut watch, LIMIT * 9).await);
        assert!(is_stalled_after(&mut watch, LIMIT * 10).await);
    }
}
