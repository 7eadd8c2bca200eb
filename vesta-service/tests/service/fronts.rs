//! Two front doors of one service: the same machine ID, another genMethod.

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
fn their_ids_come_from_one_line_and_say_by_which_they_were_made() {
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
        "what is left out is its own"
    );
}

#[test]
fn the_last_of_them_ends_the_service_and_a_close_ends_it_for_all() {
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
fn a_layout_without_the_field_has_one_kind_of_ids() {
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
