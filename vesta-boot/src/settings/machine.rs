//! Source of machine IDs: one choice, or a clear refusal.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use vesta_intf::{Field, IdMeta};
use vesta_service::lease::ClaimOrder;
use vesta_service::options::{IpMap, default_state_dir};

use super::parse::{Parsed, choice, number, store_url, truth};
use super::values::{Values, may_be_url};
use crate::net::checked_name;
use crate::start::error::Error;
use vesta_store::{Kind, OpenError, StoreUrl};

/// The most machine IDs of one process.
const MOST: u64 = 1024;

section! {
    /// Machine ID: `[machine]`, `state_dir` and `stateless`.
    "Machine ID (choose one of id, ips, ordinal and store)" pub(super) struct Section |values, layout| {
        /// A fixed machine ID
        ///
        /// Made restart-safe by a file in the state folder; together with `machine.store` it is reserved in
        /// the store instead. Choose one of `machine.id`, `machine.ips`, `machine.ordinal` and a pool.
        ///
        /// Example: 7
        id: Option<u64> = "machine.id" "N", number(layout.machines());

        /// Fixed machine IDs by address of the host
        ///
        /// An explicit map, whose order means nothing; then as `machine.id`.
        ///
        /// Example: 10.0.0.1=1,10.0.0.2=2
        ips: Option<IpMap> = "machine.ips" "IP=N,..", ip_map(layout.machines());

        /// Fixed machine ID from the host name
        ///
        /// Kubernetes StatefulSet: the number at the end of the host name; then as `machine.id`. A host name with
        /// several numbers, as an address has, is refused. Without `machine.store` one StatefulSet for each
        /// namespace: two both have an ordinal 0.
        ordinal: bool = "machine.ordinal" "BOOL" or "false", truth();

        /// Name before the number of machine.ordinal
        ///
        /// The name of the StatefulSet. A host with another one is refused, and this one may contain numbers.
        ///
        /// Example: vesta
        ordinal_of: Option<String> = "machine.ordinal_of" "NAME", checked_name;

        /// Region: the part of the machine IDs that is used here
        ///
        /// The upper `machine.region_bits` of the machine field are this number. Regions with stores of their
        /// own then never make the same ID. Every machine ID lies within the region; ordinals count from its
        /// first one on.
        ///
        /// Example: 2
        // Parsed before the others, as a part of the layout.
        _region: Option<()> = "machine.region" "N" for commands, |_| Parsed::Ok(());

        /// Width of the region in bits
        ///
        /// 1 to 32, and at most the layout's machine bits: 3 bits are 8 regions, 0 to 7. The same in all of them.
        ///
        /// Example: 3
        _region_bits: Option<()> = "machine.region_bits" "BITS" for commands, |_| Parsed::Ok(());

        /// Store whose pool hands out machine IDs
        ///
        /// `sqlite:PATH` for the processes of one host; `mysql://user:password@host:3306/database`, also for
        /// MariaDB; `postgres://user:password@host:5432/database`; `redis://:password@host:6379/0`, with TLS
        /// `rediss://`; `zookeeper://host:2181,host:2181/path`; `etcd://host:2379,host:2379`, with TLS
        /// `etcds://`. Default: `vesta.db` in the state folder. Others can see the command line, so a
        /// password belongs in the environment or the file.
        ///
        /// Example: sqlite:vesta-data/vesta.db
        store: Option<StoreUrl> = "machine.store" "URL" for commands, store_url;

        /// Folder of the state files and the default pool
        ///
        /// It must survive restarts. Default: `$STATE_DIRECTORY`, which systemd sets; else
        /// `$XDG_STATE_HOME/vesta`; else `~/.local/state/vesta`; else `/var/lib/vesta`.
        ///
        /// Example: /var/lib/vesta
        state_dir: Option<PathBuf> = "state_dir" "FOLDER" for commands, folder;

        /// Keep state on a network file system
        ///
        /// The locks of NFS, SMB, FUSE and their like may not keep two hosts apart: with the same folder these may
        /// issue the same IDs. A start there is refused; with `true` it is only warned about.
        pub(super) allow_network_fs: bool = "state.allow_network_fs" "BOOL" or "false" for commands, truth();

        /// The store may forget what it acknowledged
        ///
        /// A copy that lags may take over from it (`true`), or a fail-over loses nothing (`false`), although
        /// it cannot be seen: behind a proxy, or in a managed database. Default: as far as the store can
        /// tell. With `true` the first ID comes about 7 s after a start; `store trust` ends what is written
        /// down.
        ///
        /// Example: true
        pub(super) may_forget: Option<bool> = "machine.store_may_forget" "BOOL", truth();

        /// Writers of a pair of databases: unknown or one
        ///
        /// A database that replicates from another one is refused (`unknown`): processes at both would make the
        /// same IDs. `one` is your word that only one of both is ever written at a time, as behind a virtual
        /// address; it is then taken for one that may forget. Also for `segment.store` and `serial.store`.
        pub(super) writers: Writers = "machine.store_writers" "NAME" or "unknown" for commands,
            choice([("unknown", Writers::Unknown), ("one", Writers::One)]);

        /// Keep no state for machine.id
        ///
        /// IDs may then repeat after a restart; for tests only.
        stateless: bool = "stateless" "BOOL" or "false", truth();

        /// Machine IDs that the pool may hand out
        ///
        /// Both ends included. Default: all of the layout's, or of its region's.
        ///
        /// Example: 0-1023
        range: Option<RangeInclusive<u64>> = "machine.range" "FROM-TO" under "Pool", range(layout.machines());

        /// Machine IDs that this process takes
        ///
        /// 1 to 1024, from the pool. Its capacity grows with them; one thread and one transaction renew all.
        count: u64 = "machine.count" "N" or "1" under "Pool", number(1..=MOST);

        /// Use of machine IDs: lease or disposable
        ///
        /// `lease`: they are claimed, kept and given back. `disposable`: each start uses up a new one, which
        /// needs an SQL store and a layout with many machine bits.
        strategy: Strategy = "machine.strategy" "NAME" or "lease" under "Pool",
            choice([("lease", Strategy::Lease), ("disposable", Strategy::Disposable)]);

        /// Preferred free machine ID: stable or lowest
        ///
        /// `stable`: a host keeps its machine ID over restarts. `lowest`: the lowest free one.
        order: ClaimOrder = "machine.claim_order" "NAME" or "stable" under "Pool",
            choice([("stable", ClaimOrder::Stable), ("lowest", ClaimOrder::Lowest)]);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    Unknown,
    One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Lease,
    Disposable,
}

/// Source of machine IDs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Machine {
    /// A pool hands them out.
    Pool {
        /// The store of the pool.
        store: StoreUrl,
        /// The range it may hand out; `None` is all of the layout's.
        range: Option<RangeInclusive<u64>>,
        /// The number of machine IDs that this process takes.
        count: usize,
        /// The preference among the free ones.
        order: ClaimOrder,
    },
    /// A new one at each start, from the table of worker nodes in a database.
    Disposable {
        /// The database.
        store: StoreUrl,
    },
    /// A fixed one, reserved in a store.
    Reserved {
        /// The store.
        store: StoreUrl,
        /// The machine ID.
        number: Number,
    },
    /// A fixed one, with a state file.
    Fixed(Number),
    /// A fixed one without any state: IDs may repeat after a restart.
    Stateless(u64),
}

