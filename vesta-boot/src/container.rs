//! State that is lost together with the container of this process.

use vesta_service::options::lost_with_container;

use crate::settings::{Config, Machine};

/// Why what a start relies on is lost with this container, and what to do; `None` if it outlives it, or if a store on
/// the network keeps it.
pub fn lost_state(config: &Config) -> Option<String> {
    let kept = match &config.machine {
        Machine::Stateless(_) => return None,
        Machine::Fixed(_) => Some(&*config.state_dir),
        machine => machine.store().and_then(|store| store.file()),
    }?;
    let sign = lost_with_container(kept)?;
    let (kept, unseen, ways) = match config.unnamed_pool {
        true => (
            "the pool of machine IDs",
            ", and no other container sees it",
            "set machine.store to one that all of \
            them reach (a database, or vesta://HOST:50051), or machine.id, or machine.range if no other process uses \
            these numbers, or ",
        ),
        false => ("the state of this machine ID", "", ""),
    };
    Some(format!(
        "{kept} is lost with this container ({sign}){unseen}: {ways}put {} on a volume",
        config.state_dir.display()
    ))
}
