//! `store init`: creates what servers themselves may not create.

use vesta_store::{Options, StoreUrl};

use super::opened::Opened;
use crate::error::Error;
use crate::report::failed;
use crate::settings::Config;
use crate::settings::Machine;
use crate::stores::{self, host_name, options};

pub(super) fn run(config: &Config) -> Result<String, Error> {
    let creating = Options {
        auto_init: true,
        ..options(config)
    };
    if let Machine::Disposable { store } = &config.machine {
        return worker_nodes(store, &creating);
    }
    let existing = Options {
        auto_init: false,
        ..creating.clone()
    };
    let (opened, made) = match Opened::open(config, &existing) {
        Ok(opened) => (opened, false),
        // The namespace is missing; any other error will recur.
        Err(Error::Setting(_)) => (Opened::open(config, &creating)?, true),
        Err(error) => return Err(error),
    };
    opened.insist_on_layout()?;
    Ok(said(&opened, made))
}

fn said(opened: &Opened, made: bool) -> String {
    let Opened {
        namespace, layout, ..
    } = opened;
    let what = if made {
        "created"
    } else {
        "already there, nothing to do:"
    };
    format!(
        "{what} namespace {} in {}\n  uuid        {:032x}\n  layout      {}\n  fingerprint {}\n",
        opened.name(),
        opened.store().describe(),
        namespace.uuid,
        layout,
        namespace.fingerprint,
    )
}

/// The table of worker nodes is created together with its first row.
fn worker_nodes(store: &StoreUrl, creating: &Options) -> Result<String, Error> {
    let nodes = stores::worker_nodes(store, creating)?;
    let number = nodes.insert(&host_name(), std::process::id());
    let number = number.map_err(|error| failed(&nodes.describe(), &error))?;
    Ok(format!(
        "the table WORKER_NODE exists in {}; this used up its number {number}\n",
        nodes.describe()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::World;
    use super::*;

    #[test]
    fn the_report_says_what_was_created_or_already_existed() {
        let world = World::new();
        let opened = world.opened();
        let uuid = format!("{:032x}", opened.namespace.uuid);
        let said_of = |made| said(&opened, made);
        assert!(said_of(true).starts_with("created namespace default in memory\n"));
        assert!(said_of(false).starts_with("already there, nothing to do: namespace default"));
        for part in [uuid.as_str(), "max-peak (version 1", "1/1/2/30/20/10 tsm"] {
            assert!(said_of(true).contains(part), "{part} in {}", said_of(true));
        }
    }
}
