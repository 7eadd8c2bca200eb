//! From settings to a running service.

use std::collections::BTreeMap;
use std::sync::Arc;

use vesta_intf::{IdError, IdMeta};
use vesta_service::clock::{Clock as _, SystemClock};
use vesta_service::lease::{KvStore, StoreError};
use vesta_service::options::{WorkerNodeStore, host_ordinal};
use vesta_service::segment::{SegmentService, SegmentStore};
use vesta_service::serial::SerialService;
use vesta_service::{BuildError, LocalIdService, MachineSource};
use vesta_store::{OpenError, Options, StoreUrl};

use crate::error::Error;
use crate::keys;
use crate::metered::Metered;
use crate::pool::Pool;
use crate::running::SEGMENTS_OFF;
use crate::settings::{Compat, Config, Machine, Number};
use crate::ticks::TickConverter;
use crate::tinyid::TinyidTokens;

/// A service with its pool, segments and facts about its store.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The service.
    pub service: Arc<LocalIdService>,
    /// The pool of its machine IDs, for occasional observation.
    pub pool: Option<Arc<Pool>>,
    /// Segment mode, if it is on.
    pub segments: Option<Arc<SegmentService>>,
    /// The tokens of Tinyid's clients, if they are served.
    pub tinyid: Option<Arc<TinyidTokens>>,
    /// Serials, if they are on.
    pub serials: Option<Arc<SerialService>>,
    /// The store of machine IDs, if one on its own keeps them.
    pub(crate) store: Option<Arc<Metered>>,
    /// As metrics name them.
    pub(crate) origin: Origin,
}

/// The origin of IDs, as metrics name it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    pub(crate) machine_source: &'static str,
    /// The kind of the store of machine IDs.
    pub(crate) store: &'static str,
    /// Of the fronts, without repetitions.
    pub(crate) gen_methods: Vec<u64>,
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
        Self { machine_source, store, gen_methods: vec![config.ids.gen_method.value()] }
    }
}

impl From<LocalIdService> for Assembled {
    fn from(service: LocalIdService) -> Self {
        Self {
            service: Arc::new(service),
            pool: None,
            segments: None,
            tinyid: None,
            serials: None,
            store: None,
            origin: Origin::default(),
        }
    }
}

/// Makes the service that the settings describe. Blocks while machine IDs are claimed; with
/// `wait_for_store`, for as long as the store does not answer.
///
/// # Errors
/// [`Error`] with one sentence that says what to do.
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
    // Its store is not waited for. It reads the tags while machine IDs are claimed.
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
        .doubtful_window(config.store.doubtful_window)
        .machine(machine);
    if let Some(may_forget) = config.store_may_forget {
        builder = builder.store_may_forget(may_forget);
    }
    if let Some(timing) = config.lease {
        builder = builder.timing(timing);
    }
    if let Some(clock) = &config.clock {
        builder = builder.clock(Arc::clone(clock));
    }
    let mut pool = None;
    if let (Machine::Pool { range, count, order, .. }, Some(store)) = (&config.machine, &store) {
        builder = builder.machine_count(*count).claim_order(*order);
        pool = Some(Arc::new(Pool::new(
            Arc::clone(store),
            &config.ids.namespace,
            range.clone().unwrap_or(layout.machines()),
            TickConverter::new(*layout),
        )));
    }
    let service =
        builder.build().map_err(|error| Error::lasting(error.is_configuration(), error))?;
    let (service, segments) = (Arc::new(service), segments.map(Arc::new));
    let (serials, tinyid) = (serials.map(Arc::new), tinyid.map(Arc::new));
    let origin = Origin::of(config);
    Ok(Assembled { service, pool, segments, tinyid, serials, store, origin })
}

/// The source of machine IDs, and its store of leases.
fn source(config: &Config) -> Result<(MachineSource, Option<Arc<Metered>>), Error> {
    let options = options(config);
    let source = match &config.machine {
        Machine::Pool { store, range, .. } => {
            let store = Metered::new(open(store, &options)?, config.clock.clone());
            let source =
                MachineSource::Pool { store: Arc::clone(&store) as _, range: range.clone() };
            return Ok((source, Some(store)));
        }
        Machine::Reserved { store, number } => {
            let id = resolve(number, &config.ids.layout)?;
            let store = Metered::new(open(store, &options)?, config.clock.clone());
            let source = MachineSource::Reserved { store: Arc::clone(&store) as _, id };
            return Ok((source, Some(store)));
        }
        Machine::Disposable { store } => {
            MachineSource::Disposable { nodes: worker_nodes(store, &options)? }
        }
        Machine::Fixed(Number::Id(id)) => MachineSource::Fixed(*id),
        Machine::Fixed(Number::IpMap(map)) => MachineSource::IpMap(map.clone()),
        Machine::Fixed(Number::HostOrdinal) => MachineSource::HostOrdinal,
        Machine::Fixed(Number::HostOrdinalOf(of)) => MachineSource::HostOrdinalOf(of.clone()),
        Machine::Stateless(id) => MachineSource::Stateless(*id),
    };
    Ok((source, None))
}

