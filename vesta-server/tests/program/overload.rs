//! Too many callers, and malicious ones.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::Instant;
use tonic::Code;
use tonic::transport::Endpoint;
use vesta_intf::grpc::v1::{GenIdRequest, GenRunsRequest, id_service_client::IdServiceClient};
use vesta_intf::{IdMeta, IdRun};
use vesta_testkit::fleet::{Answer, Ledger, Marks, Receiver};

use crate::support::{Program, folder, start};

const SOCKETS: usize = 2000;
const MIB: u64 = 1024 * 1024;

/// Raises the limit of open files to the maximum.
fn raise_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit).expect("more file descriptors");
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident(running: &Program) -> u64 {
    let path = format!("/proc/{}/status", running.id());
    let status = std::fs::read_to_string(path).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a line");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .expect("a number")
        * 1024
}

fn channel(running: &Program) -> tonic::transport::Channel {
    Endpoint::from_shared(format!("http://{}", running.address()))
        .expect("a URL")
        .connect_lazy()
}

fn quantile(sorted: &[u128], of: usize) -> f64 {
    sorted[(sorted.len() - 1) * of / 100] as f64 / 1e6
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_silent_and_slow_sockets_harm_no_healthy_caller() {
    raise_limit();
    let folder = folder();
    let running = start(folder.path(), &["--machine-id", "7"]);
    let mut client = IdServiceClient::new(channel(&running));
    client.gen_id(GenIdRequest {}).await.expect("an ID");
    let before = resident(&running);

    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let half_a_head = [&preface[..], &[0, 0, 50, 1, 4, 0, 0, 0, 1, 0x82]].concat();
    let openings = [&b""[..], &preface[..10], preface, &half_a_head];
    let began = Instant::now();
    let crowd: Vec<_> = (0..SOCKETS)
        .map(|number| {
            let mut socket = TcpStream::connect(running.address()).expect("a connection");
            socket
                .write_all(openings[number % openings.len()])
                .expect("an opening");
            socket
        })
        .collect();
    let all_gone = Arc::new(AtomicBool::new(false));
    let watch = {
        let all_gone = all_gone.clone();
        tokio::task::spawn_blocking(move || {
            for mut socket in crowd {
                let _ = socket.read_to_end(&mut Vec::new()); // closed or reset: both end the connection
            }
            all_gone.store(true, Ordering::SeqCst);
        })
    };
    let mut times = Vec::new();
    let mut most = 0;
    while !all_gone.load(Ordering::SeqCst) {
        let call = Instant::now();
        client.gen_id(GenIdRequest {}).await.expect("an ID");
        times.push(call.elapsed().as_nanos());
        if times.len() % 256 == 0 {
            most = most.max(resident(&running));
        }
    }
    watch.await.expect("no panic");
    times.sort_unstable();
    println!(
        "{SOCKETS} sockets gone after {:.1} s; {} healthy calls meanwhile: median {:.2} ms, p99 \
         {:.2} ms; {} MiB more memory",
        began.elapsed().as_secs_f64(),
        times.len(),
        quantile(&times, 50),
        quantile(&times, 99),
        most.saturating_sub(before) / MIB,
    );
    assert!(
        most < before + 256 * MIB,
        "{before} bytes before, {most} meanwhile"
    );
}

/// 64 callers ask for 2,000 IDs each, again and again: three times the output of one machine ID
/// within the maximum wait of a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_refused_and_no_position_runs_ahead() {
    const CALLERS: usize = 64;
    const SERVED: usize = 640;
    let folder = folder();
    let args = [
        "--machine-id",
        "7",
        "--layout",
        "min-granularity",
        "--max-wait-ms",
        "40",
    ];
    let running = start(folder.path(), &args);
    let before = resident(&running);
    let channels: Vec<_> = (0..4).map(|_| channel(&running)).collect();
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let mut client = IdServiceClient::new(channels[number % channels.len()].clone());
            tokio::spawn(async move {
                let (mut runs, mut times, mut refused) = (Vec::new(), Vec::new(), 0);
                while times.len() < SERVED / CALLERS {
                    let call = Instant::now();
                    match client.gen_runs(GenRunsRequest { count: 2000 }).await {
                        Ok(answer) => {
                            times.push(call.elapsed().as_nanos());
                            runs.extend(answer.into_inner().runs);
                        }
                        Err(status) => {
                            let expected = Code::ResourceExhausted;
                            assert_eq!(status.code(), expected, "{status:?}");
                            refused += 1;
                        }
                    }
                }
                (runs, times, refused)
            })
        })
        .collect();
    let (mut runs, mut times, mut refused) = (Vec::new(), Vec::new(), 0);
    for caller in callers {
        let (more, took, failed) = caller.await.expect("no panic");
        runs.extend(more.into_iter().map(IdRun::from));
        times.extend(took);
        refused += failed;
    }
    let most = resident(&running);
    let mut client = IdServiceClient::new(channel(&running));
    client
        .gen_id(GenIdRequest {})
        .await
        .expect("an ID afterwards");

    let mut ledger = Ledger::new(IdMeta::MIN_GRANULARITY);
    ledger.join("the program".into());
    runs.sort_unstable_by_key(|run| run.first);
    let marks = &mut Marks::new();
    ledger.record(Receiver::default(), &Answer::Runs(runs), marks);
    assert_eq!(ledger.findings, [""; 0]);
    times.sort_unstable();
    println!(
        "{} calls of 2,000 IDs served, {refused} refused; served: median {:.1} ms, p99 {:.1} ms; \
         {} MiB more memory",
        times.len(),
        quantile(&times, 50),
        quantile(&times, 99),
        most.saturating_sub(before) / MIB,
    );
    assert!(refused > 0, "no call was refused");
    assert!(
        most < before + 256 * MIB,
        "{before} bytes before, {most} meanwhile"
    );
}
