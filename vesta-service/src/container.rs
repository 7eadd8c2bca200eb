//! Containers: whether what is written to a path is lost together with the container of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// Facts about this process, as the system shows them.
struct Facts<'a> {
    exists: &'a dyn Fn(&str) -> bool,
    in_kubernetes: bool,
    /// Environment of process 1; empty if it cannot be read.
    first: &'a [u8],
    /// `/proc/self/mountinfo`; empty if it cannot be read.
    mounts: &'a str,
}

/// The sign by which this process is in a container, if the path is not on a volume there, or not on one that
/// outlives the container. `None` on other systems than Linux.
pub fn lost_with_container(path: &Path) -> Option<String> {
    let facts = Facts {
        exists: &|path| Path::new(path).exists(),
        in_kubernetes: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        first: &fs::read("/proc/1/environ").unwrap_or_default(),
        mounts: &fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
    };
    let whole = std::path::absolute(path).ok()?;
    let there = whole
        .ancestors()
        .find_map(|path| path.canonicalize().ok())?;
    facts.sign().filter(|_| facts.is_lost(&there))
}

impl Facts<'_> {
    fn sign(&self) -> Option<String> {
        let file = |path| (self.exists)(path).then(|| format!("{path} exists"));
        let kubernetes = || (self.in_kubernetes).then(|| "KUBERNETES_SERVICE_HOST is set".into());
        let mut variables = self.first.split(|byte| *byte == 0);
        let mut of_first = || {
            let name = variables.find_map(|it| it.strip_prefix(b"container="));
            let name = name.filter(|name| !name.is_empty())?;
            Some(format!(
                "container={} of process 1",
                String::from_utf8_lossy(name)
            ))
        };
        file("/.dockerenv")
            .or_else(|| file("/run/.containerenv"))
            .or_else(kubernetes)
            .or_else(&mut of_first)
    }

    /// True if the path is on the root, in memory, or on a volume that was made for this container only.
    fn is_lost(&self, path: &Path) -> bool {
        let mounts = self.mounts.lines().filter_map(Mount::read);
        let mounts = mounts.filter(|mount| path.starts_with(&mount.at));
        // Of two mounts at one place the later one counts.
        let Some(mount) = mounts.max_by_key(|mount| mount.at.components().count()) else {
            return false;
        };
        let is_unnamed =
            |name: &str| name.len() == 64 && name.bytes().all(|it| it.is_ascii_hexdigit());
        mount.at.parent().is_none()
            || matches!(mount.kind, "tmpfs" | "ramfs" | "overlay")
            || mount.of.contains("/kubernetes.io~empty-dir/")
            || mount.of.split('/').any(|part| part == "_data")
                && mount.of.split('/').any(is_unnamed)
    }
}

/// A line of `mountinfo`.
struct Mount<'a> {
    /// The part of the file system that is mounted.
    of: &'a str,
    at: PathBuf,
    kind: &'a str,
}

impl<'a> Mount<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (of, at) = (place.next()?, place.next()?);
        let at = at.replace("\\040", " ").replace("\\134", "\\").into();
        let kind = kind.split(' ').next()?;
        Some(Self { of, at, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:30 / / rw - overlay overlay rw,lowerdir=/a
23 22 0:31 / /proc rw - proc proc rw
24 22 8:1 /var/lib/docker/volumes/vesta/_data /var/lib/vesta rw shared:1 - ext4 /dev/sda1 rw
25 22 8:1 /var/lib/docker/volumes/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/_data /unnamed rw - ext4 /dev/sda1 rw
26 22 8:1 /pods/7/volumes/kubernetes.io~empty-dir/state /empty-dir rw - ext4 /dev/sda1 rw
27 22 8:1 /pods/7/volumes/kubernetes.io~csi/pv/mount /with\\040blank rw - xfs /dev/sdb rw
28 22 0:40 / /tmp rw - tmpfs tmpfs rw
29 28 8:1 /srv /tmp/kept rw - ext4 /dev/sda1 rw
30 24 0:41 / /var/lib/vesta/memory rw - tmpfs tmpfs rw
";

    fn facts<'a>(exists: &'a dyn Fn(&str) -> bool, first: &'a [u8], mounts: &'a str) -> Facts<'a> {
        Facts {
            exists,
            in_kubernetes: false,
            first,
            mounts,
        }
    }

    #[test]
    fn each_sign_of_a_container_counts_and_none_on_a_host() {
        let none = |_: &str| false;
        let sign = |facts: Facts<'_>| facts.sign();
        assert_eq!(sign(facts(&none, b"", MOUNTS)), None);
        assert_eq!(
            sign(facts(&none, b"HOME=/\0container=\0containers=3\0", MOUNTS)),
            None
        );
        for path in ["/.dockerenv", "/run/.containerenv"] {
            let exists = |it: &str| it == path;
            let said = sign(facts(&exists, b"", MOUNTS));
            assert_eq!(said, Some(format!("{path} exists")));
        }
        let pod = Facts {
            in_kubernetes: true,
            ..facts(&none, b"", MOUNTS)
        };
        assert_eq!(sign(pod).as_deref(), Some("KUBERNETES_SERVICE_HOST is set"));
        let said = sign(facts(&none, b"A=1\0container=podman\0", MOUNTS));
        assert_eq!(said.as_deref(), Some("container=podman of process 1"));
    }

    #[test]
    fn only_a_volume_that_outlives_its_container_keeps_a_path() {
        let none = |_: &str| false;
        for (path, is_lost) in [
            ("/root/.local/state/vesta", true),
            ("/var/lib/vesta", false),
            ("/var/lib/vesta/deeper", false),
            ("/var/lib/vesta/memory", true),
            ("/var/lib/vesta-2", true),
            ("/unnamed", true),
            ("/empty-dir/vesta", true),
            ("/with blank/vesta", false),
            ("/tmp/vesta", true),
            ("/tmp/kept/vesta", false),
        ] {
            let facts = facts(&none, b"", MOUNTS);
            assert_eq!(facts.is_lost(Path::new(path)), is_lost, "{path}");
        }
        assert!(
            !facts(&none, b"", "").is_lost(Path::new("/")),
            "nothing is known"
        );
        let twice = format!("{MOUNTS}31 22 8:1 /a /tmp rw - ext4 /dev/sda1 rw\n");
        assert!(!facts(&none, b"", &twice).is_lost(Path::new("/tmp/vesta")));
    }
}
