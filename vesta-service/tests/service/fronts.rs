//! Two entry points of one service: the same machine ID, another genMethod.

use vesta_intf::{GenMethod, IdMeta, UnixMillis};
use vesta_service::options::Drive;
use vesta_service::testing::ManualClock;
use vesta_service::{LocalIdService, MachineSource};

fn service(clock: &ManualClock, layout: IdMeta) -> LocalIdService {
    let service = LocalIdService::builder()
        .layout(layout)
        .machine(MachineSource::Stateless(7))
        .gen_method(GenMethod::Rest)
        .clock(std::sync::Arc::new(clock.clone()))
        .drive(Drive::ByHand);
    service.build().expect("a service")
}

#[test]
fn ids_of_both_fronts_never_collide_and_name_their_front() {
    let clock = ManualClock::at(UnixMillis(1_767_225_600_000));
    let rest = service(&clock, IdMeta::MAX_PEAK);
    let grpc = rest
        .with_gen_method(GenMethod::Central)
        .expect("there is room");
    for seq in [0, 2, 4] {
        let first = rest
            .exp_id(rest.gen_id().expect("an ID"))
            .expect("its fields");
        let mut two = [0];
        grpc.gen_ids(&mut two).expect("an ID");
        let second = grpc.exp_id(two[0]).expect("its fields");
        assert_eq!((first.gen_method, first.seq, first.machine), (2, seq, 7));
        assert_eq!(
            (second.gen_method, second.seq, second.machine),
            (1, seq + 1, 7)
        );
        assert_eq!(first.time, second.time);
    }
    let made = vesta_intf::MakeId::new(1, 1);
    let made = grpc
        .exp_id(grpc.make_id(&made).expect("an ID"))
        .expect("its fields");
    assert_eq!(
        (made.gen_method, made.machine),
        (1, 7),
        "an omitted field takes its own value"
    );
}

#[test]
fn dropping_the_last_front_or_closing_any_ends_the_service() {
    let clock = ManualClock::at(UnixMillis(1_767_225_600_000));
    let rest = service(&clock, IdMeta::MAX_PEAK);
    let grpc = rest
        .with_gen_method(GenMethod::Central)
        .expect("there is room");
    drop(rest);
    grpc.gen_id().expect("the other one is still there");
    let again = grpc
        .with_gen_method(GenMethod::Embed)
        .expect("there is room");
    grpc.close();
    assert!(again.gen_id().is_err());
}

#[test]
fn a_layout_without_gen_method_has_one_kind_of_ids() {
    let clock = ManualClock::at(UnixMillis(1_767_225_600_000));
    let one = service(&clock, IdMeta::SNOWFLAKE);
    let other = one
        .with_gen_method(GenMethod::Central)
        .expect("nothing to write");
    let (first, second) = (one.gen_id().expect("an ID"), other.gen_id().expect("an ID"));
    assert_eq!(second, first + 1);
}

#[test]
fn debug_is_one_line() {
    let service = LocalIdService::builder()
        .machine(MachineSource::Stateless(7))
        .build();
    let service = service.expect("nothing to write");
    let expected = "LocalIdService(max-peak, namespace default, fixed 7, stateless: IDs can repeat after a restart)";
    assert_eq!(format!("{service:#?}"), expected);
}
