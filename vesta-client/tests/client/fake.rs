//! A scripted server, reached through a pipe (so that paused time works) or over loopback (for
//! threads).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{DuplexStream, copy_bidirectional, duplex};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Server, Uri};
use tonic::{Request, Response, Status};
use vesta_client::IdError;
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_server::{self, IdServiceServer};
use vesta_intf::grpc::v1::segment_service_server::{self, SegmentServiceServer};
use vesta_intf::grpc::v1::serial_service_server::{self, SerialServiceServer};
use vesta_numbers::serial::{CivilHour, Pattern, Reset};

// By path, because two programs include this file from different places.
#[path = "local.rs"]
mod local;

pub(crate) use local::Local;

/// Scripted response to a call.
#[derive(Clone)]
pub(crate) enum Reply {
    Give,
    Fail(IdError),
    Status(fn() -> Status),
    /// Never answers.
    Silence,
    /// Answers after this time.
    Slow(Duration),
    /// Answers with too few IDs, unordered IDs, or repeated ones.
    Nonsense,
}

/// A call that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) call: &'static str,
    pub(crate) count: u32,
    pub(crate) timeout: Option<String>,
    pub(crate) authorization: Option<String>,
    pub(crate) traceparent: Option<String>,
}

pub(crate) struct Fake {
    machine: u64,
    position: AtomicU64,
    /// Its runs overlap, as those of a server that holds two machine IDs.
    pub(crate) overlaps: AtomicBool,
    /// The next replies; once it is empty, the standing reply applies.
    pub(crate) script: Mutex<VecDeque<Reply>>,
    standing: Mutex<Reply>,
    pub(crate) seen: Mutex<Vec<Seen>>,
}

pub(crate) const MACHINES: u64 = 1024;

