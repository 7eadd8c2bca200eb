//! Services on layouts of arbitrary numbers, and on arbitrary rows of tags.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use vesta_intf::{Field, FieldOrder, LayoutSpec, TimeUnit};
use vesta_numbers::segment::{SegmentService, SegmentTag};
use vesta_numbers::testing::MemorySegmentStore;
use vesta_service::clock::Clock as _;
use vesta_service::contract::{MakeId, UnixMillis};
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;
use vesta_service::{IdError, IdMeta, LocalIdService, MachineSource};

type Numbers = ([u8; 6], u8, u8, u64, u64, [u64; 6], u8);

/// Any generating layout, and a moment inside it.
fn layout(widths: &[u8; 6], order: u8, unit: u8, epoch: u64) -> Option<IdMeta> {
    let mut left = 64;
    let mut width = |i: usize, most: u8| {
        let width = widths[i] % (most.min(left) + 1);
        left -= width;
        width
    };
    let spec = LayoutSpec {
        version_bits: width(0, 1),
        time_bits: width(1, 61),
        seq_bits: width(2, 62),
        machine_bits: width(3, 63),
        type_bits: width(4, 63),
        gen_method_bits: width(5, 63),
        order: [FieldOrder::TimeSeqMachine, FieldOrder::TimeMachineSeq][usize::from(order % 2)],
        unit: [TimeUnit::Second, TimeUnit::TenMillis, TimeUnit::Millisecond][usize::from(unit % 3)],
        epoch: UnixMillis(epoch >> (order % 64)),
    };
    IdMeta::new(spec).ok()
}

fn check_service((widths, order, unit, epoch, seed, parts, few): &Numbers) {
    let Some(meta) = layout(widths, *order, *unit, *epoch) else {
        return;
    };
    // The service counts nanoseconds in 64 bits: up to the year 2554.
    let (epoch, end) = (meta.spec().epoch.0, meta.end().0.min(1 << 44));
    if epoch >= end {
        return;
    }
    let clock = ManualClock::at(UnixMillis(epoch + seed % (end - epoch)));
    let machine = parts[0] & meta.max(Field::Machine);
    let built = LocalIdService::builder()
        .layout(meta)
        .machine(MachineSource::Stateless(machine))
        .version(parts[1] & meta.max(Field::Version))
        .max_wait(Duration::from_secs(3))
        .clock(Arc::new(clock.clone()))
        .drive(Drive::ByHand)
        .build();
    let service = match built {
        Ok(service) => service,
        Err(error) => return assert!(error.is_configuration(), "{meta}: {error}"),
    };
    let mut last = None;
    for _ in 0..=*few {
        match service.gen_id() {
            Ok(id) => {
                assert!(last < Some(id), "{meta}: {id} after {last:?}");
                let parts = service.exp_id(id).unwrap();
                assert_eq!((parts.machine, meta.pack(&parts).unwrap()), (machine, id));
                last = Some(id);
            }
            Err(IdError::TimeExhausted | IdError::NotReady(_)) => break,
            Err(other) => panic!("{meta}: {other}"),
        }
    }
    for cut in [false, true] {
        let value = |i: usize, field| parts[i] & if cut { meta.max(field) } else { u64::MAX };
        let make = MakeId {
            machine: (parts[3] & 1 == 0).then(|| value(2, Field::Machine)),
            gen_method: (parts[3] & 2 == 0).then(|| value(3, Field::GenMethod)),
            id_type: (parts[3] & 4 == 0).then(|| value(4, Field::Type)),
            version: (parts[3] & 8 == 0).then(|| value(5, Field::Version)),
            ..MakeId::new(value(0, Field::Time), value(1, Field::Seq))
        };
        match service.make_id(&make) {
            Ok(id) => {
                let made = service.exp_id(id).unwrap();
                assert_eq!((made.time, made.seq), (make.time, make.seq), "{meta}");
                assert_eq!(made.machine, make.machine.unwrap_or(machine), "{meta}");
            }
            Err(IdError::OutOfRange { .. }) => {}
            Err(other) => panic!("{meta}: {other}"),
        }
        let _ = service.exp_id(value(2, Field::Time));
        let _ = service.trans_time(value(3, Field::Time));
    }
    clock.advance(Duration::from_millis(seed % 100_000));
    service.maintain();
    let _ = (service.gen_id(), service.status());
}

#[test]
fn services_of_any_layout() {
    bolero::check!()
        .with_iterations(20_000)
        .with_type()
        .for_each(check_service);
}

fn next(service: &SegmentService, key: &str) -> Result<u64, IdError> {
    service.segment(key)?.next()
}

/// Each tag issues the numbers from its `max_id` on once, or none with the reason.
#[test]
fn tags_of_any_rows() {
    type Rows = Vec<(u8, i64, i64, u8)>;
    bolero::check!()
        .with_iterations(vesta_testkit::full_or(10_000, 3_000))
        .with_type()
        .for_each(|rows: &Rows| {
            let store = Arc::new(MemorySegmentStore::new());
            let clock = ManualClock::at(UnixMillis(1_700_000_000_000));
            let mut first = HashMap::new();
            let write = |store: &MemorySegmentStore,
                         (key, max_id, step, kind): &(u8, i64, i64, u8)| {
                // Most of them valid, the others arbitrary.
                let edge = i64::MAX - max_id.rem_euclid(2_000);
                let max_id = [*max_id, max_id.rem_euclid(10_000), edge][usize::from(kind % 3)];
                let step = [*step, step.rem_euclid(100)][usize::from(kind / 3 % 2)];
                let key = format!("tag {}", key % 5);
                store.put(SegmentTag::new(key.clone(), max_id, step));
                (key, max_id)
            };
            for row in rows {
                let (key, max_id) = write(&store, row);
                first.insert(key, max_id);
            }
            let service = SegmentService::builder(store.clone())
                .clock(Arc::new(clock.clone()))
                .drive(Drive::ByHand)
                .build()
                .unwrap();
            let before = clock.monotonic();
            for (key, max_id) in &first {
                let mut next = u64::try_from(*max_id).ok();
                for want in [1, 7, 5_000] {
                    match (
                        service.segment(key).and_then(|tag| tag.next_run(want)),
                        next,
                    ) {
                        (Ok(run), Some(from)) => {
                            assert_eq!((run.first, run.step), (from, 1), "{key}");
                            assert!((1..=want).contains(&run.count));
                            next = Some(from + u64::from(run.count));
                        }
                        (Ok(run), None) => panic!("{run:?} of a tag with a negative max_id"),
                        (Err(error), _) => drop(error.to_string()),
                    }
                }
                assert!(
                    next <= Some(i64::MAX.unsigned_abs()),
                    "{key}: more than 63 bits"
                );
            }
            // Rows change while in use; no number repeats.
            let highest: HashMap<_, _> = first
                .keys()
                .map(|key| (key, next(&service, key).ok()))
                .collect();
            rows.iter().rev().for_each(|row| drop(write(&store, row)));
            let _ = service.refresh();
            clock.advance(Duration::from_secs(3_600));
            service.maintain();
            for (key, last) in highest {
                if let (Ok(next), Some(last)) = (next(&service, key), last) {
                    assert!(next > last, "{key}: {next} after {last}");
                }
            }
            assert!(
                clock.monotonic() - before < Duration::from_secs(7_200),
                "max_wait holds"
            );
        });
}
