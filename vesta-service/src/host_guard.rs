//! Host guard: among the processes of one host, only one holds a given machine ID of a namespace, whatever
//! their users and state directorys.
//!
//! The argument of docs/inside/safety.md does not rely on it. An unrelated process that takes the name can only keep
//! a machine ID from being used.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::sync::Once;

use parking_lot::Mutex;

use crate::os;

/// Names that one process takes at most; each costs a file descriptor.
const MOST: usize = 64;
/// Names of the guards of this process, guarded or not, each as often as it was taken.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());
static UNGUARDED: Once = Once::new();
/// Names found to be held by another process, until they are free, with its user. Each user is logged once, however
/// many names there are and however often this process tries them.
static ELSEWHERE: Mutex<BTreeMap<String, Option<u32>>> = Mutex::new(BTreeMap::new());

/// Guard of a machine ID of a namespace on this host, held until it is dropped or the process ends. For
/// stores that serve one host; a networked store decides by itself.
///
/// On Linux the guard is a name in the kernel, that of an abstract Unix socket
/// (`ss -xap | grep vesta/lease`). A name has one holder per network namespace. A process takes up to 64 of
/// them, one file descriptor each. Its further machine IDs are unguarded, which is logged once. On other
/// systems all of them are unguarded.
#[derive(Debug)]
#[must_use = "the machine ID is guarded until this is dropped"]
pub struct HostGuard {
    name: String,
    _taken: Option<os::Name>,
}

impl HostGuard {
    /// Takes the guard of an entry of an area, such as `lease/orders` and `7`; `None` if another holder on
    /// this host has it.
    pub fn take(area: &str, key: &str) -> Option<Self> {
        let name = named(area, key);
        let (count, mut guarded) = (HELD.lock().len(), None);
        let taken = match count {
            ..MOST => os::take_name(&name),
            _ => Err(Error::other(
                "limit of 64 guarded machine IDs per process reached",
            )),
        };
        match taken {
            Ok(taken) => {
                ELSEWHERE.lock().remove(&name);
                guarded = Some(taken);
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let user = os::user_of(&name);
                let mut elsewhere = ELSEWHERE.lock();
                if !elsewhere.values().any(|of| *of == user) {
                    let user = shown(user);
                    tracing::warn!(name, user, "another process on this host holds this machine ID");
                }
                elsewhere.insert(name, user);
                return None;
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => UNGUARDED.call_once(|| {
                tracing::warn!(name, %error, "not guarded against other users and state directorys on this host");
            }),
        }
        HELD.lock().push(name.clone());
        Some(Self {
            name,
            _taken: guarded,
        })
    }

    /// True if a guard of this process has an entry.
    pub(crate) fn is_own(area: &str, key: &str) -> bool {
        HELD.lock().contains(&named(area, key))
    }

    /// Users of this host that were found to hold names of a namespace, for people: `user 1000`.
    pub(crate) fn users(namespace: &str) -> Vec<String> {
        let of = ["lease", "block"].map(|kind| format!("vesta/{kind}/{namespace}/"));
        let elsewhere = ELSEWHERE.lock();
        let names = elsewhere
            .iter()
            .filter(|(name, _)| of.iter().any(|of| name.starts_with(of)));
        let users: BTreeMap<_, _> = names.map(|(_, user)| (user, ())).collect();
        users.into_keys().map(|user| shown(*user)).collect()
    }
}

fn named(area: &str, key: &str) -> String {
    format!("vesta/{area}/{key}")
}

fn shown(user: Option<u32>) -> String {
    user.map_or_else(
        || "a user that does not show".to_owned(),
        |user| format!("user {user}"),
    )
}

impl Drop for HostGuard {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        if let Some(index) = held.iter().position(|name| *name == self.name) {
            held.swap_remove(index);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_id_has_one_holder_and_the_first_64_of_a_process_are_guarded() {
        let area = format!("lease/{:x}", crate::random::u63());
        let take = |number: usize| HostGuard::take(&area, &number.to_string());
        let first = take(0).expect("free");
        assert!(take(0).is_none());
        assert!(HostGuard::take(&format!("{area}-other"), "0").is_some());
        drop(first);
        let held: Vec<_> = (0..MOST + 2)
            .map(|number| take(number).expect("free"))
            .collect();
        drop(HostGuard::take(&area, "0").expect("no more names are taken, so none is compared"));
        drop(held);
        let _first = take(0).expect("free again");
        assert!(take(0).is_none());
    }

    #[test]
    fn the_holder_of_a_name_is_known_by_its_user() {
        let namespace = format!("{:x}", crate::random::u63());
        let area = format!("lease/{namespace}");
        let held = HostGuard::take(&area, "7").expect("free");
        assert!(HostGuard::users(&namespace).is_empty());
        assert!(HostGuard::take(&area, "7").is_none());
        let own = std::os::unix::fs::MetadataExt::uid(
            &std::fs::metadata("/proc/self").expect("it is there"),
        );
        assert_eq!(HostGuard::users(&namespace), [format!("user {own}")]);
        drop(held);
        let _held = HostGuard::take(&area, "7").expect("free again");
        assert!(HostGuard::users(&namespace).is_empty());
        // A stranger that took the name does not listen.
        let name = format!("vesta/{area}/8");
        let address = rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes());
        let (family, kind) = (
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
        );
        let silent = rustix::net::socket(family, kind, None).expect("a socket");
        rustix::net::bind(&silent, &address.expect("a name")).expect("free");
        assert!(HostGuard::take(&area, "8").is_none());
        assert_eq!(HostGuard::users(&namespace), ["a user that does not show"]);
    }
}
