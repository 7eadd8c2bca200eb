//! Construction of the service from settings.

use std::fmt::Display;
use std::sync::Arc;

use vesta_intf::{IdError, IdMeta};
use vesta_numbers::segment::{SegmentService, SegmentStore};
use vesta_numbers::serial::SerialService;
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{KvStore, refusal};
use vesta_service::options::host_ordinal;
use vesta_service::{LocalIdService, MachineSource};
use vesta_store::StoreUrl;

use crate::error::Error;
use crate::offered::Offered;
use crate::settings::{Compat, Config, Machine, Number, PoolServer};
use crate::stores::metered::Metered;
use crate::stores::pool::Pool;
use crate::stores::{
    host_name, not_opened, open, open_segments, options, options_of_tags, refuse_doubt, serials,
    worker_nodes,
};
use crate::tinyid_tokens::TinyidTokens;

/// A service with its pool, segments and facts about its store.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The service.
    pub service: Arc<LocalIdService>,
    /// The pool of its machine IDs, read occasionally.
    pub(crate) pool: Option<Arc<Pool>>,
    /// Segment mode, if it is on.
    pub(crate) segments: Option<Arc<SegmentService>>,
    /// The tokens of Tinyid's clients, if they are served.
    pub(crate) tinyid: Option<Arc<TinyidTokens>>,
    /// Serials, if they are on.
    pub(crate) serials: Option<Arc<SerialService>>,
    /// The store of machine IDs, if a separate one is used.
    pub(crate) store: Option<Arc<Metered>>,
    /// Origin of IDs, for metrics.
    pub(crate) origin: Origin,
}

impl Assembled {
    /// The store that others may use, if this server is a pool server.
    pub(crate) fn pool_server(&self, settings: &PoolServer) -> Option<Offered> {
        let store = self.store.clone();
        store
            .filter(|_| !settings.namespaces.is_empty())
            .map(Offered::of)
    }
}

/// Origin of IDs, for metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    pub(crate) machine_source: &'static str,
    /// The kind of the store of machine IDs.
    pub(crate) store: &'static str,
    /// genMethod of the IDs.
    pub(crate) gen_method: u64,
}

impl Origin {
    fn of(config: &Config) -> Self {
        let machine_source = match &config.machine {
            Machine::Pool { .. } => "pool",
            Machine::Disposable { .. } => "disposable",
            Machine::Reserved { number, .. } | Machine::Fixed(number) => match number {
                Number::Id(_) => "id",
                Number::IpMap(_) => "ips",
                Number::HostOrdinal | Number::HostOrdinalOf(_) => "ordinal",
            },
            Machine::Stateless(_) => "stateless",
        };
        let store = match &config.machine {
            Machine::Stateless(_) => "none",
            machine => machine.store().map_or("file", |store| store.kind().name()),
        };
        Self {
            machine_source,
            store,
            gen_method: config.ids.gen_method.value(),
        }
    }
}

/// Builds the service that the settings describe. Blocks while machine IDs are claimed; with
/// `wait_for_store`, for as long as the store is unreachable.
///
/// # Errors
/// [`Error`] with one sentence that states the remedy.
pub fn assemble(config: &Config) -> Result<Assembled, Error> {
    let layout = &config.ids.layout;
    let now = SystemClock::new().wall();
    if now >= layout.end() {
        return Error::refuse(format!(
            "layout {} ran out on {}, and the clock shows {now}; choose another layout, or describe \
             one with a later epoch in [layout.custom]",
            layout.name(),
            layout.end(),
        ));
    }
    // Does not wait for its store. The tags are read while machine IDs are claimed.
    let (segments, tinyid) = segments(config)?;
    let serials = config.serials.store.as_ref();
    let serials = serials.map(|store| serials_of(config, store)).transpose()?;
    let (machine, store) = source(config)?;
    let mut builder = LocalIdService::builder()
        .layout(*layout)
        .populator(config.ids.populator)
        .clock_kind(config.ids.clock)
        .pacing(config.ids.pacing)
        .borrow_ahead(config.ids.borrow_ahead)
        .gen_method(config.ids.gen_method)
        .version(config.ids.version)
        .sequence_start(config.ids.sequence_start)
        .max_wait(config.limits.max_wait)
        .namespace(config.ids.namespace.as_str())
        .state_dir(&config.state_dir)
        .allow_network_fs(config.allow_network_fs)
        .wait_for_store(config.store.wait_for_store)
        .standby(config.standby)
        .doubtful_window(config.store.doubtful_window)
        .machine(machine);
    if let Some(may_forget) = config.store_doubt {
        builder = builder.store_doubt(may_forget);
    }
    if let Some(timing) = config.lease {
        builder = builder.timing(timing);
    }
    if let Some(clock) = &config.clock {
        builder = builder.clock(Arc::clone(clock));
    }
    let mut pool = None;
    if let (
        Machine::Pool {
            range,
            count,
            order,
            ..
        },
        Some(store),
    ) = (&config.machine, &store)
    {
        builder = builder.machine_count(*count).claim_order(*order);
        pool = Some(Arc::new(Pool::new(
            Arc::clone(store),
            &config.ids.namespace,
            range.clone().unwrap_or(layout.machines()),
            *layout,
            crate::commands::store::shown,
        )));
    }
    let service = builder
        .build()
        .map_err(|error| Error::lasting(error.is_configuration(), error))?;
    let (service, segments) = (Arc::new(service), segments.map(Arc::new));
    let (serials, tinyid) = (serials.map(Arc::new), tinyid.map(Arc::new));
    let origin = Origin::of(config);
    Ok(Assembled {
        service,
        pool,
        segments,
        tinyid,
        serials,
        store,
        origin,
    })
}

