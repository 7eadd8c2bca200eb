//! `store raise-floor`: for a store that has lost acknowledged writes.

use vesta_intf::UnixMillis;

use super::opened::{MARGIN_MS, Opened};
use crate::console::{Console, UNCHANGED};
use crate::error::Error;

/// Maximum distance of a floor: it delays every claim until that moment, and is never lowered.
const FURTHEST_MS: u64 = 86_400_000;

pub(super) fn run(
    opened: &Opened,
    to: Option<UnixMillis>,
    console: &mut Console,
) -> Result<String, Error> {
    opened.insist_on_layout()?;
    let now = opened.clock.wall();
    let moment = to.unwrap_or(UnixMillis(now.0 + opened.window_ms + MARGIN_MS));
    if moment.since(now).is_some_and(|ahead| ahead > FURTHEST_MS) {
        return Error::refuse(format!(
            "--to {moment} is more than a day ahead of {now}; until then no machine ID could be \
             claimed, and a floor is never lowered"
        ));
    }
    let floor = opened.position_at(moment)?;
    let name = opened.name();
    let before = opened.namespace.floor;
    if before >= floor {
        let stands = opened.layout.moment_at(before);
        return Ok(format!(
            "The floor of namespace {name} is already at {stands}. {UNCHANGED}"
        ));
    }
    let plan = format!(
        "Raising the floor of namespace {name} in {} to {moment}:\n\
         - every claim from now on starts at that moment or later, whatever the store has forgotten;\n\
         - until then starting programs wait, or exit if it is more than half a minute away;\n\
         - running programs are not stopped: first stop those that still use an older copy of the \
         store;\n\
         - it cannot be undone.\n",
        opened.store().describe(),
    );
    if !console.agrees(&plan, "Raise the floor?")? {
        return Ok(UNCHANGED.to_owned());
    }
    let raised = opened
        .leases
        .raise_floor(floor)
        .map_err(|error| opened.failed(&error))?;
    let stands = opened.layout.moment_at(raised);
    Ok(format!("The floor of namespace {name} is now {stands}.\n"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{NOW, World, at};
    use super::*;
    use crate::settings::moment::instant;

    fn raise(world: &World, to: Option<&str>, answer: Option<bool>) -> Result<String, String> {
        let opened = world.opened();
        let to = to.map(|text| instant(text).expect("a moment"));
        world.with_console(answer, |console| run(&opened, to, console))
    }

    #[test]
    fn by_default_the_floor_is_raised_above_every_window() {
        let world = World::new();
        let said = raise(&world, None, Some(true)).expect("raised");
        // The window of these tests is 5 s.
        assert_eq!(world.opened().namespace.floor, at(65));
        let moment = UnixMillis(NOW.0 + 65_000);
        for part in [
            format!("to {moment}:"),
            "it cannot be undone".to_owned(),
            format!("The floor of namespace default is now {moment}.\n"),
        ] {
            assert!(said.contains(&part), "{part} in {said}");
        }
    }

    #[test]
    fn a_moment_can_be_given() {
        let world = World::new();
        let to = UnixMillis(NOW.0 + 600_000).to_string();
        raise(&world, Some(&to), Some(true)).expect("raised");
        assert_eq!(world.opened().namespace.floor, at(600));
        let said = raise(&world, None, Some(true)).expect("nothing to do");
        assert!(said.contains(&format!("is already at {to}")), "{said}");
        assert_eq!(world.opened().namespace.floor, at(600), "never lowered");
    }

    #[test]
    fn nothing_changes_without_confirmation() {
        let world = World::new();
        let said = raise(&world, None, Some(false)).expect("declined");
        assert!(said.ends_with("Nothing was changed.\n"), "{said}");
        assert!(
            raise(&world, None, None)
                .expect_err("no terminal")
                .contains("--yes")
        );
        assert_eq!(world.opened().namespace.floor, 0);
    }

    #[test]
    fn an_invalid_moment_is_refused() {
        let world = World::new();
        for (to, expected) in [
            ("2400-01-01T00:00:00Z", "is more than a day ahead"),
            (
                "2014-01-01T00:00:00Z",
                "layout max-peak cannot represent 2014-01-01T00:00:00.000Z",
            ),
        ] {
            let said = raise(&world, Some(to), Some(true)).expect_err(to);
            assert!(said.contains(expected), "{to}: {said}");
        }
        assert_eq!(world.opened().namespace.floor, 0);
    }
}
