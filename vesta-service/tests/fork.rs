//! A process that forks after it built the service.

use std::sync::Arc;

use vesta_service::{
    Drive, ErrorKind, IdService as _, LocalIdService, MachineSource, ManualClock, UnixMillis,
};

const START: UnixMillis = UnixMillis(1_700_000_000_000);
const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs `child` in the child of a fork and returns whether it came to its end.
#[allow(unsafe_code)]
fn forked(child: impl FnOnce()) -> bool {
    // SAFETY: the child is a copy of this thread alone. It takes no lock that another thread of this test
    // may hold: glibc keeps the allocator usable after a fork, the service under test promises the same,
    // and the child leaves by `_exit`, which runs nothing of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "it cannot fork");
    if pid == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).is_ok();
        // SAFETY: ends the process; no argument but a number.
        unsafe { libc::_exit(i32::from(!done)) }
    }
    let mut status = -1;
    // SAFETY: `status` is a valid place for one integer, and `pid` is a child that nobody else awaits.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    status == 0
}

fn is_told(service: &LocalIdService) {
    for refused in [service.try_gen_id(), service.gen_id()] {
        let error = refused.expect_err("no ID beyond the first tick");
        assert_eq!(error.kind(), ErrorKind::Sealed);
        assert!(error.to_string().contains("forked"), "{error}");
    }
}

#[test]
fn a_child_makes_no_id_after_its_first_tick_and_leaves_the_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(START);
    let builder = || {
        LocalIdService::builder()
            .machine(MachineSource::Fixed(1))
            .state_dir(folder.path())
            .clock(Arc::new(clock.clone()))
            .drive(Drive::ByHand)
    };
    let files = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.map(|path| (std::fs::read(&path).unwrap(), path)).collect();
        files.sort();
        files
    };
    let service = builder().build().unwrap();
    service.gen_id().unwrap();
    let before = files();
    let mut service = Some(service);
    let in_child = forked(|| {
        let service = service.take().unwrap();
        clock.advance(2 * SECOND);
        is_told(&service);
        assert_eq!(service.maintain(), None);
        is_told(&service);
        service.close();
        drop(service);
    });
    assert!(in_child, "see what the child said");
    assert_eq!(files(), before, "nothing was written");
    let service = service.expect("the child had a copy");
    let refused = builder().build().expect_err("the parent still holds its machine ID");
    assert!(refused.is_configuration() || refused.to_string().contains("in use"), "{refused}");
    clock.advance(SECOND);
    service.maintain();
    service.gen_id().expect("the parent goes on");
}

/// By the real clock and with a keeper's thread, of which the child has none.
#[test]
fn a_child_without_a_keeper_is_told_too() {
    let folder = tempfile::tempdir().unwrap();
    let service = LocalIdService::builder()
        .machine(MachineSource::Fixed(1))
        .state_dir(folder.path())
        .build()
        .unwrap();
    let first = service.gen_id().unwrap();
    let in_child = forked(|| {
        // At most the rest of a second: what is used up is judged like a new tick.
        while let Ok(id) = service.try_gen_id() {
            assert_eq!(service.exp_id(id).unwrap().time, service.exp_id(first).unwrap().time);
        }
        is_told(&service);
        service.close();
    });
    assert!(in_child, "see what the child said");
    service.gen_id().expect("the parent goes on");
}