/// Source of machine IDs, and its store of leases.
fn source(config: &Config) -> Result<(MachineSource, Option<Arc<Metered>>), Error> {
    let options = options(config);
    let source = match &config.machine {
        Machine::Pool { store, range, .. } => {
            let store = Metered::new(open(store, &options)?, config.clock.clone());
            refuse_second(config, &*store)?;
            let source = MachineSource::Pool {
                store: Arc::clone(&store) as _,
                range: range.clone(),
            };
            return Ok((source, Some(store)));
        }
        Machine::Reserved { store, number } => {
            let id = resolve(number, &config.ids.layout)?;
            let store = Metered::new(open(store, &options)?, config.clock.clone());
            refuse_second(config, &*store)?;
            let source = MachineSource::Reserved {
                store: Arc::clone(&store) as _,
                id,
            };
            return Ok((source, Some(store)));
        }
        Machine::Disposable { store } => MachineSource::Disposable {
            nodes: worker_nodes(store, &options)?,
        },
        Machine::Fixed(Number::Id(id)) => MachineSource::Fixed(*id),
        Machine::Fixed(Number::IpMap(map)) => MachineSource::IpMap(map.clone()),
        Machine::Fixed(Number::HostOrdinal) => MachineSource::HostOrdinal,
        Machine::Fixed(Number::HostOrdinalOf(of)) => MachineSource::HostOrdinalOf(of.clone()),
        Machine::Stateless(id) => MachineSource::Stateless(*id),
    };
    Ok((source, None))
}

/// Refuses to be the pool server of a store that is a second one. A store that does not answer yet is looked at again for
/// each member.
fn refuse_second(config: &Config, store: &dyn KvStore) -> Result<(), Error> {
    if config.pool_server.namespaces.is_empty() {
        return Ok(());
    }
    let refused = |why: &dyn Display| Error::refuse(format!("{}: {why}", store.describe()));
    match refusal(store) {
        Ok(None) => {}
        Ok(Some(why)) => return refused(&why),
        Err(error) if error.is_permanent() => return refused(&error),
        Err(_) => return Ok(()),
    }
    if matches!(store.file_place(), Ok(Some(place)) if place.machine.is_empty()) {
        tracing::warn!(
            "this machine has no /etc/machine-id, so a copy of the pool_server's file on another machine is only known by \
             its device, inode and time of creation"
        );
    }
    Ok(())
}

/// This host's machine ID, where settings and host alone determine it.
fn resolve(number: &Number, layout: &IdMeta) -> Result<u64, Error> {
    let refused = |error: IdError| Error::setting(error);
    let (id, origin) = match number {
        Number::Id(id) => (*id, "machine.id".to_owned()),
        Number::IpMap(map) => {
            let (address, id) = map.find_own().map_err(refused)?;
            (id, format!("address {address} in machine.id"))
        }
        Number::HostOrdinal | Number::HostOrdinalOf(_) => {
            let of = if let Number::HostOrdinalOf(of) = number {
                Some(of.as_str())
            } else {
                None
            };
            let id = host_ordinal(layout, of).map_err(refused)?;
            (id, format!("ordinal of host name {}", host_name()))
        }
    };
    tracing::info!(machine = id, "machine ID of this host, by {origin}");
    Ok(id)
}

/// Segment mode, if on, and the tokens of Tinyid's clients, if they are served.
fn segments(config: &Config) -> Result<(Option<SegmentService>, Option<TinyidTokens>), Error> {
    let Some(url) = &config.segments.store else {
        return Ok((None, None));
    };
    let auto_init = config.store.auto_init;
    if config.compat != Compat::Tinyid {
        return Ok((
            Some(segments_over(config, open_segments(config, auto_init)?)?),
            None,
        ));
    }
    let store = vesta_store::open_tinyid(url, &options_of_tags(config, auto_init));
    let store = store.map_err(|error| not_opened("segment.store", error))?;
    let tokens = TinyidTokens::start(Arc::clone(&store))
        .map_err(|error| Error::lasting(error.is_permanent(), error))?;
    Ok((Some(segments_over(config, store)?), Some(tokens)))
}

fn segments_over(config: &Config, store: Arc<dyn SegmentStore>) -> Result<SegmentService, Error> {
    refuse_doubt(config, &store.describe(), store.doubt())?;
    SegmentService::builder(store)
        .state_dir(&config.state_dir)
        .require_durable(config.segments.require_durable)
        .step_cap(config.segments.max_step)
        .max_wait(config.limits.max_wait)
        .build()
        .map_err(|error| Error::lasting(error.is_configuration(), format!("segment mode: {error}")))
}

/// Serials; their store must not forget numbers if `segment.require_durable` is set.
fn serials_of(config: &Config, store: &StoreUrl) -> Result<SerialService, Error> {
    let service = serials(config, store, config.store.auto_init)?;
    let doubt = service.refresh().map(|()| service.doubt());
    refuse_doubt(config, &service.describe(), doubt)?;
    Ok(service)
}