/// A fixed machine ID.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Number {
    /// Given.
    Id(u64),
    /// By this host's address.
    IpMap(IpMap),
    /// The number at the end of the host name.
    HostOrdinal,
    /// The same, if this is the name before it.
    HostOrdinalOf(String),
}

impl Machine {
    /// The store, if there is one.
    pub const fn store(&self) -> Option<&StoreUrl> {
        match self {
            Machine::Pool { store, .. }
            | Machine::Disposable { store }
            | Machine::Reserved { store, .. } => Some(store),
            Machine::Fixed(_) | Machine::Stateless(_) => None,
        }
    }
}

/// A layout in the region that the settings name.
pub(super) fn in_region(values: &Values, layout: IdMeta) -> Result<IdMeta, Error> {
    let widest = layout.bits(Field::Machine).into();
    match (
        values.read("machine.region", number(0..=u64::MAX))?,
        values.read("machine.region_bits", number(1..=widest))?,
    ) {
        (None, None) => Ok(layout),
        (Some(region), Some(bits)) => {
            let bits = u8::try_from(bits).expect("at most 64");
            let refused = |error| Error::setting(format!("machine.region: {error}"));
            layout.in_region(bits, region).map_err(refused)
        }
        _ => Error::refuse(
            "machine.region and machine.region_bits need each other; set both or none",
        ),
    }
}

impl Section {
    pub(super) fn state_dir(&self) -> PathBuf {
        self.state_dir.clone().unwrap_or_else(default_state_dir)
    }

