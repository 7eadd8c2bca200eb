//! All IDs over one connection, each of them read.

use std::collections::VecDeque;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use tokio::time::Instant;
use tonic::Request;
use tonic_prost::ProstCodec;
use vesta_client::Client;
use vesta_intf::{MAX_IDS_PER_CALL, MAX_RUN_IDS_PER_CALL};

use crate::Failure;
use crate::child::Server;
use crate::load::channel;
use crate::proc::cpu_seconds;
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};
use crate::stats::ratios;

/// IDs of a round: enough for a share of CPU time that is measured in hundredths of a second.
const IDS: u64 = 50_000_000;
/// Factor by which runs carry more IDs.
const MORE: u64 = 4;

/// Calls of `gen_ids` in flight.
const CALLS: usize = 4;

/// Vesta's runs relative to the peer's bytes.
const LEAST: f64 = 1.5;
/// Limits of Vesta's batches: IDs/s, and nanoseconds per ID of the server's CPU.
const BATCH_RATE: f64 = 80e6;
const BATCH_CPU: f64 = 6.0;

#[derive(Clone, Copy)]
enum Wire {
    /// `gen_runs` of vesta-client, one call after another.
    Runs,
    /// `gen_ids` of vesta-client, several calls in flight.
    Batches,
    /// ferroid-tonic-server's `StreamIds`, numbers in bytes.
    Ferroid,
}

/// ferroid.StreamIdsRequest
#[derive(Clone, PartialEq, Message)]
struct FerroidRequest {
    #[prost(uint64, tag = "1")]
    count: u64,
}

/// ferroid.IdChunk: numbers of 8 bytes, the lowest first.
#[derive(Clone, PartialEq, Message)]
struct FerroidChunk {
    #[prost(bytes = "bytes", tag = "1")]
    packed_ids: Bytes,
}

/// One round.
#[derive(Clone, Copy)]
struct Taken {
    per_second: f64,
    /// Nanoseconds per ID.
    server_cpu: f64,
    client_cpu: f64,
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Wire::Runs => "vesta-server, `gen_runs(1,048,576)` of vesta-client",
            Wire::Batches => "vesta-server, `gen_ids(10,000)` of vesta-client, 4 in flight",
            Wire::Ferroid => "ferroid-tonic-server, `StreamIds`",
        }
    }

    /// Takes `total` IDs and returns their exclusive or, which requires reading each of them.
    async fn take(self, address: SocketAddr, total: u64) -> Result<u64, Failure> {
        let (mut mixed, mut left) = (0, total);
        let mut mix = |ids: &mut dyn Iterator<Item = u64>| ids.for_each(|id| mixed ^= id);
        match self {
            Wire::Runs => {
                let client = Client::builder()
                    .endpoint(format!("http://{address}"))
                    .build()?;
                while left > 0 {
                    let count = u32::try_from(left).unwrap_or(u32::MAX);
                    let count = count.min(MAX_RUN_IDS_PER_CALL);
                    for run in client.gen_runs(count).await? {
                        left -= u64::from(run.count);
                        mix(&mut run.iter());
                    }
                }
            }
            Wire::Batches => {
                let client = Client::builder()
                    .endpoint(format!("http://{address}"))
                    .build()?;
                let mut calls = VecDeque::new();
                let mut wanted = total / u64::from(MAX_IDS_PER_CALL);
                loop {
                    while wanted > 0 && calls.len() < CALLS {
                        let client = client.clone();
                        let call = async move { client.gen_ids(MAX_IDS_PER_CALL).await };
                        calls.push_back(tokio::spawn(call));
                        wanted -= 1;
                    }
                    let Some(call) = calls.pop_front() else { break };
                    let ids = call.await??;
                    left -= ids.len() as u64;
                    mix(&mut ids.into_iter());
                }
            }
            Wire::Ferroid => {
                let mut client = tonic::client::Grpc::new(channel(address).await?);
                client.ready().await?;
                let codec = ProstCodec::<FerroidRequest, FerroidChunk>::default();
                let path = "/ferroid.IdGenerator/StreamIds".parse()?;
                let request = Request::new(FerroidRequest { count: total });
                let mut stream = client
                    .server_streaming(request, path, codec)
                    .await?
                    .into_inner();
                while let Some(message) = stream.message().await? {
                    let (ids, rest) = message.packed_ids.as_chunks();
                    if !rest.is_empty() {
                        return Err("a part of an ID".into());
                    }
                    left -= ids.len() as u64;
                    mix(&mut ids.iter().map(|id| u64::from_le_bytes(*id)));
                }
            }
        }
        match left {
            0 => Ok(mixed),
            left => Err(format!("{}: {left} IDs are missing", self.name()).into()),
        }
    }

    async fn round(self, server: &Server) -> Result<Taken, Failure> {
        let total = if matches!(self, Wire::Runs) {
            IDS * MORE
        } else {
            IDS
        };
        let cpu = || -> Result<(f64, f64), Failure> {
            Ok((cpu_seconds(server.pid())?, cpu_seconds(std::process::id())?))
        };
        let ((server_before, client_before), began) = (cpu()?, Instant::now());
        black_box(self.take(server.address, total).await?);
        let seconds = began.elapsed().as_secs_f64();
        let (server_after, client_after) = cpu()?;
        let nanos = |before, after| (after - before) / total as f64 * 1e9;
        Ok(Taken {
            per_second: total as f64 / seconds,
            server_cpu: nanos(server_before, server_after),
            client_cpu: nanos(client_before, client_after),
        })
    }
}