/// The machine ID of this host, where settings and host alone determine it.
fn resolve(number: &Number, layout: &IdMeta) -> Result<u64, Error> {
    let refused = |error: IdError| Error::setting(error);
    let (id, origin) = match number {
        Number::Id(id) => (*id, "machine.id".to_owned()),
        Number::IpMap(map) => {
            let (address, id) = map.find_own().map_err(refused)?;
            (id, format!("address {address} in machine.ips"))
        }
        Number::HostOrdinal | Number::HostOrdinalOf(_) => {
            let of = if let Number::HostOrdinalOf(of) = number { Some(of.as_str()) } else { None };
            let id = host_ordinal(layout, of).map_err(refused)?;
            (id, format!("ordinal of host name {}", host_name()))
        }
    };
    tracing::info!(machine = id, "this host's machine ID, by {origin}");
    Ok(id)
}

/// This host's name according to the kernel.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn options(config: &Config) -> Options {
    Options {
        auto_init: config.store.auto_init,
        request_timeout: config.store.request_timeout,
        network_fs: config.allow_network_fs,
        one_writer: config.one_writer,
        ..Options::default()
    }
}

pub(crate) fn open(store: &StoreUrl, options: &Options) -> Result<Arc<dyn KvStore>, Error> {
    vesta_store::open_with(store, options).map_err(cannot_open)
}

fn worker_nodes(store: &StoreUrl, options: &Options) -> Result<Arc<dyn WorkerNodeStore>, Error> {
    vesta_store::open_worker_nodes(store, options).map_err(cannot_open)
}

/// Asks the stores beside those of leases what a start asks them: why each may forget. Nothing is created.
pub fn ask_stores(config: &Config) -> Vec<(&'static str, Result<Option<String>, Error>)> {
    let fit = |store: String, doubt: Result<Option<String>, StoreError>| match doubt {
        Err(error) if !error.is_permanent() => Err(Error::Unavailable(format!("{store}: {error}"))),
        doubt => refuse_unfit(config, &store, doubt),
    };
    let disposable = match &config.machine {
        Machine::Disposable { store } => Some(store),
        _ => None,
    };
    let disposable = disposable.map(|store| {
        let nodes = worker_nodes(store, &Options { auto_init: false, ..options(config) })?;
        let (store, machines) = (nodes.describe(), config.ids.layout.machines());
        match nodes.highest() {
            Ok(highest) if highest >= *machines.end() => {
                let number = highest.saturating_add(1);
                Error::refuse(BuildError::WorkerNodeOutside { store, number, machines })
            }
            highest => fit(store, highest.and_then(|_| nodes.doubt())),
        }
    });
    let segments = config.segments.store.as_ref().map(|_| {
        let store = open_segments(config, false)?;
        fit(store.describe(), store.tags().and_then(|_| store.doubt()))
    });
    let serials = config.serials.store.as_ref().map(|store| {
        let service = serials(config, store, false)?;
        fit(service.describe(), service.refresh().map(|()| service.doubt()))
    });
    let asked = [("store", disposable), ("segments", segments), ("serials", serials)];
    asked.into_iter().filter_map(|(what, answer)| Some((what, answer?))).collect()
}

/// Segment mode, if it is on, and the tokens of Tinyid's clients, if they are to be served.
fn segments(config: &Config) -> Result<(Option<SegmentService>, Option<TinyidTokens>), Error> {
    let Some(url) = &config.segments.store else { return Ok((None, None)) };
    let auto_init = config.store.auto_init;
    if config.compat != Compat::Tinyid {
        return Ok((Some(segments_over(config, open_segments(config, auto_init)?)?), None));
    }
    let store = vesta_store::open_tinyid(url, &options_of_tags(config, auto_init));
    let store = store.map_err(|error| not_opened("segment.store", error))?;
    let tokens = TinyidTokens::start(Arc::clone(&store))
        .map_err(|error| Error::lasting(error.is_permanent(), error))?;
    Ok((Some(segments_over(config, store)?), Some(tokens)))
}

