//! Servers on one half of the cores, their client on the other.
//!
//! If both share all cores, the slowest requests are those that waited for the scheduler to end
//! another thread's time slice of some milliseconds. They say nothing about the server.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The two halves of the cores that this process may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Halves {
    pub(crate) servers: CpuSet,
    pub(crate) client: CpuSet,
}

impl Halves {
    /// `None` with a single core.
    pub(crate) fn of_all() -> io::Result<Option<Self>> {
        let all = sched_getaffinity(None)?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|core| all.is_set(*core))
            .collect();
        let (servers, client) = cores.split_at(cores.len() / 2);
        let set = |cores: &[usize]| {
            let mut set = CpuSet::new();
            cores.iter().for_each(|core| set.set(*core));
            set
        };
        let halves = Self {
            servers: set(servers),
            client: set(client),
        };
        Ok((!servers.is_empty()).then_some(halves))
    }
}

/// Pins the calling thread to these cores.
pub(crate) fn keep_to(cores: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(None, cores)?)
}

/// Runs `work` on these cores; a process that it starts stays there.
pub(crate) fn on<T>(cores: &CpuSet, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    keep_to(cores)?;
    let done = work();
    keep_to(&before)?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_share_no_core_and_leave_none_out() {
        let all = sched_getaffinity(None).unwrap();
        match Halves::of_all().unwrap() {
            None => assert_eq!(all.count(), 1),
            Some(Halves { servers, client }) => {
                assert!(servers.count() >= 1 && client.count() >= servers.count());
                for core in 0..CpuSet::MAX_CPU {
                    let times = u8::from(servers.is_set(core)) + u8::from(client.is_set(core));
                    assert_eq!(times, u8::from(all.is_set(core)), "core {core}");
                }
                let inside = on(&servers, || Ok(sched_getaffinity(None)?)).unwrap();
                assert_eq!(inside, servers);
                assert_eq!(sched_getaffinity(None).unwrap(), all);
            }
        }
    }
}
