//! All IDs over one connection, as a program receives them: numbers in memory.

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
use vesta_intf::MAX_IDS_PER_CALL;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::{GenIdsResponse, StreamIdsRequest};

use crate::Failure;
use crate::child::Server;
use crate::load::{channel, endpoint};
use crate::proc::cpu_seconds;
use crate::programs::Programs;
use crate::report::{Bar, Cell, Limit, Row, Table};
use crate::stats::ratios;

/// IDs of a round: enough for a share of CPU time that is measured in hundredths of a second.
const IDS: u64 = 50_000_000;
/// Factor by which a stream of runs carries more IDs.
const MORE: u64 = 4;

/// Largest HTTP/2 frame of a client that sets it, as vesta-client does.
const FRAME: u32 = 128 * 1024;

/// Calls of `GenIds` in flight.
const CALLS: usize = 4;

/// Vesta's runs relative to the peer's bytes.
const LEAST: f64 = 1.5;
/// Limits of Vesta's batches: IDs/s, and nanoseconds per ID of the server's CPU and of decoding
/// alone.
const BATCH_RATE: f64 = 80e6;
const BATCH_CPU: f64 = 6.0;
const DECODE: f64 = 2.0;

/// Messages decoded for one value.
const DECODED: usize = 500;

#[derive(Clone, Copy)]
enum Wire {
    /// `StreamRuns`, expanded by vesta-client.
    Runs,
    /// `GenIds`, packed numbers, several calls in flight.
    Batches,
    /// `StreamIds`, packed numbers, in frames of the default size.
    Ids,
    /// `StreamIds` in frames that hold one message each, as vesta-client requests.
    Frames,
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
            Wire::Runs => "vesta-server, `StreamRuns`, expanded by vesta-client",
            Wire::Batches => "vesta-server, `GenIds(10,000)` by vesta-client, 4 in flight",
            Wire::Ids => "vesta-server, `StreamIds`, chunks of 10,000",
            Wire::Frames => "vesta-server, `StreamIds`, chunks of 10,000, frames of 128 KiB",
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
                let mut stream = client.stream(total)?;
                let mut ids = vec![0; MAX_IDS_PER_CALL as usize];
                loop {
                    let filled = stream.fill(&mut ids).await?;
                    if filled == 0 {
                        break;
                    }
                    left -= filled as u64;
                    mix(&mut ids[..filled].iter().copied());
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
            Wire::Ids | Wire::Frames => {
                let mut endpoint = endpoint(address)?;
                if matches!(self, Wire::Frames) {
                    endpoint = endpoint.max_frame_size(FRAME);
                }
                let request = StreamIdsRequest {
                    chunk: MAX_IDS_PER_CALL,
                    total,
                };
                let mut stream = IdServiceClient::new(endpoint.connect().await?)
                    .stream_ids(request)
                    .await?
                    .into_inner();
                while let Some(message) = stream.message().await? {
                    left -= message.ids.len() as u64;
                    mix(&mut message.ids.into_iter());
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

/// Nanoseconds per ID to decode a batch message in memory.
fn decoding() -> Result<f64, Failure> {
    let ids: Vec<u64> = (0..u64::from(MAX_IDS_PER_CALL))
        .map(|n| n << 10 | 7)
        .collect();
    let message = Bytes::from(GenIdsResponse { ids }.encode_to_vec());
    let began = Instant::now();
    for _ in 0..DECODED {
        black_box(GenIdsResponse::decode(black_box(message.clone()))?);
    }
    let all = DECODED as f64 * f64::from(MAX_IDS_PER_CALL);
    Ok(began.elapsed().as_secs_f64() * 1e9 / all)
}

/// Rounds of all variants in turns.
pub(crate) async fn measure(programs: &Programs, rounds: usize) -> Result<Table, Failure> {
    let vesta = programs.roomy()?;
    let ferroid = programs.ferroid()?;
    let mut sides = vec![
        (Wire::Runs, &vesta),
        (Wire::Batches, &vesta),
        (Wire::Frames, &vesta),
        (Wire::Ids, &vesta),
    ];
    sides.extend(ferroid.as_ref().map(|server| (Wire::Ferroid, server)));
    let mut found: Vec<Vec<Taken>> = vec![vec![]; sides.len()];
    let mut decoded = vec![];
    for number in 0..=rounds {
        for (found, (wire, server)) in found.iter_mut().zip(&sides) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let taken = wire.round(server).await?;
            // Round 0 is a warm-up.
            found.extend((number > 0).then_some(taken));
        }
        let taken = decoding()?;
        decoded.extend((number > 0).then_some(taken));
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
    let mut bars = vec![];
    for ((wire, _), taken) in sides.iter().zip(&found) {
        if matches!(wire, Wire::Batches | Wire::Frames) {
            let name = wire.name();
            bars.push(Bar {
                what: format!("one connection, {name}: IDs/s"),
                values: rate(taken),
                limit: Limit::AtLeast(BATCH_RATE),
            });
            bars.push(Bar {
                what: format!("one connection, {name}: server CPU, ns/ID"),
                values: taken.iter().map(|taken| taken.server_cpu).collect(),
                limit: Limit::AtMost(BATCH_CPU),
            });
        }
    }
    bars.push(Bar {
        what: "a message of 10,000 IDs in memory: decoding, ns/ID".to_owned(),
        values: decoded,
        limit: Limit::AtMost(DECODE),
    });
    if ferroid.is_some() {
        bars.push(Bar {
            what: "one connection, runs / ferroid-tonic-server: IDs/s".to_owned(),
            values: against(&found[0]),
            limit: Limit::AtLeast(LEAST),
        });
    }
    Ok(Table {
        title: "A stream of IDs over one connection",
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
