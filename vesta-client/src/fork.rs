//! Fork: a child has a copy of the prefetched IDs, and none of the tasks that talk to the servers.

use std::sync::atomic::{AtomicU32, Ordering};

use vesta_intf::IdError;

/// Forks between the process of the first client and this one, plus 1.
static FORKS: AtomicU32 = AtomicU32::new(1);

/// The process that a client was built in. Never 0.
#[inline]
pub(crate) fn process() -> u32 {
    FORKS.load(Ordering::Relaxed) // changes only while no other thread runs
}

/// As [`process`], with a fork handler installed: from now on the value differs in each child.
pub(crate) fn watched_process() -> u32 {
    #[cfg(unix)]
    watch();
    process()
}

/// Refuses a call in a child of the process that built the client.
pub(crate) fn check(built_in: u32) -> Result<(), IdError> {
    if process() == built_in {
        return Ok(());
    }
    let reason = "this process was forked after the client was built; build it in the child";
    Err(IdError::Sealed {
        reason: reason.into(),
    })
}

#[cfg(unix)]
fn watch() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static HANDLER: std::sync::Once = std::sync::Once::new();
    HANDLER.call_once(|| {
        // SAFETY: the handler is a function that is never unloaded before its module is, and only adds to a
        // static number, which POSIX allows in the child.
        #[allow(unsafe_code)]
        let failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert_eq!(failed, 0, "out of memory: cannot add a fork handler");
    });
}