fn segments_over(config: &Config, store: Arc<dyn SegmentStore>) -> Result<SegmentService, Error> {
    refuse_unfit(config, &store.describe(), store.doubt())?;
    SegmentService::builder(store)
        .state_dir(&config.state_dir)
        .require_durable(config.segments.require_durable)
        .step_cap(config.segments.max_step)
        .max_wait(config.limits.max_wait)
        .build()
        .map_err(|error| Error::lasting(error.is_configuration(), format!("segment mode: {error}")))
}

/// Serials, whose store may not forget what it gave out if that is required.
fn serials_of(config: &Config, store: &StoreUrl) -> Result<SerialService, Error> {
    let service = serials(config, store, config.store.auto_init)?;
    let doubt = service.refresh().map(|()| service.doubt());
    refuse_unfit(config, &service.describe(), doubt)?;
    Ok(service)
}

/// The service of serials over a store.
pub(crate) fn serials(
    config: &Config,
    store: &StoreUrl,
    auto_init: bool,
) -> Result<SerialService, Error> {
    let options = Options { auto_init, request_timeout: None, ..options(config) };
    let store = vesta_store::open_with(store, &options);
    let store = store.map_err(|error| not_opened("serial.store", error))?;
    let mut builder = SerialService::builder(store);
    for (tag, key) in
        config.serials.keys.as_deref().map_or_else(|| Ok(BTreeMap::new()), keys::read)?
    {
        builder = builder.key(tag, key);
    }
    let service = builder.segments(|segments| {
        let segments = segments
            .state_dir(&config.state_dir)
            .require_durable(config.segments.require_durable)
            .step_cap(config.segments.max_step)
            .max_wait(config.limits.max_wait);
        match &config.clock {
            Some(clock) => segments.clock(Arc::clone(clock)),
            None => segments,
        }
    });
    let built = service.build();
    built.map_err(|error| Error::lasting(error.is_configuration(), format!("serials: {error}")))
}

/// Refuses a store that says no for good, or, if that is required, one that may forget. One that does not
/// answer is waited for: the service asks it again before it gives out a number.
fn refuse_unfit(
    config: &Config,
    store: &str,
    doubt: Result<Option<String>, StoreError>,
) -> Result<Option<String>, Error> {
    match doubt {
        Ok(Some(why)) if config.segments.require_durable => Error::refuse(format!(
            "segment.require_durable: {store} may forget numbers that it gave out: {why}"
        )),
        Err(error) if error.is_permanent() => Error::refuse(format!("{store}: {error}")),
        doubt => Ok(doubt.ok().flatten()),
    }
}

/// The store of segment tags.
///
/// # Errors
/// [`Error`] if segment mode is off, or the store cannot be opened.
pub(crate) fn open_segments(
    config: &Config,
    auto_init: bool,
) -> Result<Arc<dyn SegmentStore>, Error> {
    let url = config.segments.store.as_ref().ok_or_else(|| Error::setting(SEGMENTS_OFF))?;
    vesta_store::open_segments(url, &options_of_tags(config, auto_init))
        .map_err(|error| not_opened("segment.store", error))
}

fn options_of_tags(config: &Config, auto_init: bool) -> Options {
    let segment_table = config.segments.table;
    Options { auto_init, request_timeout: None, segment_table, ..options(config) }
}

pub(crate) fn cannot_open(error: OpenError) -> Error {
    not_opened("machine.store", error)
}

/// Transient failures, such as a full disk, are not the setting's fault.
pub(crate) fn not_opened(setting: &str, error: OpenError) -> Error {
    let passes = matches!(&error, OpenError::Store { source, .. } if !source.is_permanent());
    Error::lasting(!passes, format!("{setting}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn a_store_that_is_not_fit_for_tags_ends_the_start_with_a_sentence() {
        let mut config = Config::defaults(Role::Server);
        let doubt = || Ok(Some("it has asynchronous replicas".to_owned()));
        let check = |config: &Config, answer| refuse_unfit(config, "a database", answer);
        assert_eq!(check(&config, doubt()).unwrap(), doubt().unwrap(), "unless that is required");
        config.segments.require_durable = true;
        let error = check(&config, doubt()).unwrap_err();
        let expected = "segment.require_durable: a database may forget numbers that it gave out: it \
                        has asynchronous replicas";
        assert_eq!((error.to_string().as_str(), error.exit_code()), (expected, 64));
        assert_eq!(check(&config, Ok(None)).unwrap(), None);
        let refused = check(&config, Err(StoreError::permanent("it replicates"))).unwrap_err();
        assert_eq!(
            (refused.to_string().as_str(), refused.exit_code()),
            ("a database: it replicates", 64)
        );
        let away = StoreError::unavailable("away", std::io::Error::other("for now"));
        assert_eq!(check(&config, Err(away)).unwrap(), None, "it is waited for");
    }
}