    /// Makes the choice, by the rules between the settings.
    pub(super) fn check(self, values: &Values, layout: &IdMeta) -> Result<Machine, Error> {
        let folder = self.state_dir().display().to_string();
        let Self { count, order, stateless, .. } = self;
        if self.ordinal_of.is_some() && !self.ordinal {
            return Error::refuse(
                "machine.ordinal_of needs machine.ordinal = true; set both or none",
            );
        }
        let ordinal = self.ordinal_of.map_or(Number::HostOrdinal, Number::HostOrdinalOf);
        let numbers = [
            ("machine.id", self.id.map(Number::Id)),
            ("machine.ips", self.ips.map(Number::IpMap)),
            ("machine.ordinal", self.ordinal.then_some(ordinal)),
        ];
        let mut numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        let of_pools = [
            ("machine.range", self.range.is_some()),
            ("machine.count", count > 1),
            ("machine.claim_order", order != ClaimOrder::default()),
        ];
        let of_pools = of_pools.into_iter().find(|setting| setting.1).map(|setting| setting.0);
        let choice = numbers.next();
        if let (Some((one, _)), Some((other, _))) = (&choice, numbers.next()) {
            return Error::refuse(format!("{one} and {other} are both set; keep one of them"));
        }
        // Inside the state folder, so that one setting moves all state.
        let own = || {
            let url = format!("sqlite:{}/vesta.db", folder.trim_end_matches('/'));
            url.parse().map_err(|error: OpenError| {
                values.refuse("state_dir", format!("must suit the default pool: {error}"))
            })
        };
        if self.strategy == Strategy::Disposable {
            let fixed = choice.map(|choice| choice.0);
            if let Some(name) = fixed.or(of_pools).or(stateless.then_some("stateless")) {
                return Error::refuse(format!(
                    "machine.strategy = \"disposable\" uses up a new machine ID at each start, but \
                     {name} is set; remove one of them"
                ));
            }
            let store = self.store.map_or_else(own, Ok)?;
            if !matches!(store.kind(), Kind::Sqlite | Kind::Mysql | Kind::Postgres) {
                let must = "must be an SQL store (sqlite, mysql or postgres) with \
                            machine.strategy = \"disposable\"";
                return Err(values.refuse("machine.store", must));
            }
            return Ok(Machine::Disposable { store });
        }
        let name = choice.as_ref().map(|choice| choice.0);
        if let (Some(one), Some(other)) = (name, of_pools) {
            return Error::refuse(format!(
                "{other} is for a pool, but {one} fixes the machine ID; remove one of them"
            ));
        }
        if stateless && (name != Some("machine.id") || self.store.is_some()) {
            return Error::refuse(
                "stateless = true is for machine.id without machine.store; remove stateless",
            );
        }
        Ok(match (choice.map(|choice| choice.1), self.store) {
            (None, store) => {
                let range = self.range.clone().unwrap_or(layout.machines());
                let spare = range.end() - range.start();
                if count - 1 > spare {
                    let must = format!("must be at most the {} of the pool", spare + 1);
                    return Err(values.refuse("machine.count", must));
                }
                let count = usize::try_from(count).expect("at most 1024");
                let store = store.map_or_else(own, Ok)?;
                Machine::Pool { store, range: self.range, count, order }
            }
            (Some(number), Some(store)) => Machine::Reserved { store, number },
            (Some(Number::Id(id)), None) if stateless => Machine::Stateless(id),
            (Some(number), None) => Machine::Fixed(number),
        })
    }
}

/// A path; a URL belongs elsewhere.
fn folder(text: &str) -> Parsed<PathBuf> {
    match text.is_empty() || text.contains("://") {
        true => Err("must be the path of a folder".to_owned()),
        false => Ok(text.into()),
    }
}

fn range(within: RangeInclusive<u64>) -> impl Fn(&str) -> Parsed<RangeInclusive<u64>> {
    move |text| {
        let ends = text.split_once('-').and_then(|(from, to)| {
            Some((from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?))
        });
        match ends {
            Some((from, to)) if from <= to && within.contains(&from) && within.contains(&to) => {
                Ok(from..=to)
            }
            _ => Err(format!("must be FROM-TO within {}-{}", within.start(), within.end())),
        }
    }
}

fn ip_map(within: RangeInclusive<u64>) -> impl Fn(&str) -> Parsed<IpMap> {
    move |text| {
        let must = "must be a list such as 10.0.0.1=1,10.0.0.2=2";
        let map = IpMap::parse(text).map_err(|error| match may_be_url(text) {
            true => must.to_owned(), // the error quotes the text
            false => format!("{must} ({error})"),
        })?;
        let inside = map.entries().all(|entry| within.contains(&entry.1));
        let must = || format!("must hold machine IDs of {} to {}", within.start(), within.end());
        if inside { Ok(map) } else { Err(must()) }
    }
}
