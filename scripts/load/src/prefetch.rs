//! A prefetching client: the cost of an ID from memory, compared with an embedded service, and the
//! sustained rate.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};
use vesta_client::{Client, IdService, Prefetch, blocking};
use vesta_intf::{IdMeta, MAX_RUN_IDS_PER_CALL};
use vesta_service::{LocalIdService, MachineSource};

use crate::Failure;
use crate::meter::Meter;
use crate::proc::cpu_seconds;

/// More than half of the buffer, so that the client refills it; less than a second of the layout.
const TAKEN: u32 = 600_000;

/// Time until the server has a fresh second to fill the buffer from, and the embedded service its
/// own.
const PAUSE: Duration = Duration::from_millis(1200);

#[derive(Debug, Default, Serialize)]
pub(crate) struct Found {
    /// Nanoseconds for one ID from memory.
    pub(crate) client: Vec<f64>,
    /// Nanoseconds for one ID from an embedded service.
    pub(crate) embedded: Vec<f64>,
    /// IDs/s of a caller that never pauses.
    pub(crate) sustained: Vec<f64>,
    /// CPU of the server for that, in percent of one core.
    pub(crate) server_cpu: Vec<f64>,
}

/// Measures against a server with the layout `max-peak`.
pub(crate) async fn measure(
    address: SocketAddr,
    pid: u32,
    rounds: usize,
    length: Duration,
) -> Result<Found, Failure> {
    let capacity = MAX_RUN_IDS_PER_CALL;
    let prefetch = Prefetch {
        capacity,
        low_water: capacity / 2,
        ..Prefetch::default()
    };
    let endpoint = format!("http://{address}");
    let client = Client::builder()
        .endpoint(endpoint)
        .prefetch(prefetch)
        .build_blocking()?;
    let embedded = LocalIdService::builder()
        .machine(MachineSource::Stateless(1))
        .build()?;

    let mut found = Found::default();
    for round in 0..=rounds {
        sleep(PAUSE).await;
        filled(&client).await?;
        let (client, embedded) =
            block_in_place(|| (nanos_for_one(&client), nanos_for_one(&embedded)));
        // The first round is a warm-up.
        if round > 0 {
            found.client.push(client?);
            found.embedded.push(embedded?);
        }
    }

    block_in_place(|| -> Result<(), Failure> {
        let meta = IdMeta::MAX_PEAK;
        let mut meter = Meter::new(&meta, length, || cpu_seconds(pid));
        let mut ids = [0; 1000];
        while meter.windows.len() <= rounds {
            for id in &mut ids {
                *id = client.gen_id()?;
            }
            meter.take(&ids, Instant::now())?;
        }
        for window in meter.windows.iter().skip(1) {
            found.sustained.push(window.ids_per_second);
            found.server_cpu.push(window.server_cpu);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Waits until the buffer holds enough for a round.
async fn filled(client: &blocking::Client) -> Result<(), Failure> {
    for _ in 0..500 {
        if client.stats().prefetched_left >= TAKEN.into() {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    Err(format!("the client's memory stays empty: {:?}", client.stats()).into())
}

fn nanos_for_one(ids: &impl IdService) -> Result<f64, Failure> {
    let began = Instant::now();
    for _ in 0..TAKEN {
        black_box(ids.gen_id()?);
    }
    Ok(began.elapsed().as_nanos() as f64 / f64::from(TAKEN))
}
