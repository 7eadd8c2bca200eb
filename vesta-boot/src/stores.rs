//! Opens the stores that the settings name, and checks their durability.

pub(crate) mod metered;
pub(crate) mod pool;
pub(crate) mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use vesta_numbers::segment::SegmentStore;
use vesta_numbers::serial::SerialService;
use vesta_service::BuildError;
use vesta_service::lease::{KvStore, StoreError};
use vesta_service::options::WorkerNodeStore;
use vesta_store::{OpenError, Options, StoreUrl};

use crate::error::Error;
use crate::serial_keys;
use crate::settings::SEGMENTS_OFF;
use crate::settings::{Config, Machine};

/// This host's name, according to the kernel.
pub fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

pub(crate) fn options(config: &Config) -> Options {
    Options {
        auto_init: config.store.auto_init,
        request_timeout: config.store.request_timeout,
        state_dir: Some(config.state_dir.clone()),
        network_fs: config.allow_network_fs,
        one_writer: config.one_writer,
        ..Options::default()
    }
}

pub(crate) fn open(store: &StoreUrl, options: &Options) -> Result<Arc<dyn KvStore>, Error> {
    vesta_store::open_with(store, options).map_err(cannot_open)
}

pub(crate) fn worker_nodes(
    store: &StoreUrl,
    options: &Options,
) -> Result<Arc<dyn WorkerNodeStore>, Error> {
    vesta_store::open_worker_nodes(store, options).map_err(cannot_open)
}

/// Checks the stores other than those of leases as a start does: whether and why each may forget. Creates
/// nothing.
pub fn ask_stores(config: &Config) -> Vec<(&'static str, Result<Option<String>, Error>)> {
    let fit = |store: String, doubt: Result<Option<String>, StoreError>| match doubt {
        Err(error) if !error.is_permanent() => Err(Error::Unavailable(format!("{store}: {error}"))),
        doubt => refuse_doubt(config, &store, doubt),
    };
    let disposable = match &config.machine {
        Machine::Disposable { store } => Some(store),
        _ => None,
    };
    let disposable = disposable.map(|store| {
        let nodes = worker_nodes(
            store,
            &Options {
                auto_init: false,
                ..options(config)
            },
        )?;
        let (store, machines) = (nodes.describe(), config.ids.layout.machines());
        match nodes.highest() {
            Ok(highest) if highest >= *machines.end() => {
                let number = highest.saturating_add(1);
                Error::refuse(BuildError::WorkerNodeOutside {
                    store,
                    number,
                    machines,
                })
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
        fit(
            service.describe(),
            service.refresh().map(|()| service.doubt()),
        )
    });
    let asked = [
        ("store", disposable),
        ("segments", segments),
        ("serials", serials),
    ];
    asked
        .into_iter()
        .filter_map(|(what, answer)| Some((what, answer?)))
        .collect()
}

/// Serial service over a store.
pub(crate) fn serials(
    config: &Config,
    store: &StoreUrl,
    auto_init: bool,
) -> Result<SerialService, Error> {
    let options = Options {
        auto_init,
        request_timeout: None,
        ..options(config)
    };
    let store = vesta_store::open_with(store, &options);
    let store = store.map_err(|error| not_opened("serial.store", error))?;
    let mut builder = SerialService::builder(store);
    for (tag, key) in config
        .serials
        .keys
        .as_deref()
        .map_or_else(|| Ok(BTreeMap::new()), serial_keys::read)?
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

/// Refuses a store that fails permanently or, with `segment.require_durable`, one that may forget. An
/// unreachable store is accepted: the service checks it again before it hands out a number.
pub(crate) fn refuse_doubt(
    config: &Config,
    store: &str,
    doubt: Result<Option<String>, StoreError>,
) -> Result<Option<String>, Error> {
    match doubt {
        Ok(Some(why)) if config.segments.require_durable => Error::refuse(format!(
            "segment.require_durable: {store} may forget numbers that it handed out: {why}"
        )),
        Err(error) if error.is_permanent() => Error::refuse(format!("{store}: {error}")),
        doubt => Ok(doubt.ok().flatten()),
    }
}

/// Opens the store of segment tags.
///
/// # Errors
/// [`Error`] if segment mode is off, or the store cannot be opened.
pub(crate) fn open_segments(
    config: &Config,
    auto_init: bool,
) -> Result<Arc<dyn SegmentStore>, Error> {
    let url = config
        .segments
        .store
        .as_ref()
        .ok_or_else(|| Error::setting(SEGMENTS_OFF))?;
    vesta_store::open_segments(url, &options_of_tags(config, auto_init))
        .map_err(|error| not_opened("segment.store", error))
}

pub(crate) fn options_of_tags(config: &Config, auto_init: bool) -> Options {
    let segment_table = config.segments.table;
    Options {
        auto_init,
        request_timeout: None,
        segment_table,
        ..options(config)
    }
}

fn cannot_open(error: OpenError) -> Error {
    not_opened("machine.store", error)
}

/// Transient failures, such as a full disk, are not errors of the setting.
pub(crate) fn not_opened(setting: &str, error: OpenError) -> Error {
    let passes = matches!(&error, OpenError::Store { source, .. } if !source.is_permanent());
    Error::lasting(!passes, format!("{setting}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;

    #[test]
    fn a_store_unfit_for_tags_fails_the_start_with_a_reason() {
        let mut config = Config::defaults(&[Api::Grpc]);
        let doubt = || Ok(Some("it has asynchronous replicas".to_owned()));
        let check = |config: &Config, answer| refuse_doubt(config, "a database", answer);
        assert_eq!(
            check(&config, doubt()).unwrap(),
            doubt().unwrap(),
            "unless durability is required"
        );
        config.segments.require_durable = true;
        let error = check(&config, doubt()).unwrap_err();
        let expected = "segment.require_durable: a database may forget numbers that it handed out: it \
                        has asynchronous replicas";
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            (expected, 64)
        );
        assert_eq!(check(&config, Ok(None)).unwrap(), None);
        let refused = check(&config, Err(StoreError::permanent("it replicates"))).unwrap_err();
        assert_eq!(
            (refused.to_string().as_str(), refused.exit_code()),
            ("a database: it replicates", 64)
        );
        let away = StoreError::unavailable("away", std::io::Error::other("for now"));
        assert_eq!(
            check(&config, Err(away)).unwrap(),
            None,
            "the start does not fail"
        );
    }
}
