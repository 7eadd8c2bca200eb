//! Measures whether the source of the machine ID affects the cost of an ID.
//!
//! One caller, a layout whose ticks do not run out, the system's clock. Network stores are measured
//! if `VESTA_TEST_MYSQL` etc. name one (`cargo run -p vesta-testkit --bin stores` starts them).
#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use vesta_intf::{FieldOrder, LayoutSpec, TimeUnit};
use vesta_service::options::PopulatorKind;
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::{Options, open, open_worker_nodes};

/// 2^28 IDs per second.
fn roomy() -> IdMeta {
    IdMeta::new(LayoutSpec {
        version_bits: 1,
        type_bits: 0,
        gen_method_bits: 0,
        time_bits: 30,
        seq_bits: 28,
        machine_bits: 5,
        order: FieldOrder::TimeSeqMachine,
        unit: TimeUnit::Second,
        epoch: IdMeta::MAX_PEAK.spec().epoch,
    })
    .expect("the layout adds up")
}

fn providers(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sqlite = format!("sqlite:{}/vesta.db", folder.path().display());
    let open = |url: &str| open(&url.parse().unwrap()).expect("a store");
    let pool = |url: &str| MachineSource::Pool {
        store: open(url),
        range: None,
    };
    let mut sources = vec![
        ("stateless".to_owned(), MachineSource::Stateless(1)),
        ("fixed, state file".to_owned(), MachineSource::Fixed(2)),
        ("pool of sqlite".to_owned(), pool(&sqlite)),
        (
            "used once, sqlite".to_owned(),
            MachineSource::Disposable {
                nodes: open_worker_nodes(&sqlite.parse().unwrap(), &Options::default())
                    .expect("a store"),
            },
        ),
    ];
    for store in ["mysql", "postgres", "redis", "zookeeper", "etcd"] {
        let variable = format!("VESTA_TEST_{}", store.to_uppercase());
        match std::env::var(&variable) {
            Ok(url) => sources.push((format!("pool of {store}"), pool(&url))),
            Err(_) => eprintln!("{variable} is not set: no row for {store}"),
        }
    }
    let mut group = c.benchmark_group("gen_id by the origin of the machine ID");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500));
    for (name, source) in sources {
        let ids = LocalIdService::builder()
            .layout(roomy())
            .populator(PopulatorKind::Atomic)
            .machine(source)
            .namespace("providers")
            .state_dir(folder.path().join(&name))
            .build()
            .expect("a service");
        // With a store that may forget, the first ID waits for a window.
        while ids.try_gen_id().is_err() {
            std::thread::yield_now();
        }
        group.bench_function(name, |b| b.iter(|| ids.gen_id().expect("an ID")));
    }
    group.finish();
}

criterion_group!(benches, providers);
criterion_main!(benches);