impl Fake {
    /// Its IDs are `position * 1024 + machine`, with positions from 1.
    pub(crate) fn new(machine: u64) -> Arc<Self> {
        Arc::new(Self {
            machine,
            position: AtomicU64::new(1),
            overlaps: AtomicBool::new(false),
            script: Mutex::default(),
            standing: Mutex::new(Reply::Give),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().extend(replies);
    }

    pub(crate) fn always(&self, reply: Reply) {
        *self.standing.lock() = reply;
    }

    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().len()
    }

    fn position(&self, count: u32) -> u64 {
        self.position.fetch_add(count.into(), Ordering::Relaxed)
    }

    fn take(&self, count: u32) -> u64 {
        self.position(count) * MACHINES + self.machine
    }

    async fn obey(
        &self,
        call: &'static str,
        meta: &MetadataMap,
        count: u32,
    ) -> Result<bool, Status> {
        let text = |key| {
            meta.get(key)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        self.seen.lock().push(Seen {
            at: Instant::now(),
            call,
            count,
            timeout: text("grpc-timeout"),
            authorization: text("authorization"),
            traceparent: text("traceparent"),
        });
        let scripted = self.script.lock().pop_front();
        match scripted.unwrap_or_else(|| self.standing.lock().clone()) {
            Reply::Give => Ok(true),
            Reply::Fail(error) => Err(error.into()),
            Reply::Status(status) => Err(status()),
            Reply::Silence => std::future::pending().await,
            Reply::Slow(time) => {
                tokio::time::sleep(time).await;
                Ok(true)
            }
            Reply::Nonsense => Ok(false),
        }
    }
}

/// A local type, which implementing the generated trait requires.
struct Served(Arc<Fake>);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl id_service_server::IdService for Served {
    async fn gen_id(&self, request: Request<v1::GenIdRequest>) -> Answer<v1::GenIdResponse> {
        self.0.obey("GenId", request.metadata(), 1).await?;
        Ok(Response::new(v1::GenIdResponse { id: self.0.take(1) }))
    }

    async fn gen_ids(&self, _: Request<v1::GenIdsRequest>) -> Answer<v1::GenIdsResponse> {
        Err(Status::unimplemented("the client takes runs"))
    }

    async fn gen_runs(&self, request: Request<v1::GenRunsRequest>) -> Answer<v1::GenRunsResponse> {
        let count = request.get_ref().count;
        let sound = self.0.obey("GenRuns", request.metadata(), count).await?;
        // Two runs, as at the boundary of two ticks.
        let runs = [count.div_ceil(2), count / 2]
            .into_iter()
            .filter(|count| *count > 0)
            .zip([0, 1])
            .map(|(count, machine)| v1::IdRun {
                first: match self.0.overlaps.load(Ordering::Relaxed) {
                    true => MACHINES + self.0.machine + machine,
                    false => self.0.take(count),
                },
                step: MACHINES,
                count,
            })
            .skip(usize::from(!sound))
            .collect();
        Ok(Response::new(v1::GenRunsResponse { runs }))
    }

    async fn exp_id(&self, request: Request<v1::ExpIdRequest>) -> Answer<v1::Id> {
        self.0.obey("ExpId", request.metadata(), 0).await?;
        let id = request.get_ref().id;
        Ok(Response::new(v1::Id {
            machine: id % MACHINES,
            seq: id / MACHINES,
            ..v1::Id::default()
        }))
    }

    async fn make_id(&self, request: Request<v1::MakeIdRequest>) -> Answer<v1::MakeIdResponse> {
        self.0.obey("MakeId", request.metadata(), 0).await?;
        let parts = request.get_ref();
        let id = parts.seq * MACHINES + parts.machine.unwrap_or(self.0.machine);
        Ok(Response::new(v1::MakeIdResponse { id }))
    }

    async fn trans_time(
        &self,
        request: Request<v1::TransTimeRequest>,
    ) -> Answer<v1::TransTimeResponse> {
        self.0.obey("TransTime", request.metadata(), 0).await?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(request.get_ref().time);
        Ok(Response::new(v1::TransTimeResponse {
            time: Some(time.into()),
        }))
    }
}

/// Knows the key `orders`, whose numbers are the positions of the server.
#[tonic::async_trait]
impl segment_service_server::SegmentService for Served {
    async fn next_id(&self, request: Request<v1::NextIdRequest>) -> Answer<v1::NextIdResponse> {
        self.0.obey("NextId", request.metadata(), 1).await?;
        known(&request.get_ref().tag)?;
        Ok(Response::new(v1::NextIdResponse {
            id: self.0.position(1),
        }))
    }

    async fn next_ids(&self, request: Request<v1::NextIdsRequest>) -> Answer<v1::NextIdsResponse> {
        let v1::NextIdsRequest { tag: key, count } = request.get_ref();
        let sound = self.0.obey("NextIds", request.metadata(), *count).await?;
        known(key)?;
        // Two runs with a gap between them, as at the boundary of two ranges.
        let mut runs: Vec<_> = [count.div_ceil(2), count / 2]
            .into_iter()
            .filter(|count| *count > 0)
            .map(|count| {
                let first = self.0.position(count);
                self.0.position(1);
                v1::IdRun {
                    first,
                    step: 1,
                    count,
                }
            })
            .collect();
        if !sound {
            runs.reverse();
            runs.iter_mut()
                .filter(|_| *count == 1)
                .for_each(|run| run.step = 2);
        }
        Ok(Response::new(v1::NextIdsResponse { runs }))
    }
}

/// Knows the tag `orders`, whose counters are the positions of the server, all on one day.
#[tonic::async_trait]
impl serial_service_server::SerialService for Served {
    async fn next(
        &self,
        request: Request<v1::NextSerialsRequest>,
    ) -> Answer<v1::NextSerialsResponse> {
        let v1::NextSerialsRequest { tag, count } = request.get_ref();
        let count = count.unwrap_or(1);
        let sound = self.0.obey("Next", request.metadata(), count).await?;
        known(tag)?;
        let day = CivilHour {
            year: 2026,
            month: 11,
            day: 22,
            hour: 9,
        };
        let (pattern, first) = (serials(), self.0.position(count));
        let serial = |n| v1::Serial {
            serial: pattern.format(&day, n).unwrap(),
            counter: n,
        };
        let mut serials: Vec<_> = (first..first + u64::from(count)).map(serial).collect();
        if !sound {
            serials.pop();
            serials.extend(serials.first().cloned().filter(|_| count == 2));
        }
        Ok(Response::new(v1::NextSerialsResponse { serials }))
    }

    async fn parse(&self, request: Request<v1::ParseSerialRequest>) -> Answer<v1::ParsedSerial> {
        let sound = self.0.obey("Parse", request.metadata(), 0).await?;
        let v1::ParseSerialRequest { tag, serial } = request.into_inner();
        known(&tag)?;
        let parsed = serials().parse(&serial)?;
        let (period, date, n) = (parsed.period, parsed.date, parsed.counter);
        let check = parsed
            .check
            .filter(|_| sound)
            .map_or("rot13".into(), |it| it.to_string());
        Ok(Response::new(v1::ParsedSerial {
            tag,
            period,
            date,
            counter: n,
            check: Some(check),
        }))
    }

    async fn create(
        &self,
        _: Request<v1::CreateSerialRequest>,
    ) -> Answer<v1::CreateSerialResponse> {
        Err(Status::unimplemented("the client creates no tags"))
    }
}

fn serials() -> Pattern {
    Pattern::new("INV-{date:yyMMdd}-{n:6}{check:damm}", Reset::Day).unwrap()
}

fn known(key: &str) -> Result<(), Status> {
    if key == "orders" {
        return Ok(());
    }
    Err(IdError::NotFound {
        what: format!("tag `{key}`").into(),
    }
    .into())
}

fn router(fake: &Arc<Fake>) -> Router {
    Server::builder()
        .add_service(IdServiceServer::new(Served(Arc::clone(fake))))
        .add_service(SegmentServiceServer::new(Served(Arc::clone(fake))))
        .add_service(SerialServiceServer::new(Served(Arc::clone(fake))))
}

/// A fake at the other end of in-process pipes. It can be cut off and come back.
pub(crate) struct Pipe {
    up: Arc<AtomicBool>,
    wires: Arc<Mutex<Vec<AbortHandle>>>,
    accept: UnboundedSender<io::Result<DuplexStream>>,
}

impl Pipe {
    pub(crate) fn to(fake: &Arc<Fake>) -> Self {
        let (accept, incoming) = unbounded_channel();
        let incoming = UnboundedReceiverStream::new(incoming);
        tokio::spawn(router(fake).serve_with_incoming(incoming));
        Self {
            up: Arc::new(AtomicBool::new(true)),
            wires: Arc::default(),
            accept,
        }
    }

    pub(crate) fn channel(&self) -> Channel {
        let (up, wires, accept) = (self.up.clone(), self.wires.clone(), self.accept.clone());
        let connect = tower::service_fn(move |_: Uri| {
            let result = if up.load(Ordering::Relaxed) {
                let (client, mut near) = duplex(1 << 16);
                let (mut far, server) = duplex(1 << 16);
                let wire = async move { copy_bidirectional(&mut near, &mut far).await };
                wires.lock().push(tokio::spawn(wire).abort_handle());
                accept.send(Ok(server)).unwrap();
                Ok(TokioIo::new(client))
            } else {
                Err(io::Error::from(io::ErrorKind::ConnectionRefused))
            };
            std::future::ready(result)
        });
        Endpoint::from_static("http://pipe").connect_with_connector_lazy(connect)
    }

    pub(crate) fn cut(&self) {
        self.up.store(false, Ordering::Relaxed);
        self.wires.lock().drain(..).for_each(|wire| wire.abort());
    }

    /// Number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.wires
            .lock()
            .iter()
            .filter(|wire| !wire.is_finished())
            .count()
    }

    pub(crate) fn mend(&self) {
        self.up.store(true, Ordering::Relaxed);
    }
}

/// A fake on loopback, on its own thread. Dropping it cuts all connections.
pub(crate) struct Loopback {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Loopback {
    pub(crate) fn start(fake: &Arc<Fake>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let inside = runtime.enter();
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let incoming = incoming.with_nodelay(Some(true));
        let address = incoming.local_addr().unwrap();
        runtime.spawn(router(fake).serve_with_incoming(incoming));
        drop(inside);
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn unavailable(retry_after: Option<Duration>) -> IdError {
    IdError::Unavailable {
        reason: "told to".into(),
        retry_after,
        source: None,
    }
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
