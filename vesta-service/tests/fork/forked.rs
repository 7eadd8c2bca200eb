//! Forks a child for a test. Also included by the tests of vesta-client with `#[path]`.

use vesta_intf::{ErrorKind, IdError};

/// Runs `child` in the child of a fork and returns whether it completed.
#[allow(unsafe_code)]
pub(crate) fn forked(child: impl FnOnce()) -> bool {
    // SAFETY: the child is a copy of this thread alone. It takes no lock that another thread of this test
    // may hold: glibc keeps the allocator usable after a fork, the code under test promises the same, and
    // the child exits through `_exit`, which runs nothing of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "it cannot fork");
    if pid == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).is_ok();
        // SAFETY: ends the process; the only argument is a number.
        unsafe { libc::_exit(i32::from(!done)) }
    }
    let mut status = -1;
    // SAFETY: `status` is a valid place for one integer, and only this call awaits the child `pid`.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    status == 0
}

pub(crate) fn is_told<T: std::fmt::Debug>(refused: Result<T, IdError>) {
    let error = refused.expect_err("nothing comes of a call in the child");
    assert_eq!(error.kind(), ErrorKind::Sealed);
    assert!(error.to_string().contains("forked"), "{error}");
}
