//! Where machine IDs come from: one choice, or a clear refusal.

use std::ops::RangeInclusive;

use vesta_intf::{Field, IdMeta};
use vesta_service::{ClaimOrder, IpMap};

use super::check::chosen;
use super::store;
use crate::raw::Raw;
use crate::secret::StoreUrl;
use crate::{ConfigError, secret};

/// Where machine IDs come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Machine {
    /// Handed out by a pool.
    Pool {
        /// The pool.
        store: StoreUrl,
        /// What it may hand out; `None` is all of the layout's.
        range: Option<RangeInclusive<u64>>,
        /// How many of them this process takes.
        count: usize,
        /// Which of the free ones.
        order: ClaimOrder,
    },
    /// A new one at each start, from the table of worker nodes in a database.
    Disposable {
        /// The database.
        store: StoreUrl,
    },
    /// A number of one's own, reserved in a store.
    Reserved {
        /// The store.
        store: StoreUrl,
        /// The number.
        number: Number,
    },
    /// A number of one's own, with a state file.
    Fixed(Number),
    /// A number of one's own, without any state: IDs may repeat after a restart.
    Stateless(u64),
}

/// A machine ID that is known before anybody is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Number {
    /// It was given.
    Id(u64),
    /// By this host's address.
    IpMap(IpMap),
    /// The number at the end of the host name.
    HostOrdinal,
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

/// The most machine IDs of one process.
const MOST: u64 = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Lease,
    Disposable,
}

pub(super) fn check(raw: &Raw, layout: &IdMeta) -> Result<Machine, ConfigError> {
    let strategy = raw.choice(
        "machine.strategy",
        &[("lease", Strategy::Lease), ("disposable", Strategy::Disposable)],
    )?;
    let count = raw.number("machine.count", 1, MOST)?;
    let order =
        raw.choice("machine.claim_order", &ClaimOrder::ALL.map(|order| (order.name(), order)))?;
    let stateless = raw.truth("stateless")?;
    let store = chosen(raw, "machine.store").is_some();
    let range = chosen(raw, "machine.range").is_some();

    let number = [
        ("machine.id", chosen(raw, "machine.id").is_some()),
        ("machine.ips", chosen(raw, "machine.ips").is_some()),
        ("machine.ordinal", raw.truth("machine.ordinal")?),
    ];
    let of_pools = [
        ("machine.range", range),
        ("machine.count", count > 1),
        ("machine.claim_order", order != ClaimOrder::default()),
    ];
    let mut numbers = set(&number);
    let choice = numbers.next();
    if let (Some(one), Some(other)) = (choice, numbers.next()) {
        return Err(ConfigError::refused(format!(
            "{one} and {other} are both set; keep one of them"
        )));
    }
    if strategy == Strategy::Disposable {
        let clash = choice.or(set(&of_pools).next()).or(stateless.then_some("stateless"));
        return disposable(raw, clash);
    }
    if let (Some(one), Some(other)) = (choice, set(&of_pools).next()) {
        return Err(ConfigError::refused(format!(
            "{other} is for a pool, but {one} fixes the machine ID; remove one of them"
        )));
    }
    if stateless && (choice != Some("machine.id") || store) {
        return Err(ConfigError::refused(
            "stateless = true is for machine.id without machine.store; remove stateless",
        ));
    }

    let max = layout.max(Field::Machine);
    let number = match choice {
        Some("machine.id") => Number::Id(raw.number("machine.id", 0, max)?),
        Some("machine.ips") => Number::IpMap(ip_map(raw, max)?),
        Some(_) => Number::HostOrdinal,
        None => {
            let range = range.then(|| range_of(raw, max)).transpose()?;
            let there_are = range.as_ref().map_or(max, |range| range.end() - range.start());
            if count - 1 > there_are {
                let must = format!("must be at most the {} of the pool", there_are + 1);
                return Err(raw.refuse("machine.count", must));
            }
            let count = usize::try_from(count).expect("at most 64");
            return Ok(Machine::Pool { store: url(raw)?, range, count, order });
        }
    };
    Ok(match number {
        number if store => Machine::Reserved { store: url(raw)?, number },
        Number::Id(id) if stateless => Machine::Stateless(id),
        number => Machine::Fixed(number),
    })
}

fn set<'a>(settings: &'a [(&'static str, bool)]) -> impl Iterator<Item = &'static str> + 'a {
    settings.iter().filter(|setting| setting.1).map(|setting| setting.0)
}

fn disposable(raw: &Raw, clash: Option<&str>) -> Result<Machine, ConfigError> {
    if let Some(name) = clash {
        return Err(ConfigError::refused(format!(
            "machine.strategy = \"disposable\" uses up a new machine ID at each start, but {name} is \
             set; remove one of them"
        )));
    }
    let store = url(raw)?;
    if store::kind(&store).is_some_and(|kind| !kind.is_sql()) {
        let must = "must be an SQL store (sqlite, mysql or postgres) with machine.strategy = \
            \"disposable\"";
        return Err(raw.refuse("machine.store", must));
    }
    Ok(Machine::Disposable { store })
}

/// Whether it has a scheme; vesta-store says what is wrong with the rest.
pub(super) fn looks_like_a_url(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}

/// The store's URL; the default is inside the state folder, so that one setting moves all state.
fn url(raw: &Raw) -> Result<StoreUrl, ConfigError> {
    match chosen(raw, "machine.store") {
        Some(url) if looks_like_a_url(url) => Ok(StoreUrl::new(url)),
        Some(_) => {
            Err(raw.refuse("machine.store", "must be a URL such as sqlite:vesta-data/vesta.db"))
        }
        None => {
            let folder = raw.text("state_dir").trim_end_matches('/');
            Ok(StoreUrl::new(format!("sqlite:{folder}/vesta.db")))
        }
    }
}

fn range_of(raw: &Raw, max: u64) -> Result<RangeInclusive<u64>, ConfigError> {
    let ends = raw.text("machine.range").split_once('-').and_then(|(from, to)| {
        Some((from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?))
    });
    match ends {
        Some((from, to)) if from <= to && to <= max => Ok(from..=to),
        _ => Err(raw.refuse(
            "machine.range",
            format_args!("must be FROM-TO within 0-{max}, such as 0-{}", max.min(923)),
        )),
    }
}

fn ip_map(raw: &Raw, max: u64) -> Result<IpMap, ConfigError> {
    let text = raw.text("machine.ips");
    let must = "must be a list such as 10.0.0.1=1,10.0.0.2=2";
    let map = IpMap::parse(text).map_err(|error| {
        // It quotes what was typed.
        let why = if secret::may_be_url(text) { String::new() } else { format!(" ({error})") };
        raw.refuse("machine.ips", format_args!("{must}{why}"))
    })?;
    match map.entries().map(|entry| entry.1).max() {
        Some(id) if id > max => {
            Err(raw.refuse("machine.ips", format_args!("must hold machine IDs of 0 to {max}")))
        }
        _ => Ok(map),
    }
}
