//! Services at another server than the one that wrote to their namespace last.

use std::time::Duration;

use vesta_service::lease::{Namespace, Writer};
use vesta_service::{BuildError, LocalIdService};

use crate::common::leases;
use crate::common::setting::Setting;

fn at(server: &str, unseen: Option<&str>) -> Writer {
    Writer {
        server: server.into(),
        unseen: unseen.map(str::to_owned),
    }
}

fn namespace(setting: &Setting) -> Namespace {
    let found = leases(&setting.memory).find().expect("memory");
    found.expect("it was created")
}

fn written(setting: &Setting) -> Option<String> {
    namespace(setting).writer
}

fn pass(setting: &Setting, service: &LocalIdService, seconds: u64) {
    for _ in 0..seconds {
        setting.clock.advance(Duration::from_secs(1));
        service.maintain();
    }
}

#[test]
fn a_start_at_another_server_that_hides_its_source_is_refused_and_writes_nothing() {
    let setting = Setting::new();
    setting.store.show_writer(at("a", Some("GRANT X")));
    drop(setting.start());
    assert_eq!(written(&setting).as_deref(), Some("a"), "the first start");
    drop(setting.start());
    let before = leases(&setting.memory).snapshot().expect("memory");
    setting.store.show_writer(at("b", Some("GRANT X")));
    let Err(error @ BuildError::Store { .. }) = setting.try_start() else {
        panic!("it may be a second server");
    };
    let said = error.to_string();
    assert!(said.contains("`GRANT X`"), "{said}");
    let after = leases(&setting.memory).snapshot().expect("memory");
    assert_eq!(after, before, "nothing was written");
}

#[test]
fn a_start_at_a_server_that_took_over_doubts_the_store() {
    let setting = Setting::new();
    setting.store.show_writer(at("a", None));
    drop(setting.start());
    setting.store.show_writer(at("b", None));
    let _waits_for_the_reach = setting.try_start();
    let namespace = namespace(&setting);
    assert_eq!(namespace.writer.as_deref(), Some("b"));
    let doubt = namespace.doubt.expect("a fail-over may have lost changes");
    assert_eq!(doubt.why, "server `b` took over from server `a`");
    assert!(doubt.reach.since(doubt.since) > Some(60_000), "{doubt:?}");
}

/// Under the words of earlier versions, or a store without such servers, nothing was written.
#[test]
fn a_running_holder_writes_the_server_down() {
    let setting = Setting::new();
    let service = setting.start();
    assert_eq!(written(&setting), None);
    setting.store.show_writer(at("a", Some("GRANT X")));
    pass(&setting, &service, 90);
    assert_eq!(written(&setting).as_deref(), Some("a"));
    assert_eq!(namespace(&setting).doubt, None);
}

#[test]
fn a_holder_whose_server_took_over_doubts_the_store_at_its_next_look() {
    let setting = Setting::new();
    setting.store.show_writer(at("a", None));
    let service = setting.start();
    setting.store.show_writer(at("b", None));
    pass(&setting, &service, 90);
    assert_eq!(written(&setting).as_deref(), Some("b"));
    assert!(namespace(&setting).doubt.is_some());
    service.gen_id().expect("it goes on");
}

#[test]
fn a_holder_at_another_server_that_hides_its_source_stops_at_its_bound() {
    let setting = Setting::new();
    setting.store.show_writer(at("a", Some("GRANT X")));
    let service = setting.start();
    setting.store.show_writer(at("b", Some("GRANT X")));
    pass(&setting, &service, 30);
    service.gen_id().expect("within its window");
    pass(&setting, &service, 150);
    assert!(service.try_gen_id().is_err(), "nothing was extended");
    assert_eq!(written(&setting).as_deref(), Some("a"));
    setting.store.show_writer(at("b", None));
    pass(&setting, &service, 60);
    service.gen_id().expect("the privilege was granted");
    assert!(namespace(&setting).doubt.is_some());
}
