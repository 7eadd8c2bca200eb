//! From settings to a running service.

mod number;

use std::sync::Arc;

use vesta_intf::{Field, SequenceStart};
use vesta_service::{
    Clock as _, KvStore, Leases, LocalIdService, MachineSource, SegmentService, SegmentStore,
    SystemClock,
};
use vesta_store::{OpenError, Options};

pub(crate) use number::host_name;

use crate::pool::Pool;
use crate::settings::{Machine, Number, Segments};
use crate::ticks::TickConverter;
use crate::{Config, StoreUrl, secret};

/// A failure to start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is wrong, taken or unsafe: exit code 64.
    #[error("{0}")]
    Setting(String),
    /// Something that is needed cannot be reached now: exit code 69.
    #[error("{0}")]
    Unavailable(String),
}

impl StartError {
    /// A refusal, as a result.
    pub(crate) fn refuse<T>(sentence: impl Into<String>) -> Result<T, Self> {
        Err(StartError::Setting(sentence.into()))
    }
}

/// A service with its pool, segments and facts about its store.
#[derive(Debug)]
pub struct Assembled {
    /// The service.
    pub service: Arc<LocalIdService>,
    /// The pool of its machine IDs, for occasional observation.
    pub pool: Option<Arc<Pool>>,
    /// Segment mode, if it is on.
    pub segments: Option<Arc<SegmentService>>,
    /// True if the store, as it is set up, may lose acknowledged writes.
    pub may_forget: bool,
    /// Where the sequence of a tick begins.
    pub sequence_start: SequenceStart,
}

impl From<LocalIdService> for Assembled {
    fn from(service: LocalIdService) -> Self {
        Self {
            service: Arc::new(service),
            pool: None,
            segments: None,
            may_forget: false,
            sequence_start: SequenceStart::default(),
        }
    }
}

/// Makes the service that the settings describe. Blocks while machine IDs are claimed; with
/// `wait_for_store`, for as long as the store does not answer.
///
/// # Errors
/// [`StartError`] with one sentence that says what to do.
pub fn assemble(config: &Config) -> Result<Assembled, StartError> {
    let layout = &config.ids.layout;
    let now = SystemClock::new().wall();
    if now >= layout.end() {
        return StartError::refuse(format!(
            "layout {} ran out on {}, and the clock shows {now}; choose another layout, or describe \
             one with a later epoch in [layout.custom]",
            layout.name(),
            layout.end(),
        ));
    }
    // Its store is not waited for. It reads the tags while machine IDs are claimed.
    let segments = config.segments.as_ref().map(|settings| segments(config, settings));
    let segments = segments.transpose()?;
    let Source { machine, store, pool } = source(config)?;
    let mut builder = LocalIdService::builder()
        .layout(*layout)
        .populator(config.ids.populator)
        .gen_method(config.ids.gen_method)
        .version(config.ids.version)
        .sequence_start(config.ids.sequence_start)
        .max_wait(config.limits.max_wait)
        .namespace(config.ids.namespace.as_str())
        .state_dir(&config.state_dir)
        .wait_for_store(config.wait_for_store)
        .machine(machine);
    if let Machine::Pool { count, order, .. } = config.machine {
        builder = builder.machine_count(count).claim_order(order);
    }
    if let Some(timing) = config.lease.and_then(|lease| lease.chosen) {
        builder = builder.timing(timing);
    }
    let service = builder.build().map_err(|error| {
        let sentence = secret::hide(&error.to_string());
        if error.is_configuration() {
            StartError::Setting(sentence)
        } else {
            StartError::Unavailable(sentence)
        }
    })?;
    Ok(Assembled {
        service: Arc::new(service),
        pool: pool.map(Arc::new),
        segments: segments.map(Arc::new),
        may_forget: store.is_some_and(|store| store.may_forget()),
        sequence_start: config.ids.sequence_start,
    })
}

struct Source {
    machine: MachineSource,
    store: Option<Arc<dyn KvStore>>,
    pool: Option<Pool>,
}

impl From<MachineSource> for Source {
    fn from(machine: MachineSource) -> Self {
        Self { machine, store: None, pool: None }
    }
}

fn source(config: &Config) -> Result<Source, StartError> {
    let options = options(config);
    Ok(match &config.machine {
        Machine::Pool { store, range, .. } => {
            let store = open(store, &options)?;
            let pool = Pool::new(
                Leases::new(Arc::clone(&store), &config.ids.namespace),
                range.clone().unwrap_or(0..=config.ids.layout.max(Field::Machine)),
                TickConverter::new(config.ids.layout),
                config.lease.map(|lease| lease.timing().takeover_grace).unwrap_or_default(),
            );
            let machine = MachineSource::Pool { store: Arc::clone(&store), range: range.clone() };
            Source { machine, store: Some(store), pool: Some(pool) }
        }
        Machine::Disposable { store } => {
            let nodes =
                vesta_store::open_worker_nodes(store.expose(), &options).map_err(cannot_open)?;
            MachineSource::Disposable { nodes }.into()
        }
        Machine::Reserved { store, number } => {
            let (id, origin) = number::resolve(number)?;
            tracing::info!(machine = id, "this host's machine ID, by {origin}");
            let store = open(store, &options)?;
            let machine = MachineSource::Reserved { store: Arc::clone(&store), id };
            Source { machine, store: Some(store), pool: None }
        }
        Machine::Fixed(Number::Id(id)) => MachineSource::Fixed(*id).into(),
        Machine::Fixed(Number::IpMap(map)) => MachineSource::IpMap(map.clone()).into(),
        Machine::Fixed(Number::HostOrdinal) => MachineSource::HostOrdinal.into(),
        Machine::Stateless(id) => MachineSource::Stateless(*id).into(),
    })
}

pub(crate) fn options(config: &Config) -> Options {
    Options { auto_init: config.auto_init, request_timeout: config.store_timeout }
}

pub(crate) fn open(store: &StoreUrl, options: &Options) -> Result<Arc<dyn KvStore>, StartError> {
    vesta_store::open_with(store.expose(), options).map_err(cannot_open)
}

fn segments(config: &Config, settings: &Segments) -> Result<SegmentService, StartError> {
    let store = open_segments(&settings.store, config.auto_init)?;
    SegmentService::builder(store)
        .mode(settings.mode)
        .step_cap(settings.max_step)
        .max_wait(config.limits.max_wait)
        .build()
        .map_err(|error| StartError::Unavailable(format!("segment mode: {error}")))
}

pub(crate) fn open_segments(
    store: &StoreUrl,
    auto_init: bool,
) -> Result<Arc<dyn SegmentStore>, StartError> {
    let options = Options { auto_init, ..Options::default() };
    vesta_store::open_segments(store.expose(), &options)
        .map_err(|error| not_opened("segment.store", error))
}

pub(crate) fn cannot_open(error: OpenError) -> StartError {
    not_opened("machine.store", error)
}

/// Transient failures, such as a full disk, are not the setting's fault.
pub(crate) fn not_opened(setting: &str, error: OpenError) -> StartError {
    let sentence = format!("{setting}: {}", secret::hide(&error.to_string()));
    match error {
        OpenError::Store { source, .. } if !source.is_permanent() => {
            StartError::Unavailable(sentence)
        }
        _ => StartError::Setting(sentence),
    }
}
