//! Threads whose filter of system calls refuses `membarrier`.

use vesta_service::contract::ErrorKind;

use crate::fixed;

/// From now on `membarrier` fails in this thread and in those that it starts.
#[allow(unsafe_code)]
fn refuse_membarrier() {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let number = u32::try_from(libc::SYS_membarrier).unwrap();
    let refused = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap();
    let mut steps = [
        step(0x20, 0, 0, 0), // load the number of the call
        step(0x15, 0, 1, number),
        step(0x06, 0, 0, refused),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: u16::try_from(steps.len()).unwrap(),
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the filter is complete and lives longer than the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        );
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}

fn in_a_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join().expect("see what it said"));
}

#[test]
fn without_the_barrier_all_threads_are_served_as_before() {
    let folder = tempfile::tempdir().unwrap();
    in_a_thread(|| {
        refuse_membarrier();
        let service = fixed(1, folder.path()).build().unwrap();
        let mut last = service.gen_id().unwrap();
        for _ in 0..20 {
            std::thread::scope(|scope| {
                let id = scope.spawn(|| service.gen_id().unwrap()).join().unwrap();
                assert!(id > last);
                last = service.gen_id().unwrap();
                assert!(last > id);
            });
        }
    });
}

/// The thread that has the word keeps it; another one learns what to do, and nothing is issued twice.
#[test]
fn a_barrier_refused_after_the_start_is_named() {
    let folder = tempfile::tempdir().unwrap();
    in_a_thread(|| {
        let service = fixed(1, folder.path()).build().unwrap();
        let first = service.gen_id().unwrap();
        refuse_membarrier();
        let other = || std::thread::scope(|scope| scope.spawn(|| service.gen_id()).join().unwrap());
        let error = other().expect_err("it cannot take the word away");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("`membarrier`"), "{error}");
        assert!(
            service.gen_id().unwrap() > first,
            "the first thread goes on"
        );
        service.close();
        let after = service.gen_id().expect_err("closed");
        assert_eq!(after.kind(), ErrorKind::Sealed);
        assert_eq!(other().expect_err("closed").kind(), ErrorKind::Sealed);
    });
    // Its bound counts: nothing that it may have issued comes again.
    fixed(1, folder.path()).build().unwrap().gen_id().unwrap();
}
