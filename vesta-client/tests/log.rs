//! Log messages of the client. Runs alone in its process: log levels are cached for all threads.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};
use vesta_client::Client;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "client/fake.rs"]
mod fake;

use fake::{Fake, Local, Pipe, Reply};

/// Collects the log lines at `info` and above: the message, and then all fields.
#[derive(Default)]
struct Lines(Mutex<Vec<(String, String)>>, AtomicU64);

impl Subscriber for &'static Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO && metadata.target().starts_with("vesta_client")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1 + self.1.fetch_add(1, Ordering::Relaxed))
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        #[derive(Default)]
        struct Line(String, String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
                self.1 += &format!("{}={value:?} ", field.name());
            }
        }
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().push((line.0, line.1));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn each_change_to_the_local_service_and_back_is_one_line() {
    const TOKEN: &str = "s3cr3t-t0ken";
    let lines: &'static Lines = Box::leak(Box::default());
    let _collecting = tracing::subscriber::set_default(lines);
    let fake = Fake::new(1);
    let pipe = Pipe::to(&fake);
    let builder = Client::builder()
        .channel("pipe", pipe.channel())
        .bearer_token(TOKEN);
    let client = builder
        .fallback(Arc::new(Local::default()))
        .build()
        .unwrap();
    for _ in 0..2 {
        pipe.cut();
        for _ in 0..2000 {
            client.gen_id().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        pipe.mend();
        for _ in 0..1000 {
            client.gen_id().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(client.stats().fallback_switches, 4);
    let expected = [
        "the endpoint failed; others are preferred",
        "no vesta server is available; the local service makes the ids",
        "the endpoint answers again",
        "a vesta server makes the ids again",
    ];
    let messages: Vec<_> = lines.0.lock().iter().map(|line| line.0.clone()).collect();
    assert_eq!(messages, [expected, expected].concat());

    // A server that repeats the token.
    fake.always(Reply::Status(|| {
        tonic::Status::unavailable("no such token: s3cr3t-t0ken")
    }));
    client.gen_id().await.unwrap();
    let lines = format!("{:?}", lines.0.lock());
    assert!(
        lines.contains("no such token: [redacted]") && !lines.contains(TOKEN),
        "{lines}"
    );
}
