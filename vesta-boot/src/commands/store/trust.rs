//! `store trust`: for a doubted store that keeps acknowledged writes from now on.

use super::opened::Opened;
use crate::console::{Console, UNCHANGED};
use crate::error::Error;

pub(super) fn run(opened: &Opened, console: &mut Console) -> Result<String, Error> {
    let (name, store) = (opened.name(), opened.store().describe());
    let Some(doubt) = &opened.namespace.doubt else {
        return Ok(format!(
            "The store of namespace {name} is not in doubt. {UNCHANGED}"
        ));
    };
    let now = opened
        .store()
        .doubt()
        .map_err(|error| opened.failed(&error))?;
    let now = now.map_or("the store no longer reports a reason for doubt".to_owned(), |doubt| {
        let why = doubt.why;
        format!("the store still reports a reason, and will be in doubt again at the next start: {why}")
    });
    let plan = format!(
        "Trusting {store} with namespace {name}, in doubt since {}: {}\n\
         - {now};\n\
         - claims no longer keep a distance from what it may have forgotten, and the first ID comes at \
         once;\n\
         - if it loses acknowledged writes, in a fail-over or a crash, IDs can repeat.\n",
        doubt.since, doubt.why,
    );
    if !console.agrees(&plan, "Trust the store?")? {
        return Ok(UNCHANGED.to_owned());
    }
    opened
        .leases
        .clear_doubt()
        .map_err(|error| opened.failed(&error))?;
    Ok(format!("Namespace {name} trusts its store.\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vesta_service::options::Drive;
    use vesta_service::testing::ManualClock;
    use vesta_service::{LocalIdService, MachineSource};

    use super::super::testing::{NOW, World};
    use super::*;

    fn trust(world: &World, answer: Option<bool>) -> Result<String, String> {
        let opened = world.opened();
        world.with_console(answer, |console| run(&opened, console))
    }

    #[test]
    fn a_doubt_stays_until_an_operator_clears_it() {
        let world = World::new();
        assert!(
            trust(&world, None)
                .expect("nothing to do")
                .contains("is not in doubt")
        );
        let store = world.leases().store().clone();
        let folder = tempfile::tempdir().expect("a folder");
        let doubting = LocalIdService::builder()
            .machine(MachineSource::Pool { store, range: None })
            .state_dir(folder.path())
            .clock(Arc::new(ManualClock::at(NOW)))
            .drive(Drive::ByHand)
            .store_doubt(true);
        doubting.build().expect("a service");
        let doubt = world.opened().namespace.doubt.expect("written down");
        assert_eq!(doubt.why, "the settings say so");
        assert!(
            trust(&world, None)
                .expect_err("no terminal")
                .contains("--yes")
        );
        assert!(
            trust(&world, Some(false))
                .expect("declined")
                .ends_with(UNCHANGED)
        );
        assert!(world.opened().namespace.doubt.is_some());
        let said = trust(&world, Some(true)).expect("trusted");
        for part in [
            "the settings say so",
            "IDs can repeat",
            "Namespace default trusts its store",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert_eq!(world.opened().namespace.doubt, None);
    }
}