/// Rounds of all variants in turns.
pub(crate) async fn measure(programs: &Programs, rounds: usize) -> Result<Table, Failure> {
    let vesta = programs.roomy()?;
    let ferroid = programs.ferroid()?;
    let mut sides = vec![(Wire::Runs, &vesta), (Wire::Batches, &vesta)];
    sides.extend(ferroid.as_ref().map(|server| (Wire::Ferroid, server)));
    let mut found: Vec<Vec<Taken>> = vec![vec![]; sides.len()];
    for number in 0..=rounds {
        for (found, (wire, server)) in found.iter_mut().zip(&sides) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let taken = wire.round(server).await?;
            // Round 0 is a warm-up.
            found.extend((number > 0).then_some(taken));
        }
    }
    let rate = |taken: &[Taken]| {
        taken
            .iter()
            .map(|taken| taken.per_second)
            .collect::<Vec<_>>()
    };
    let last = rate(found.last().ok_or("nothing was measured")?);
    let against = |taken: &[Taken]| -> Vec<f64> {
        ratios(
            &rate(taken)
                .into_iter()
                .zip(last.iter().copied())
                .collect::<Vec<_>>(),
        )
        .collect()
    };
    let about = match ferroid {
        Some(_) => "A layout with room for 2,147,483,648 IDs/s, and 128 workers of the peer.".to_owned(),
        None => "A layout with room for 2,147,483,648 IDs/s. No peer took part: `cargo install \
                 ferroid-tonic-server` (its build needs protoc), and name the program with `--ferroid`."
            .to_owned(),
    };
    let row = |(wire, taken): (Wire, &Vec<Taken>)| Row {
        labels: vec![wire.name().to_owned()],
        cells: vec![
            Cell(rate(taken), 0),
            Cell(taken.iter().map(|taken| taken.server_cpu).collect(), 2),
            Cell(taken.iter().map(|taken| taken.client_cpu).collect(), 2),
            Cell(against(taken), 2),
        ],
    };
    let name = Wire::Batches.name();
    let mut bars = vec![
        Bar {
            what: format!("one connection, {name}: IDs/s"),
            values: rate(&found[1]),
            limit: Limit::AtLeast(BATCH_RATE),
        },
        Bar {
            what: format!("one connection, {name}: server CPU, ns/ID"),
            values: found[1].iter().map(|taken| taken.server_cpu).collect(),
            limit: Limit::AtMost(BATCH_CPU),
        },
    ];
    if ferroid.is_some() {
        bars.push(Bar {
            what: "one connection, runs / ferroid-tonic-server: IDs/s".to_owned(),
            values: against(&found[0]),
            limit: Limit::AtLeast(LEAST),
        });
    }
    Ok(Table {
        title: "All IDs over one connection",
        about,
        headings: vec![
            "server",
            "IDs/s",
            "server CPU, ns/ID",
            "client CPU, ns/ID",
            "IDs/s ÷ those of the last row",
        ],
        rows: sides
            .iter()
            .map(|(wire, _)| *wire)
            .zip(&found)
            .map(row)
            .collect(),
        bars,
    })
}
