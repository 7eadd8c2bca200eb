//! Streams: every ID once, no matter what breaks in between.

use std::collections::BTreeSet;

use tonic::Status;
use vesta_client::{Builder, Client, ErrorKind, Retry};

use crate::fake::{Fake, MACHINES, Pipe, Reply};

fn through(pipe: &Pipe) -> Builder {
    Client::builder().channel("pipe", pipe.channel())
}

fn cut_off() -> Status {
    Status::unavailable("the server is stopping")
}

#[tokio::test(start_paused = true)]
async fn a_stream_returns_the_requested_number_in_any_chunks() {
    let fake = Fake::new(7);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    let mut stream = client.stream(2500).unwrap();
    let mut ids = Vec::new();
    for room in [1, 998, 2, 700, 5000] {
        let mut out = vec![0; room];
        let filled = stream.fill(&mut out).await.unwrap();
        ids.extend_from_slice(&out[..filled]);
    }
    let expected: Vec<_> = (1..=2500).map(|position| position * MACHINES + 7).collect();
    assert_eq!(ids, expected);
    assert_eq!(stream.next_run().await.unwrap(), None);
    assert_eq!(client.stats().calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_resumes_with_the_rest() {
    let fake = Fake::new(7);
    let pipe = Pipe::to(&fake);
    let client = through(&pipe).build().unwrap();
    let mut stream = client.stream(2500).unwrap();
    // The opening and a message, then the break; the next stream ends normally.
    fake.next([Reply::Give, Reply::Give, Reply::Status(cut_off)]);
    let mut ids = vec![0; 3000];
    assert_eq!(stream.fill(&mut ids).await.unwrap(), 2500);
    ids.truncate(2500);
    assert_eq!(BTreeSet::from_iter(ids).len(), 2500);
    assert_eq!(
        fake.seen
            .lock()
            .iter()
            .filter(|seen| seen.call == "StreamRuns")
            .count(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_returns_the_cause_and_can_resume() {
    let fake = Fake::new(7);
    let pipe = Pipe::to(&fake);
    let once = Retry {
        max_attempts: 1,
        ..Retry::default()
    };
    let client = through(&pipe).retry(once).build().unwrap();
    let mut stream = client.stream(1500).unwrap();
    fake.next([Reply::Give, Reply::Status(cut_off)]);
    assert_eq!(
        stream.next_run().await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    fake.next([Reply::Give, Reply::Silence]);
    assert_eq!(
        stream.next_run().await.unwrap_err().kind(),
        ErrorKind::DeadlineExceeded
    );
    fake.next([Reply::Give, Reply::Nonsense]);
    assert_eq!(
        stream.next_run().await.unwrap_err().kind(),
        ErrorKind::Internal
    );
    let mut ids = [0; 2000];
    assert_eq!(stream.fill(&mut ids).await.unwrap(), 1500);
    assert_eq!(client.stream(0).unwrap_err().kind(), ErrorKind::OutOfRange);
}
