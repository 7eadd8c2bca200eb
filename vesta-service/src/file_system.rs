//! Network file systems: their locks may not keep two hosts apart, and their syncs may not be durable.

use std::path::Path;

use crate::os;

/// Network file systems by the magic number that Linux's `statfs` reports. Any FUSE counts as one,
/// whatever its backend: sshfs, GlusterFS, virtiofs. Overlayfs, which containers use, is local.
#[rustfmt::skip]
const NETWORK: [(i64, &str); 17] = [
    (0x6969, "NFS"), (0x517b, "SMB"), (0xfe53_4d42, "SMB"), (0xff53_4d42, "CIFS"), (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"), (0x00c3_6400, "Ceph"), (0x0bd0_0bd0, "Lustre"), (0x4750_4653, "GPFS"),
    (0x5346_414f, "AFS"), (0x6b41_4653, "AFS"), (0x0116_1970, "GFS2"), (0x7461_636f, "OCFS2"),
    (0x786f_4256, "vboxsf"), (0xbacb_acbc, "vmhgfs"), (0x1983_0326, "BeeGFS"), (0xaad7_aaea, "PanFS"),
];

/// The network file system with this magic number; `None` for a local one.
fn network(number: i64) -> Option<&'static str> {
    NETWORK
        .iter()
        .find(|known| known.0 == number)
        .map(|known| known.1)
}

/// Refuses a path that is on a network file system, or will be once it exists; if that is allowed, only logs
/// a warning. Systems other than Linux do not report the file system of a path.
///
/// # Errors
/// A message that names the remedy.
pub fn check_local(path: &Path, allowed: bool) -> Result<(), String> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let Some(kind) = whole
        .ancestors()
        .find_map(os::file_system)
        .and_then(network)
    else {
        return Ok(());
    };
    let said = format!(
        "{} is on a network file system ({kind}), whose locks may not keep two hosts apart; use a folder on a \
         local disk (--state-dir), or a network store (--machine-store); state.allow_network_fs = true overrides this",
        path.display()
    );
    allowed.then(|| tracing::warn!("{said}")).ok_or(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognised_and_local_ones_are_not() {
        for (number, kind) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB"),
            (0x6573_5546, "FUSE"), // also virtiofs
            (0x0102_1997, "9p"),
        ] {
            assert_eq!(network(number), Some(kind));
        }
        let [ext4, xfs, btrfs, tmpfs] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];
        let [overlay, zfs, f2fs] = [0x794c_7630, 0x2fc1_2fc1, 0xf2f5_2010];
        for local in [ext4, xfs, btrfs, tmpfs, overlay, zfs, f2fs] {
            assert_eq!(network(local), None, "{local:x}");
        }
        let numbers: std::collections::BTreeSet<_> = NETWORK.map(|known| known.0).into();
        assert_eq!(numbers.len(), NETWORK.len());
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_on_the_file_system_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check_local(&folder.path().join("not/yet"), false), Ok(()));
        let relative = |path: &str| check_local(Path::new(path), false).is_ok();
        assert_eq!(relative("not/here/either"), relative("."));
    }
}
