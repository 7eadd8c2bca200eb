//! Single-use machine IDs.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::START;
use vesta_service::lease::StoreError;
use vesta_service::options::{Drive, WorkerNodeStore};
use vesta_service::testing::ManualClock;
use vesta_service::{BuildError, IdMeta, LocalIdService, MachineSource};

/// An in-memory table, like that of a database.
#[derive(Debug, Default)]
struct Table {
    last: AtomicU64,
    unanswered: AtomicU64,
    doubted: bool,
}

impl WorkerNodeStore for Table {
    fn describe(&self) -> String {
        "a table".into()
    }

    fn insert(&self, host: &str, pid: u32) -> Result<u64, StoreError> {
        assert!(!host.is_empty() && pid == std::process::id());
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let left = self.unanswered.load(Ordering::Relaxed);
        if left > 0 {
            self.unanswered.store(left - 1, Ordering::Relaxed);
            let lost = std::io::Error::other("timed out");
            return Err(StoreError::unavailable("no reply", lost));
        }
        Ok(number)
    }

    fn highest(&self) -> Result<u64, StoreError> {
        Ok(self.last.load(Ordering::Relaxed))
    }

    fn doubt(&self) -> Result<Option<String>, StoreError> {
        Ok(self.doubted.then(|| "a replica lags".into()))
    }
}

fn start(
    table: &Arc<Table>,
    clock: &ManualClock,
    layout: IdMeta,
) -> Result<LocalIdService, BuildError> {
    LocalIdService::builder()
        .layout(layout)
        .machine(MachineSource::Disposable {
            nodes: table.clone(),
        })
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build()
}

fn outside(refused: &BuildError) -> (u64, RangeInclusive<u64>) {
    match refused {
        BuildError::WorkerNodeOutside {
            number, machines, ..
        } => (*number, machines.clone()),
        other => panic!("{other}"),
    }
}

#[test]
fn each_start_takes_a_new_number_and_then_needs_no_store() {
    let (table, clock) = (Arc::new(Table::default()), ManualClock::at(START));
    for number in 1..=10_000 {
        let service = start(&table, &clock, IdMeta::UID).unwrap();
        let id = service.exp_id(service.gen_id().unwrap()).unwrap();
        assert_eq!((service.machine(), id.machine), (number, number));
    }
    let service = start(&table, &clock, IdMeta::UID).unwrap();
    clock.advance(Duration::from_secs(1_000_000));
    service.gen_id().expect("there is no window to run out");
    assert_eq!(service.status().window_left, Duration::MAX);
}

#[test]
fn the_end_of_the_machine_field_is_an_error_and_does_not_wrap() {
    let (table, clock) = (Arc::new(Table::default()), ManualClock::at(START));
    table.last.store(1022, Ordering::Relaxed);
    assert_eq!(
        start(&table, &clock, IdMeta::MAX_PEAK).unwrap().machine(),
        1023
    );
    for _ in 0..6 {
        let refused = start(&table, &clock, IdMeta::MAX_PEAK).unwrap_err();
        assert_eq!(outside(&refused), (1024, 0..=1023));
        assert!(
            refused.to_string().contains("the machine IDs end at 1023"),
            "{refused}"
        );
        assert!(
            refused.is_configuration(),
            "a supervisor does not start it again"
        );
    }
    assert_eq!(
        table.last.load(Ordering::Relaxed),
        1023,
        "a start that fails takes no number"
    );
}

/// A table's numbers are distinct, so they are used as machine IDs unchanged: no region setting, or
/// another one, can produce one of them twice.
#[test]
fn a_regions_table_must_begin_with_its_first_machine_id() {
    let (table, clock) = (Arc::new(Table::default()), ManualClock::at(START));
    let region = |number| IdMeta::MAX_PEAK.in_region(8, number).unwrap();
    let refused = start(&table, &clock, region(3)).unwrap_err();
    assert_eq!(outside(&refused), (1, 12..=15));
    assert!(
        refused.to_string().contains("machine IDs begin with 12"),
        "{refused}"
    );
    table.last.store(11, Ordering::Relaxed);
    for machine in [12, 13] {
        assert_eq!(start(&table, &clock, region(3)).unwrap().machine(), machine);
    }
    assert_eq!(
        outside(&start(&table, &clock, region(4)).unwrap_err()),
        (14, 16..=19)
    );
    assert_eq!(
        start(&table, &clock, IdMeta::MAX_PEAK).unwrap().machine(),
        15
    );
    assert_eq!(
        outside(&start(&table, &clock, region(3)).unwrap_err()),
        (16, 12..=15)
    );
}

#[test]
fn a_lost_reply_costs_one_number_and_nothing_else() {
    let (table, clock) = (Arc::new(Table::default()), ManualClock::at(START));
    table.unanswered.store(3, Ordering::Relaxed);
    assert_eq!(start(&table, &clock, IdMeta::UID).unwrap().machine(), 4);
}

/// Nothing protects from such a table, so the service warns, unless its settings vouch for the table.
#[test]
fn a_table_that_may_repeat_a_number_is_reported() {
    let told = |doubted, said: Option<bool>| {
        let builder = LocalIdService::builder()
            .layout(IdMeta::UID)
            .machine(MachineSource::Disposable {
                nodes: Arc::new(Table {
                    doubted,
                    ..Table::default()
                }),
            })
            .clock(Arc::new(ManualClock::at(START)))
            .drive(Drive::ByHand);
        let builder = match said {
            Some(said) => builder.store_doubt(said),
            None => builder,
        };
        builder
            .build()
            .unwrap()
            .status()
            .doubt
            .clone()
            .map(|doubt| doubt.why)
    };
    assert_eq!(told(false, None), None);
    assert_eq!(told(true, None).as_deref(), Some("a replica lags"));
    assert_eq!(told(true, Some(false)), None);
    assert_eq!(
        told(false, Some(true)).as_deref(),
        Some("the settings say so")
    );
}
