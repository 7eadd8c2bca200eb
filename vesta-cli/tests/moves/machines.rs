//! A fleet that makes IDs with machine IDs of another system moves step by step to Vesta and back. Wherever
//! both make IDs, the old processes use the same tick and the same sequence number as Vesta.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;

use vesta_intf::{Id, IdMeta};
use vesta_testkit::folder;
use vesta_testkit::programs::Program;

use crate::http::get;
use crate::programs::{command, serve};

/// The old fleet: the source of its machine IDs, and its layout.
pub(crate) struct Fleet<'a> {
    pub(crate) layout: IdMeta,
    /// Starts a process at this address; returns its machine ID.
    pub(crate) start: &'a dyn Fn(&str) -> u64,
    /// Vesta's `--layout …` and `--machine-…` flags.
    pub(crate) flags: &'a [&'a str],
    /// `store import …`, if any, and the machine IDs that Vesta is limited to while both run.
    pub(crate) import: Option<(&'a [&'a str], &'a str)>,
}

/// The IDs of both sides.
#[derive(Default)]
struct Ids {
    vesta: HashSet<u64>,
    old: HashSet<u64>,
}

/// IDs of Vesta, and for each the IDs of old processes with the same time and sequence number.
fn both(fleet: &Fleet<'_>, ids: &mut Ids, to: SocketAddr, old: &BTreeSet<u64>) {
    for _ in 0..200 {
        let id: u64 = get(to, "/genid").parse().expect("an ID");
        assert!(
            ids.vesta.insert(id) && !ids.old.contains(&id),
            "Vesta made {id}, which was there"
        );
        let fields = fleet.layout.unpack(id).expect("of the layout");
        for machine in old {
            let own = Id {
                machine: *machine,
                ..fields
            };
            let own = fleet.layout.pack(&own).expect("of the layout");
            ids.old.insert(own);
            assert!(
                !ids.vesta.contains(&own),
                "an old process made {own}, as Vesta did"
            );
        }
    }
}

impl Fleet<'_> {
    fn import(&self) {
        let Some((import, _)) = self.import else {
            return;
        };
        let (folder, args) = (
            folder(),
            [self.flags, &["store", "import"], import].concat(),
        );
        let done = command("vesta-server", folder.path(), &args)
            .output()
            .expect("it starts");
        assert!(done.status.success(), "{done:?}");
    }

    /// A new host of Vesta: limited while both run, otherwise with all machine IDs.
    fn vesta(&self, beside: bool) -> (Program, tempfile::TempDir) {
        let folder = folder();
        let range = self.import.filter(|_| beside);
        let range = range.map(|(_, range)| format!("--machine-range={range}"));
        let range: Vec<&str> = range.iter().map(String::as_str).collect();
        (
            serve("vesta-rest", folder.path(), &[self.flags, &range].concat()),
            folder,
        )
    }

    /// The old system alone, both, Vesta alone, and back.
    pub(crate) fn moves(&self) {
        let mut ids = Ids::default();
        let mut old: BTreeSet<u64> = (1..4)
            .map(|host| (self.start)(&format!("10.0.0.{host}:8080")))
            .collect();
        assert_eq!(old.len(), 3);

        self.import();
        let beside = [(); 3].map(|()| self.vesta(true));
        // Includes a process that starts after the import.
        old.insert((self.start)("10.0.0.4:8080"));
        let machines: BTreeSet<_> = beside
            .iter()
            .map(|(program, _)| program.machine())
            .collect();
        assert_eq!(machines.len(), 3);
        assert!(machines.is_disjoint(&old), "{machines:?} and {old:?}");
        for (program, _) in &beside {
            both(self, &mut ids, program.address(), &old);
        }
        beside
            .into_iter()
            .for_each(|(program, _)| assert_eq!(program.stop().0, Some(0)));

        self.import();
        let (alone, _folder) = self.vesta(false);
        assert!(!old.contains(&alone.machine()), "no pool hands those out");
        // Back: old processes that restart, and a new one.
        let again: BTreeSet<_> = old
            .iter()
            .zip(1..)
            .map(|(_, host)| (self.start)(&format!("10.0.0.{host}:8080")))
            .collect();
        assert!(!again.contains(&alone.machine()));
        both(self, &mut ids, alone.address(), &again);
    }
}
