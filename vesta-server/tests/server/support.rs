//! A real server on 127.0.0.1:0 inside the test, with a clock that the test controls.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use vesta_boot::{Api, CancellationToken, Config, Metrics, Offered, Running, Security};
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::{Field, GenMethod, IdMeta, UnixMillis};
use vesta_numbers::segment::SegmentService;
use vesta_numbers::serial::SerialService;
use vesta_server::Timeouts;
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;
use vesta_service::{LocalIdService, MachineSource};

/// 2018-01-04T10:21:43Z: 94,990,103 s after the epoch.
pub(crate) const NOW: UnixMillis = UnixMillis(1_420_041_600_000 + 94_990_103_000);

/// A free port of loopback.
pub(crate) const FREE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) clock: ManualClock,
    pub(crate) service: Arc<LocalIdService>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) security: Security,
    pub(crate) leaving: CancellationToken,
    pub(crate) shutdown: CancellationToken,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    /// Uses up the current second: IDs left over by batches are taken one by one. Returns the number
    /// of IDs taken.
    pub(crate) fn use_up(&self) -> u32 {
        let next = || {
            self.service
                .try_gen_run(u32::MAX)
                .or_else(|_| self.service.try_gen_run(1))
        };
        std::iter::from_fn(|| next().ok())
            .map(|run| run.count)
            .sum()
    }

    pub(crate) fn start(layout: IdMeta) -> Self {
        Self::with(layout, Timeouts::default(), |_| ())
    }

    pub(crate) fn with(
        layout: IdMeta,
        timeouts: Timeouts,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        Self::with_tags(layout, timeouts, (None, None), adjust)
    }

    pub(crate) fn with_tags(
        layout: IdMeta,
        timeouts: Timeouts,
        tags: (Option<Arc<SegmentService>>, Option<Arc<SerialService>>),
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        Self::with_stores(FREE.into(), layout, timeouts, tags, None, adjust)
    }

    /// A pool server, which gives this store to others.
    pub(crate) fn pool_server(offered: Offered, adjust: impl FnOnce(&mut Config)) -> Self {
        Self::pool_server_at(FREE.into(), offered, adjust)
    }

    /// The same, at this address.
    pub(crate) fn pool_server_at(
        address: SocketAddr,
        offered: Offered,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let (layout, timeouts) = (IdMeta::MAX_PEAK, Timeouts::default());
        let pool_server = Some(offered);
        Self::with_stores(address, layout, timeouts, (None, None), pool_server, adjust)
    }

    fn with_stores(
        address: SocketAddr,
        layout: IdMeta,
        timeouts: Timeouts,
        (segments, serials): (Option<Arc<SegmentService>>, Option<Arc<SerialService>>),
        pool_server: Option<Offered>,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let clock = ManualClock::at(NOW);
        let service = LocalIdService::builder()
            .layout(layout)
            .gen_method(GenMethod::Central)
            .machine(MachineSource::Stateless(
                1021.min(layout.max(Field::Machine)),
            ))
            // The scripted clock may run far ahead of real time; requests end by the real one.
            .max_wait(Duration::from_secs(1_000_000))
            .clock(Arc::new(clock.clone()))
            // Tests use up a second at once: pacing would wait for a clock that stands still.
            .pacing(false)
            .drive(Drive::ByHand)
            .build()
            .expect("a service");
        let mut config = Config::defaults(&[Api::Grpc]);
        config.limits.workers = 2;
        adjust(&mut config);
        let service = Arc::new(service);
        let tokens = config.auth.as_ref().map_or(0, |auth| auth.tokens().len());
        let metrics = Arc::new(Metrics::new(vesta_server::METHODS).of_tokens(tokens));
        let shutdown = CancellationToken::new();
        let leaving = shutdown.child_token();
        let listener = TcpListener::bind(address).expect("a free port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("its address");
        let security = config.security().expect("readable files");
        let running = Running {
            config,
            service: Arc::clone(&service),
            segments,
            tinyid: None,
            serials,
            pool_server,
            security: security.clone(),
            metrics: Arc::clone(&metrics),
            leaving: leaving.clone(),
            shutdown: shutdown.clone(),
        };
        let running = Arc::new(running);
        let listener = listener.try_into().expect("a listener");
        let serve = move || vesta_server::serve_with(listener, running, timeouts);
        let thread = std::thread::spawn(serve);
        let thread = Some(thread);
        Self {
            address,
            clock,
            service,
            metrics,
            security,
            leaving,
            shutdown,
            thread,
        }
    }

    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).expect("a URL");
        endpoint.connect().await.expect("a connection")
    }

    pub(crate) async fn client(&self) -> IdServiceClient<Channel> {
        IdServiceClient::new(self.channel().await)
    }

    /// Requests a graceful stop and waits until the server has stopped.
    pub(crate) fn stop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            thread
                .join()
                .expect("no panic in the server")
                .expect("no error in the server");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
