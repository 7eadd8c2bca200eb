//! One host whose processes use two stores in turn: each is remembered for itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::setting::Setting;
use vesta_service::lease::KvStore as _;
use vesta_service::testing::{FlakyStore, MemoryStore};
use vesta_service::{BuildError, LocalIdService};

#[derive(Debug, Clone, Copy)]
enum Step {
    Start,
    Stop,
    Kill,
}

/// Every step with each of two stores.
const STEPS: [(Step, usize); 6] = [
    (Step::Start, 0),
    (Step::Stop, 0),
    (Step::Kill, 0),
    (Step::Start, 1),
    (Step::Stop, 1),
    (Step::Kill, 1),
];

/// Two stores of one host, with one state directory and one clock, and a process of each.
struct Host {
    stores: [Setting; 2],
    running: [Option<LocalIdService>; 2],
    issued: BTreeSet<u64>,
}

impl Host {
    fn new() -> Self {
        let one = Setting::new();
        let memory = Arc::new(MemoryStore::new());
        let other = Setting {
            store: FlakyStore::new(memory.clone()),
            memory,
            clock: one.clock.clone(),
            folder: vesta_testkit::fast_folder(),
        };
        Self {
            stores: [one, other],
            running: [None, None],
            issued: BTreeSet::new(),
        }
    }

    fn start(&mut self, of: usize) -> Result<(), BuildError> {
        let (folder, setting) = (self.stores[0].folder.path().to_owned(), &self.stores[of]);
        let service = setting.builder().state_dir(folder).build()?;
        for _ in 0..3 {
            let id = service.gen_id().expect("a lease");
            assert!(self.issued.insert(id), "an ID came twice");
        }
        self.running[of] = Some(service);
        Ok(())
    }

    fn play(&mut self, step: Step, of: usize) -> Result<(), BuildError> {
        match step {
            Step::Start if self.running[of].is_none() => self.start(of)?,
            Step::Start => {}
            Step::Stop => self.running[of] = None,
            Step::Kill => {
                let store = &self.stores[of].store;
                store.go_away(); // nothing is released
                self.running[of] = None;
                store.come_back();
            }
        }
        Ok(())
    }
}

/// Each order of four steps; then each store that was used goes back.
#[test]
fn a_number_of_another_store_refuses_no_start_and_a_store_that_went_back_is_refused() {
    let (mut orders, mut refused) = (0, 0);
    for order in 0..STEPS.len().pow(4) {
        let steps = [1, 6, 36, 216].map(|unit| STEPS[order / unit % STEPS.len()]);
        let (mut host, mut used) = (Host::new(), [false; 2]);
        for (step, of) in steps {
            used[of] |= matches!(step, Step::Start);
            let played = host.play(step, of);
            played.unwrap_or_else(|error| panic!("{steps:?}: {error}"));
        }
        orders += 1;
        for of in (0..2).filter(|of| used[*of]) {
            // A process that runs has its state file locked, and with it what the file remembers of the other store.
            host.play(Step::Kill, 0).expect("it ends");
            host.play(Step::Kill, 1).expect("it ends");
            host.stores[of].memory.forget();
            let started = host.start(of);
            let is_refused = matches!(started, Err(BuildError::StoreRegressed { .. }));
            assert!(is_refused, "{steps:?}, store {of}: {started:?}");
            refused += 1;
        }
    }
    assert_eq!(orders, 1296);
    assert!(refused > 1000, "{refused}");
}

/// The same store under another name is still known, by what it holds.
#[test]
fn a_store_that_moved_is_the_same_store() {
    let mut host = Host::new();
    host.start(0).expect("a new store");
    host.play(Step::Stop, 0).expect("it ends");
    let entries = host.stores[0].memory.list("lease/default");
    let [old, moved] = [&host.stores[0].memory, &host.stores[1].memory];
    for (key, value) in entries.expect("memory") {
        let put = moved.put_if("lease/default", &key, None, &value);
        assert!(put.expect("memory"));
    }
    old.forget();
    host.start(1).expect("it knows everything");
    host.play(Step::Stop, 1).expect("it ends");
    // An earlier state of it is refused at both places.
    for of in [0, 1] {
        host.stores[of].memory.forget();
        assert!(matches!(
            host.start(of),
            Err(BuildError::StoreRegressed { .. })
        ));
    }
}
