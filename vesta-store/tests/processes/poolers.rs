//! PgBouncer in front of PostgreSQL, as packaged by Debian: a client's next transaction may use another
//! session, which another client has just used.

use vesta_testkit::fleet::Ledger;

use crate::segments::take_at_once;
use crate::server::Server;
use crate::stores::Store;
use crate::worker::{LAYOUT, launch};
use crate::world::{HASTY, World};

/// Owners of machine IDs, each of which renews more than once a second.
const OWNERS: usize = 6;
const NUMBERS: u64 = 400_000;

pub(crate) fn processes_that_share_two_sessions_of_a_pooler_repeat_nothing(store: &Store) {
    let server = Server::start(store);
    let pooler = server.pooler();
    for (mode, url) in [
        ("transaction", pooler.clone()),
        ("session", format!("{pooler}_session")),
    ] {
        let world = World::at(store, &url);
        let namespace = world.namespace();
        let mut owners: Vec<_> = (0..OWNERS)
            .map(|host| launch(&world.task(&namespace, &format!("{host}"))))
            .collect();
        owners.iter_mut().for_each(|owner| _ = owner.until_ids());
        take_at_once(&world, NUMBERS);
        // Long enough for each of them to renew.
        owners[0].listen(HASTY.window * 2);
        let mut checker = Ledger::new(LAYOUT);
        for owner in &mut owners {
            owner.close();
            owner.check_holds();
            assert_eq!(owner.machines.len(), 1, "no machine ID was lost");
            checker.check(&owner.ids).unwrap();
        }
        println!(
            "{:9} | PgBouncer in {mode} mode: {OWNERS} owners, {} IDs, 0 duplicates",
            world.name, checker.ids
        );
    }
}
