//! Default folder of this host's state files.

use std::ffi::OsString;
use std::path::PathBuf;

/// The default folder of state files: the same for all programs of one user on one host, whatever their working
/// folder. So none of them knows less than the others. It is the first of `$STATE_DIRECTORY` (as systemd sets
/// it), `$XDG_STATE_HOME/vesta`, `$HOME/.local/state/vesta` and `/var/lib/vesta` that is set to an absolute
/// path. It is chosen even if it is not writable: falling through to another folder would mean another pool.
pub fn default_state_dir() -> PathBuf {
    choose(|name| std::env::var_os(name))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // systemd separates several folders of a unit by colons.
    let unit = variable("STATE_DIRECTORY").and_then(|paths| std::env::split_paths(&paths).next());
    // A user without a home directory has the root as one.
    let home = set("HOME").filter(|home| home.parent().is_some());
    unit.filter(|path| path.is_absolute())
        .or_else(|| Some(set("XDG_STATE_HOME")?.join("vesta")))
        .or_else(|| Some(home?.join(".local/state/vesta")))
        .unwrap_or_else(|| "/var/lib/vesta".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_set_counts_and_never_the_working_folder() {
        let all = [
            ("STATE_DIRECTORY", "/var/lib/ids:/var/lib/other"),
            ("XDG_STATE_HOME", "/xdg"),
            ("HOME", "/home/ann"),
        ];
        for (set, expected) in [
            (&all[..], "/var/lib/ids"),
            (&all[1..], "/xdg/vesta"),
            (&all[2..], "/home/ann/.local/state/vesta"),
            (&[("HOME", "/")], "/var/lib/vesta"),
            (
                &[("STATE_DIRECTORY", ""), ("XDG_STATE_HOME", "state")],
                "/var/lib/vesta",
            ),
            (
                &[("STATE_DIRECTORY", "ids"), ("HOME", "/root")],
                "/root/.local/state/vesta",
            ),
            (&[], "/var/lib/vesta"),
        ] {
            let value = |name: &str| {
                let found = set.iter().find(|variable| variable.0 == name);
                found.map(|variable| variable.1.into())
            };
            assert_eq!(choose(value).to_str(), Some(expected), "{set:?}");
        }
    }
}
