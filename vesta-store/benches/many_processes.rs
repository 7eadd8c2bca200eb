//! Cost of many processes on one store: each member here has its own connection, state directory and keeper, as a
//! process of another host has. `scripts/scale/measure.py` tells it what to do, a line at a time, and reads the CPU
//! time of the store's server in between:
//!
//! ```text
//! start N        N more members at once, with pauses as at a start → time, requests of the claims
//! hold SECONDS   they renew → requests
//! ask KIND N     one request after the other: now, doubt, get, list → time
//! stop           they give their machine IDs back
//! ```
//! Arguments: URL of the store, namespace, folder of the state directories, size of the pool, and, if not the store's
//! own, window and interval of renewals in milliseconds.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{KvStore, Timing};
use vesta_service::testing::{Answer, Intercept, Request};
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::Options;

type Counts = Arc<Mutex<BTreeMap<&'static str, u64>>>;

struct Fleet {
    url: String,
    namespace: String,
    folder: String,
    pool: u64,
    timing: Option<Timing>,
    counts: Counts,
    clock: SystemClock,
    members: Vec<LocalIdService>,
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let [url, namespace, folder, pool, durations @ ..] = &*words else {
        return; // run without arguments, as all benches are
    };
    let millis = |text: &String| Duration::from_millis(text.parse().expect("milliseconds"));
    let mut fleet = Fleet {
        url: url.clone(),
        namespace: namespace.clone(),
        folder: folder.clone(),
        pool: pool.parse().expect("a number"),
        timing: match durations {
            [window, renew_every] => Some(Timing {
                window: millis(window),
                renew_every: millis(renew_every),
                request_timeout: millis(renew_every).min(Timing::NETWORK.request_timeout),
                ..Timing::NETWORK
            }),
            _ => None,
        },
        counts: Counts::default(),
        clock: SystemClock::new(),
        members: Vec::new(),
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let answer = match &*line.split(' ').collect::<Vec<_>>() {
            ["start", count] => fleet.start(count.parse().expect("a number")),
            ["hold", seconds] => fleet.hold(seconds.parse().expect("a number")),
            ["ask", kind, count] => fleet.ask(kind, count.parse().expect("a number")),
            ["stop"] => fleet.stop(),
            _ => panic!("unknown: {line}"),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

impl Fleet {
    fn store(&self, folder: &Path) -> Arc<dyn KvStore> {
        let options = Options {
            state_dir: Some(folder.into()),
            ..Options::default()
        };
        vesta_store::open_with(&self.url.parse().expect("a URL"), &options).expect("a store")
    }

    /// The store, each of whose requests is counted.
    fn counted(&self, folder: &Path) -> Arc<dyn KvStore> {
        let counts = self.counts.clone();
        Arc::new(Intercept::new(self.store(folder), move |request, store| {
            let kind = match request {
                Request::List { .. } => "list",
                Request::GetAll { .. } => "get_all",
                Request::Get { .. } => "get",
                Request::Put { .. } => "put",
                Request::Doubt => "doubt",
                Request::Now => "now",
            };
            let answer = match request {
                // With the proof that a pool server wants.
                Request::Put { area, puts } => store.put_all(area, puts).map(Answer::Done),
                request => request.send(store),
            };
            let mut counts = counts.lock().expect("no panic");
            *counts.entry(kind).or_default() += 1;
            match &answer {
                Err(_) => *counts.entry("failed").or_default() += 1,
                Ok(Answer::Done(done)) if done == &[false] => {
                    *counts.entry("refused").or_default() += 1;
                }
                Ok(_) => {}
            }
            answer
        }))
    }

    fn start(&mut self, count: usize) -> String {
        let (first, barrier) = (self.members.len(), Barrier::new(count + 1));
        let (this, clock) = (&*self, &self.clock);
        let (began, started) = thread::scope(|scope| {
            let starts: Vec<_> = (first..first + count)
                .map(|member| {
                    let barrier = &barrier;
                    let small = thread::Builder::new().stack_size(512 * 1024);
                    let folder = Path::new(&this.folder).join(format!("host{member}"));
                    let mut builder = LocalIdService::builder()
                        .layout(layout())
                        .namespace(&this.namespace)
                        .machine(MachineSource::Pool {
                            store: this.counted(&folder),
                            range: Some(0..=this.pool - 1),
                        })
                        .state_dir(folder);
                    if let Some(timing) = this.timing {
                        builder = builder.timing(timing);
                    }
                    let started = small.spawn_scoped(scope, move || {
                        barrier.wait();
                        let service = builder.build();
                        (service, clock.monotonic())
                    });
                    started.expect("a thread")
                })
                .collect();
            let began = clock.monotonic();
            barrier.wait();
            let started = starts.into_iter().map(|it| it.join().expect("no panic"));
            (began, started.collect::<Vec<_>>())
        });
        let (mut times, mut errors) = (Vec::new(), BTreeMap::<String, u64>::new());
        for (service, at) in started {
            match service {
                Ok(service) => {
                    self.members.push(service);
                    times.push(at.saturating_sub(began).as_secs_f64());
                }
                Err(error) => *errors.entry(error.to_string()).or_default() += 1,
            }
        }
        times.sort_by(f64::total_cmp);
        let of = |share: f64| {
            times
                .get((times.len() as f64 * share) as usize)
                .or(times.last())
        };
        let [half, most, last] = [0.5, 0.95, 1.0].map(|share| of(share).copied().unwrap_or(0.0));
        let refused = errors.values().sum::<u64>();
        if let Some((error, _)) = errors.iter().next() {
            eprintln!("{refused} not started: {error}");
        }
        format!(
            r#"{{"started":{},"refused":{refused},"p50":{half:.3},"p95":{most:.3},"last":{last:.3},{}}}"#,
            times.len(),
            self.counted_so_far()
        )
    }

    fn hold(&self, seconds: u64) -> String {
        self.counted_so_far();
        self.clock.park(Duration::from_secs(seconds));
        format!("{{{}}}", self.counted_so_far())
    }

    fn ask(&self, kind: &str, count: u64) -> String {
        let store = self.store(&Path::new(&self.folder).join("asks"));
        let area = format!("lease/{}", self.namespace);
        let mut entries = (0, 0);
        store.now().expect("a store"); // connects
        let began = self.clock.monotonic();
        for _ in 0..count {
            match kind {
                "now" => drop(store.now().expect("a store")),
                "doubt" => drop(store.doubt().expect("a store")),
                "get" => drop(store.get(&area, "namespace").expect("a store")),
                "list" => {
                    let list = store.list(&area).expect("a store");
                    let bytes = list.iter().map(|(key, value)| key.len() + value.len());
                    entries = (list.len(), bytes.sum());
                }
                _ => panic!("unknown: {kind}"),
            }
        }
        let took = (self.clock.monotonic() - began).as_secs_f64();
        let (entries, bytes) = entries;
        format!(r#"{{"took":{took:.4},"entries":{entries},"bytes":{bytes}}}"#)
    }

    fn stop(&mut self) -> String {
        let members = std::mem::take(&mut self.members);
        thread::scope(|scope| {
            for member in &members {
                scope.spawn(|| member.close());
            }
        });
        format!("{{{}}}", self.counted_so_far())
    }

    /// The requests since the last call.
    fn counted_so_far(&self) -> String {
        let counts = std::mem::take(&mut *self.counts.lock().expect("no panic"));
        let counts = counts
            .iter()
            .map(|(kind, count)| format!(r#""{kind}":{count}"#));
        format!(r#""requests":{{{}}}"#, counts.collect::<Vec<_>>().join(","))
    }
}

/// Seconds, with room for a million machine IDs.
fn layout() -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 0,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: 30,
        seq_bits: 13,
        machine_bits: 20,
        order: FieldOrder::TimeMachineSeq,
        unit: TimeUnit::Second,
        epoch: IdMeta::MAX_PEAK.spec().epoch,
    })
    .expect("it adds up")
}
