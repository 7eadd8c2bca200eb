//! `store adopt`: for a pool server whose store is a copy of one that is gone.

use vesta_intf::UnixMillis;
use vesta_service::lease::{KvStore, Leases, Namespace, StoreError, adopt, identity, refusal};

use super::opened::{MARGIN_MS, Opened};
use crate::console::{Console, UNCHANGED};
use crate::error::Error;
use crate::report::counted;
use crate::settings::Config;
use crate::ticks::millis;

/// Namespaces whose floors are raised, beside that of the settings.
fn offered(config: &Config, store: &dyn KvStore) -> Result<Vec<String>, Error> {
    let found = store.namespaces();
    let found = found.map_err(|error| failed(store, &error))?;
    let named = config.pool_server.namespaces.iter();
    match found {
        Some(found) => Ok(found),
        None if named.clone().any(|name| name == "*") => Error::refuse(format!(
            "{} cannot list its namespaces, and each needs a floor; name them in pool_server.namespaces for this command, in \
             place of *",
            store.describe()
        )),
        None => Ok(named.cloned().collect()),
    }
}

pub(super) fn run(
    config: &Config,
    opened: &Opened,
    console: &mut Console,
) -> Result<String, Error> {
    run_over(&offered(config, opened.store())?, opened, console)
}

fn run_over(names: &[String], opened: &Opened, console: &mut Console) -> Result<String, Error> {
    let store = opened.leases.store();
    let failed = |error: StoreError| failed(&**store, &error);
    let (old, why) = (
        identity(&**store).map_err(failed)?,
        refusal(&**store).map_err(failed)?,
    );
    let why = why.unwrap_or("nothing speaks against serving it as it is".to_owned());
    let now = opened.clock.wall();
    let mut floors = Vec::new();
    for name in names.iter().map(String::as_str).chain([opened.name()]) {
        let leases = Leases::new(store.clone(), name);
        let Some(namespace) = leases.find().map_err(failed)? else {
            continue;
        };
        let window = millis(namespace.window.max(store.usual_window())).max(opened.window_ms);
        let moment = UnixMillis(now.0 + window + MARGIN_MS);
        let position = position_at(&namespace, moment).ok_or_else(|| {
            Error::setting(format!(
                "the layout {} of namespace `{name}` cannot represent {moment}, so no floor can be raised there",
                namespace.fingerprint
            ))
        })?;
        if !floors
            .iter()
            .any(|(known, ..): &(Leases, _, _)| known.name() == name)
        {
            floors.push((leases, position, moment));
        }
    }
    let latest = floors
        .iter()
        .map(|(_, _, moment)| *moment)
        .max()
        .unwrap_or(now);
    let plan = format!(
        "Making the store in {} ({old}) one of its own:\n\
         - {why};\n\
         - it gets a new identity, so its members need another ?id= in their URL, or delete `pool-server-…` in their state \
         directory;\n\
         - the floors of {} are raised, to {latest} at the latest: until then members wait;\n\
         - numbers of segment and serial tags go on where the copy was made: change the tags first, if the original has \
         given out more;\n\
         - if the original is still served, IDs repeat. It cannot be undone.\n",
        store.describe(),
        counted(floors.len(), "namespace"),
    );
    if !console.agrees(&plan, "Is the original gone for good?")? {
        return Ok(UNCHANGED.to_owned());
    }
    // The floors come first: every server of the new identity is above what members of the original hold.
    for (leases, position, _) in &floors {
        leases.raise_floor(*position).map_err(failed)?;
    }
    let new = adopt(&**store).map_err(failed)?;
    Ok(format!(
        "The store is now {new}. Start its pool server again, and give its members ?id={new}.\n"
    ))
}

fn failed(store: &dyn KvStore, error: &StoreError) -> Error {
    crate::report::failed(&store.describe(), error)
}

/// The first position at a moment, by the layout that a namespace names: it need not be that of the settings.
fn position_at(namespace: &Namespace, moment: UnixMillis) -> Option<u64> {
    let mut words = namespace.fingerprint.split(' ');
    let bits: Vec<u8> = words
        .next()?
        .split('/')
        .map(|it| it.parse().ok())
        .collect::<Option<_>>()?;
    let [_, _, _, time_bits, seq_bits, _] = bits[..] else {
        return None;
    };
    let unit = words.nth(1)?;
    let micros = match unit.strip_suffix("ms") {
        Some(length) => length.parse::<u64>().ok()?.checked_mul(1000)?,
        None => unit.strip_suffix("us")?.parse().ok()?,
    };
    let epoch = UnixMillis(words.next()?.strip_prefix('@')?.parse().ok()?);
    let tick = moment
        .since(epoch)?
        .checked_mul(1000)?
        .checked_div(micros)?;
    let fits = time_bits.checked_add(seq_bits)? <= 62 && tick >> time_bits == 0;
    fits.then(|| tick << seq_bits)
}

#[cfg(test)]
mod tests {
    use vesta_intf::IdMeta;

    use super::super::testing::{NOW, World, at};
    use super::*;

    fn run(world: &World, answer: Option<bool>) -> Result<String, String> {
        let opened = world.opened();
        let names = world.store.namespaces().expect("memory").expect("listed");
        world.with_console(answer, |console| run_over(&names, &opened, console))
    }

    #[test]
    fn the_copy_gets_an_identity_and_floors_of_its_own() {
        let world = World::new();
        let other = Leases::new(world.store.clone(), "orders");
        other
            .open(&IdMeta::SNOWFLAKE.fingerprint())
            .expect("memory");
        let old = identity(&*world.store).expect("memory");
        assert!(
            run(&world, None)
                .expect_err("no terminal")
                .contains("--yes")
        );
        assert!(
            run(&world, Some(false))
                .expect("declined")
                .ends_with(UNCHANGED)
        );
        assert_eq!(identity(&*world.store).expect("memory"), old);
        let said = run(&world, Some(true)).expect("adopted");
        let new = identity(&*world.store).expect("memory");
        assert!(
            new.number != old.number && said.ends_with(&format!("?id={new}.\n")),
            "{said}"
        );
        assert!(said.contains("the floors of 2 namespaces"), "{said}");
        // The usual window of a store in memory is 10 s.
        let window = millis(world.store.usual_window()).max(5000) + MARGIN_MS;
        let seconds = i64::try_from(window / 1000).expect("a minute");
        assert_eq!(world.opened().namespace.floor, at(seconds));
        let floor = other.find().expect("memory").expect("it was opened").floor;
        assert_eq!(
            floor,
            IdMeta::SNOWFLAKE
                .position_at(UnixMillis(NOW.0 + window))
                .expect("inside")
        );
    }

    #[test]
    fn a_position_is_that_of_the_layout_that_the_namespace_names() {
        for layout in [IdMeta::MAX_PEAK, IdMeta::SNOWFLAKE] {
            let namespace = Namespace {
                uuid: 1,
                fingerprint: layout.fingerprint(),
                floor: 0,
                window: std::time::Duration::ZERO,
                doubt: None,
                writer: None,
            };
            let expected = layout.position_at(NOW).expect("inside");
            assert_eq!(
                position_at(&namespace, NOW),
                Some(expected),
                "{}",
                layout.name()
            );
        }
    }
}
