//! Source of machine IDs: exactly one is selected; contradictory settings are refused.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use vesta_intf::{Field, IdMeta};
use vesta_service::lease::ClaimOrder;
use vesta_service::options::{IpMap, default_state_dir};

use super::parse::{Parsed, choice, number, store_url, truth, whole};
use super::values::{Values, may_be_url};
use crate::error::Error;
use vesta_net::checked_name;
use vesta_store::{Kind, OpenError, StoreUrl};

/// Maximum machine IDs of one process.
const MOST: u64 = 1024;

section! {
    /// Machine ID: `[machine]` and `state_dir`.
    "Machine ID" pub(super) struct Section |values, layout| {
        /// Fixed machine ID: a number, by address, or ordinal
        ///
        /// `7`: this machine ID. `10.0.0.1=1,10.0.0.2=2`: by the host's address, in any order. `ordinal`: the number
        /// at the end of the host name, as in a Kubernetes StatefulSet; a name with several numbers, such as one made
        /// from an address, is refused. `ordinal:NAME`: only for hosts named `NAME-N`; NAME may contain numbers. A
        /// file in the state directory makes it restart-safe; with `machine.store` it is reserved in the store instead.
        /// Without `machine.store`, use one StatefulSet per namespace, because every StatefulSet has an ordinal 0.
        ///
        /// Example: 7
        id: Option<Number> = "machine.id" "ID", fixed(layout.machines());

        /// Stand by while another server holds the machine ID
        ///
        /// For two or more servers with one number in `machine.id` and one store. One of them makes IDs; the others
        /// refuse calls with `NOT_HOLDER` and take over when it stops. An ID asked for after another was returned is
        /// then larger, whichever server made it. The durations default to 2000, 600 and 500 ms.
        pub(super) standby: bool = "machine.standby" "BOOL" or "false", truth();

        /// Region: the part of the machine IDs used here
        ///
        /// `REGION/BITS`: the upper 1 to 32 bits of the machine field hold this number, so `2/3` is region 2 of 8.
        /// All regions need the same width. Regions with separate stores then never make the same ID. Every
        /// machine ID lies within the region; ordinals count from its first one.
        ///
        /// Example: 2/3
        // Parsed before the others, as part of the layout.
        _region: Option<()> = "machine.region" "REGION/BITS" for commands, |_: &str| Parsed::Ok(());

        /// Store whose pool hands out machine IDs
        ///
        /// `sqlite:PATH` for the processes of one host; `mysql://user:password@host:3306/database`, also for
        /// MariaDB; `postgres://user:password@host:5432/database`; `redis://:password@host:6379/0`, with TLS
        /// `rediss://`; `zookeeper://host:2181,host:2181/path`; `etcd://host:2379,host:2379`, with TLS
        /// `etcds://`. Default: `vesta.db` in the state directory. Passwords belong in the environment or the
        /// file: other users can see command lines.
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

        /// Allow state on a network file system
        ///
        /// Locks on NFS, SMB, FUSE and similar file systems may fail to exclude other hosts. Two hosts with the
        /// same folder may then issue the same IDs. By default a start there is refused; with `true` it only logs
        /// a warning.
        pub(super) allow_network_fs: bool = "state.allow_network_fs" "BOOL" or "false" for commands, truth();

        /// Store durability: durable, doubtful, one_writer
        ///
        /// Default: the report of the store itself. `doubtful`: a lagging replica may take over, behind a proxy or
        /// in a managed database; the first ID then comes about 7 s after a start, and `store trust` clears the
        /// recorded doubt. `durable`: a fail-over loses nothing. `one_writer`: for two databases that replicate from
        /// each other, which are refused by default because processes at both would make the same IDs. It declares
        /// that only one of them is ever written at a time, as behind a virtual address; the store then counts as one
        /// that may forget. It also applies to `segment.store` and `serial.store`.
        ///
        /// Example: doubtful
        pub(super) trust: Option<Trust> = "machine.store_trust" "NAME" for commands,
            choice([
                ("durable", Trust::Durable),
                ("doubtful", Trust::Doubtful),
                ("one_writer", Trust::OneWriter),
            ]);

        /// Machine IDs that the pool may hand out
        ///
        /// Both ends included. Default: all of the layout, or of its region.
        ///
        /// Example: 0-1023
        range: Option<RangeInclusive<u64>> = "machine.range" "FROM-TO" under "Pool", range(layout.machines());

        /// Machine IDs that this process takes
        ///
        /// 1 to 1024, from the pool. Capacity grows with them; one thread and one transaction renew all of
        /// them.
        count: u64 = "machine.count" "N" or "1" under "Pool", number(1..=MOST);

        /// Use of machine IDs: lease, lowest, disposable, stateless
        ///
        /// `lease`: machine IDs are claimed, renewed and released; a host keeps its machine ID over restarts.
        /// `lowest`: the same, but a start takes the lowest free one. `disposable`: each start uses up a new one,
        /// which needs an SQL store and a layout with many machine bits. `stateless`: no state is kept for the number
        /// in `machine.id`, so IDs may repeat after a restart; for tests only.
        strategy: Strategy = "machine.strategy" "NAME" or "lease" under "Pool",
            choice([
                ("lease", Strategy::Lease),
                ("lowest", Strategy::Lowest),
                ("disposable", Strategy::Disposable),
                ("stateless", Strategy::Stateless),
            ]);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Durable,
    Doubtful,
    OneWriter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Lease,
    Lowest,
    Disposable,
    Stateless,
}

/// Source of machine IDs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Machine {
    /// A pool hands them out.
    Pool {
        /// The store of the pool.
        store: StoreUrl,
        /// The range it may hand out; `None` is all of the layout.
        range: Option<RangeInclusive<u64>>,
        /// The number of machine IDs that this process takes.
        count: usize,
        /// Preference among the free ones.
        order: ClaimOrder,
    },
    /// A new one at each start, from the table of worker nodes in a database.
    Disposable {
        /// The database.
        store: StoreUrl,
    },
    /// A fixed machine ID, reserved in a store.
    Reserved {
        /// The store.
        store: StoreUrl,
        /// The machine ID.
        number: Number,
    },
    /// A fixed machine ID, with a state file.
    Fixed(Number),
    /// A fixed machine ID without state: IDs may repeat after a restart.
    Stateless(u64),
}

