//! Where the machine ID comes from: one choice, or a clear refusal.

use std::ops::RangeInclusive;

use vesta_intf::{Field, IdMeta};
use vesta_service::IpMap;

use super::check::chosen;
use crate::ConfigError;
use crate::raw::Raw;
use crate::secret::StoreUrl;

/// Where the machine ID comes from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Machine {
    /// Handed out by a pool.
    Pool {
        /// The pool.
        store: StoreUrl,
        /// What it may hand out; `None` is all of the layout's.
        range: Option<RangeInclusive<u64>>,
    },
    /// Fixed, and reserved in a store.
    Reserved {
        /// The store.
        store: StoreUrl,
        /// The machine ID.
        id: u64,
    },
    /// Fixed, with a state file.
    Fixed(u64),
    /// Fixed, without any state: IDs may repeat after a restart.
    Stateless(u64),
    /// By this host's address.
    IpMap(IpMap),
    /// The number at the end of the host name.
    HostOrdinal,
}

pub(super) fn check(raw: &Raw, layout: &IdMeta) -> Result<Machine, ConfigError> {
    let ordinal = raw.truth("machine.ordinal")?;
    let stateless = raw.truth("stateless")?;
    let (id, ips) = (chosen(raw, "machine.id"), chosen(raw, "machine.ips"));
    let (store, range) = (chosen(raw, "machine.store"), chosen(raw, "machine.range"));

    let fixed = [
        ("machine.id", id.is_some()),
        ("machine.ips", ips.is_some()),
        ("machine.ordinal", ordinal),
    ];
    let mut choices = fixed.iter().filter(|choice| choice.1).map(|choice| choice.0);
    let choice = choices.next();
    if let (Some(one), Some(other)) = (choice, choices.next()) {
        return Err(ConfigError::refused(format!(
            "{one} and {other} are both set; keep one of them"
        )));
    }
    if let (Some(one), Some(_)) = (choice, range) {
        return Err(ConfigError::refused(format!(
            "machine.range is for a pool, but {one} fixes the machine ID; remove one of them"
        )));
    }
    if let (Some(one @ ("machine.ips" | "machine.ordinal")), Some(_)) = (choice, store) {
        return Err(ConfigError::refused(format!(
            "{one} and machine.store are both set; keep one of them, or set machine.id together \
             with machine.store"
        )));
    }
    if stateless && (id.is_none() || store.is_some()) {
        return Err(ConfigError::refused(
            "stateless = true is for machine.id without machine.store; remove stateless",
        ));
    }

    let max = layout.max(Field::Machine);
    match choice {
        Some("machine.id") => {
            let id = raw.number("machine.id", 0, max)?;
            Ok(match store {
                Some(_) => Machine::Reserved { store: url(raw)?, id },
                None if stateless => Machine::Stateless(id),
                None => Machine::Fixed(id),
            })
        }
        Some("machine.ips") => ip_map(raw, max).map(Machine::IpMap),
        Some(_) => Ok(Machine::HostOrdinal),
        None => {
            let range = range.is_some().then(|| range_of(raw, max)).transpose()?;
            Ok(Machine::Pool { store: url(raw)?, range })
        }
    }
}

/// The store's URL; the default is inside the state folder, so that one setting moves all state.
fn url(raw: &Raw) -> Result<StoreUrl, ConfigError> {
    match chosen(raw, "machine.store") {
        Some(url)
            if url
                .split_once(':')
                .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()) =>
        {
            Ok(StoreUrl::new(url))
        }
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
    let map = IpMap::parse(text)
        .map_err(|error| raw.refuse("machine.ips", format_args!("{must} ({error})")))?;
    match map.entries().map(|entry| entry.1).max() {
        Some(id) if id > max => {
            Err(raw.refuse("machine.ips", format_args!("must hold machine IDs of 0 to {max}")))
        }
        _ => Ok(map),
    }
}
