//! The listener before the program has a machine ID: readiness with the reason, and a 503 for every call.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Arc;

use actix_http::{HttpService, Request, Response};
use actix_service::{Service as _, ServiceFactory as _, fn_service};
use actix_web::body::BoxBody;
use futures_util::{Stream, StreamExt as _};
use tokio_util::task::TaskTracker;
use vesta_boot::{NOT_STARTED, Waiting};
use vesta_net::{self as net, Connection, Incoming, Listening};

use crate::fast_path::readiness;
use crate::problem::Problem;
use crate::serve::{Limits, check_readiness_path, limiter, refuse};

/// Answers until the program has started or must stop.
pub(crate) fn wait(listener: Listening, waiting: Arc<Waiting>) -> io::Result<()> {
    check_readiness_path(&waiting.config)?;
    let Waiting {
        config,
        security,
        metrics,
        ..
    } = &*waiting;
    let limiter = limiter(config, security, metrics, Limits::default());
    let (threads, has_tls) = (waiting.threads(), limiter.has_tls());
    let work = move |incoming: Incoming| work(incoming, Arc::clone(&waiting));
    net::serve(
        listener,
        &threads,
        &limiter,
        |stream| refuse(stream, has_tls),
        work,
    )
}

async fn work(
    mut incoming: impl Stream<Item = io::Result<Connection>> + Unpin,
    waiting: Arc<Waiting>,
) {
    let done = waiting.done.clone();
    let stopped = done.clone();
    let answer = move |req: Request| ready(Ok::<_, Infallible>(answer(&waiting, &req)));
    let http = HttpService::build()
        .client_request_timeout(Limits::default().head)
        .graceful_shutdown_signal(move || stopped.clone().cancelled_owned())
        .h1(fn_service(answer));
    let Ok(http) = http.new_service(()).await else {
        return tracing::error!("a worker could not start");
    };
    let open = TaskTracker::new();
    while let Some(Some(connection)) = done.run_until_cancelled(incoming.next()).await {
        if let Ok(connection) = connection {
            open.spawn_local(http.call((connection, None)));
        }
    }
    open.close();
    open.wait().await;
}

fn answer(waiting: &Waiting, req: &Request) -> Response<BoxBody> {
    let why = || Some(waiting.why.clone());
    readiness(&waiting.config, req, why)
        .unwrap_or_else(|| Problem::from(NOT_STARTED).response().into())
}