/// A fixed machine ID.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Number {
    /// A given number.
    Id(u64),
    /// By this host's address.
    IpMap(IpMap),
    /// The number at the end of the host name.
    HostOrdinal,
    /// The same, only if the rest of the host name is this name.
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

/// The layout restricted to the region that the settings name.
pub(super) fn in_region(values: &Values, layout: IdMeta) -> Result<IdMeta, Error> {
    let widest = layout.bits(Field::Machine);
    let read = |text: &str| {
        let (region, bits) = text.split_once('/')?;
        let bits = bits
            .parse()
            .ok()
            .filter(|bits| (1..=widest).contains(bits))?;
        Some((bits, region.parse().ok()?))
    };
    let must = || format!("must be REGION/BITS, such as 2/3, with 1 to {widest} bits");
    match values.read("machine.region", |text: &str| read(text).ok_or_else(must))? {
        Some((bits, region)) => {
            let refused = |error| Error::setting(format!("machine.region: {error}"));
            layout.in_region(bits, region).map_err(refused)
        }
        None => Ok(layout),
    }
}

impl Section {
    pub(super) fn state_dir(&self) -> PathBuf {
        self.state_dir.clone().unwrap_or_else(default_state_dir)
    }

    /// Selects the source by the rules between the settings.
    pub(super) fn check(self, values: &Values, layout: &IdMeta) -> Result<Machine, Error> {
        let folder = self.state_dir().display().to_string();
        let Self {
            count, strategy, ..
        } = self;
        let of_pools = [
            ("machine.range", self.range.is_some()),
            ("machine.count", count > 1),
            (
                "machine.strategy = \"lowest\"",
                strategy == Strategy::Lowest,
            ),
        ];
        let of_pools = of_pools
            .into_iter()
            .find(|setting| setting.1)
            .map(|setting| setting.0);
        // Inside the state directory, so that one setting moves all state.
        let own = || {
            let url = format!("sqlite:{}/vesta.db", folder.trim_end_matches('/'));
            url.parse().map_err(|error: OpenError| {
                values.refuse("state_dir", format!("must suit the default pool: {error}"))
            })
        };
        if self.standby {
            let missing = match (&self.id, &self.store) {
                (Some(Number::Id(_)), None) => {
                    Some("machine.store is not set; set it to a store that all of them reach")
                }
                (Some(Number::Id(_)), _) => None,
                _ => {
                    Some("machine.id is not one number; set it to the same number on each of them")
                }
            };
            if let Some(missing) = missing {
                return Error::refuse(format!(
                    "machine.standby = true is for servers that share one machine ID, but {missing}"
                ));
            }
        }
        if strategy == Strategy::Disposable {
            if let Some(name) = self.id.map(|_| "machine.id").or(of_pools) {
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
        if let (Some(_), Some(other)) = (&self.id, of_pools) {
            return Error::refuse(format!(
                "{other} is for a pool, but machine.id fixes the machine ID; remove one of them"
            ));
        }
        Ok(match (self.id, self.store) {
            (Some(Number::Id(id)), None) if strategy == Strategy::Stateless => {
                Machine::Stateless(id)
            }
            _ if strategy == Strategy::Stateless => {
                return Error::refuse(
                    "machine.strategy = \"stateless\" is for a number in machine.id without machine.store; \
                     remove it",
                );
            }
            (None, store) => {
                let range = self.range.clone().unwrap_or(layout.machines());
                let spare = range.end() - range.start();
                if count - 1 > spare {
                    let must = format!("must be at most the {} of the pool", spare + 1);
                    return Err(values.refuse("machine.count", must));
                }
                let count = usize::try_from(count).expect("at most 1024");
                let store = store.map_or_else(own, Ok)?;
                let order = match strategy {
                    Strategy::Lowest => ClaimOrder::Lowest,
                    _ => ClaimOrder::Stable,
                };
                Machine::Pool {
                    store,
                    range: self.range,
                    count,
                    order,
                }
            }
            (Some(number), Some(store)) => Machine::Reserved { store, number },
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
            Some((
                from.trim().parse::<u64>().ok()?,
                to.trim().parse::<u64>().ok()?,
            ))
        });
        match ends {
            Some((from, to)) if from <= to && within.contains(&from) && within.contains(&to) => {
                Ok(from..=to)
            }
            _ => Err(format!(
                "must be FROM-TO within {}-{}",
                within.start(),
                within.end()
            )),
        }
    }
}

/// A number, a map of addresses, or the ordinal of the host name.
fn fixed(within: RangeInclusive<u64>) -> impl Fn(&str) -> Parsed<Number> {
    move |text| match text.split_once(':') {
        _ if text.contains('=') => ip_map(text, &within).map(Number::IpMap),
        _ if text == "ordinal" => Ok(Number::HostOrdinal),
        Some(("ordinal", name)) => checked_name(name)
            .map(Number::HostOrdinalOf)
            .map_err(|must| format!("must be ordinal:NAME, where NAME {must}")),
        _ => whole(text, *within.start(), *within.end())
            .map(Number::Id)
            .map_err(|must| match text {
                text if text
                    .trim_start_matches('-')
                    .bytes()
                    .all(|byte| byte.is_ascii_digit()) =>
                {
                    must
                }
                _ => format!("{must}, a list such as 10.0.0.1=1,10.0.0.2=2, or ordinal"),
            }),
    }
}

fn ip_map(text: &str, within: &RangeInclusive<u64>) -> Parsed<IpMap> {
    let must = "must be a list such as 10.0.0.1=1,10.0.0.2=2";
    let map = IpMap::parse(text).map_err(|error| match may_be_url(text) {
        true => must.to_owned(), // the error quotes the text
        false => format!("{must} ({error})"),
    })?;
    let inside = map.entries().all(|entry| within.contains(&entry.1));
    let must = || {
        format!(
            "must hold machine IDs of {} to {}",
            within.start(),
            within.end()
        )
    };
    if inside { Ok(map) } else { Err(must()) }
}
