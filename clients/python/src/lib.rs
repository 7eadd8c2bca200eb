//! The embedded generator of Vesta for Python. One of a process is built at its first call, also in the child of a
//! fork, which never uses what its parent built.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, process};

use once_cell::sync::OnceCell;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use vesta_explain::layouts;
use vesta_service::contract::IdError;
use vesta_service::lease::KvStore;
use vesta_service::options::{default_state_dir, lost_with_container};
use vesta_service::{IdMeta, LocalIdService, MachineSource};
use vesta_store::{Options, StoreUrl, open_with};

pyo3::create_exception!(vesta_id, VestaError, PyException, "A failed call.");

/// Most IDs of one call.
const MAX_COUNT: u64 = 1_048_576;

/// Forks that Python has announced and that are not over. Nothing is built meanwhile.
static FORKING: AtomicUsize = AtomicUsize::new(0);

fn error(message: impl ToString) -> PyErr {
    VestaError::new_err(message.to_string())
}

/// An error of a call: its sentence, and the seconds after which a retry makes sense.
struct Failed(String, Option<Duration>);

impl From<IdError> for Failed {
    fn from(error: IdError) -> Self {
        Self(error.to_string(), error.retry_after())
    }
}

impl Failed {
    fn raise(self, py: Python<'_>) -> PyErr {
        let raised = error(self.0);
        let seconds = self.1.map(|delay| delay.as_secs_f64());
        let set = raised.value(py).setattr("retry_after", seconds);
        set.err().unwrap_or(raised)
    }
}

/// Settings from which each process builds its own service.
struct Settings {
    machine: Option<u64>,
    store: Option<StoreUrl>,
    state_dir: PathBuf,
    layout: IdMeta,
    namespace: String,
    /// True if neither a machine ID nor a store was named.
    is_unnamed: bool,
}

/// A service, and its store if it has one.
struct Built {
    service: LocalIdService,
    store: Option<Arc<dyn KvStore>>,
}

impl Settings {
    fn build(&self) -> Result<Built, Failed> {
        let failed = |sentence: String| Failed(sentence, None);
        // Of several containers that name nothing, none sees the others' machine IDs.
        if let (true, Some(sign)) = (self.is_unnamed, lost_with_container(&self.state_dir)) {
            return Err(failed(format!(
                "the pool of machine IDs in {} is lost with this container ({sign}), and no other container sees \
                 it: set store= to one that all of them reach (a database, or vesta://HOST:50051; sqlite:FILE says \
                 that this container is the only one), or machine=, or put state_dir= on a volume",
                self.state_dir.display()
            )));
        }
        let options = Options {
            state_dir: Some(self.state_dir.clone()),
            ..Options::default()
        };
        let open = |url| open_with(url, &options);
        let store = self.store.as_ref().map(open).transpose();
        let store = store.map_err(|error| failed(error.to_string()))?;
        let machine = match (store.clone(), self.machine) {
            (Some(store), Some(id)) => MachineSource::Reserved { store, id },
            (Some(store), None) => MachineSource::Pool { store, range: None },
            (None, id) => MachineSource::Fixed(id.unwrap_or_default()),
        };
        let builder = LocalIdService::builder().machine(machine);
        let builder = builder.layout(self.layout).namespace(&*self.namespace);
        let service = builder.state_dir(&self.state_dir).build();
        let service = service.map_err(|error| failed(error.to_string()))?;
        Ok(Built { service, store })
    }

    /// SQLite keeps the locks of a process in its memory. The child of a fork would take its parent's for its own.
    fn is_file(&self) -> bool {
        self.store.as_ref().is_some_and(|url| url.file().is_some())
    }
}

type Service = Arc<OnceCell<Built>>;

struct Held {
    /// The process that the service is of.
    pid: u32,
    service: Service,
    /// Number of services that this one has replaced.
    generation: u64,
    is_closed: bool,
}

/// Waits for other threads, without the interpreter's lock.
fn pause() {
    #[allow(clippy::disallowed_methods, reason = "other threads end their calls")]
    std::thread::sleep(Duration::from_millis(1));
}

/// Closes a service once no other thread is inside, and waits until its store is closed.
fn end(service: Service) {
    if let Some(built) = service.get() {
        built.service.close();
    }
    while Arc::strong_count(&service) > 1 {
        pause();
    }
    let Some(Built { service, store }) = Arc::into_inner(service).and_then(OnceCell::into_inner)
    else {
        return;
    };
    drop(service);
    while store
        .as_ref()
        .is_some_and(|store| Arc::strong_count(store) > 1)
    {
        pause();
    }
}

#[pyclass(frozen, subclass)]
struct Core {
    settings: Settings,
    /// Locked only with the interpreter's lock held, as a fork does: so no child inherits it locked.
    held: Mutex<Held>,
}

impl Core {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The service of this process, which may not be built yet, and its generation.
    fn own(&self, py: Python<'_>) -> PyResult<(Service, u64)> {
        while FORKING.load(Ordering::Acquire) > 0 {
            py.detach(pause);
        }
        let mut held = self.held();
        if held.is_closed {
            return Err(error("it was closed; create another Vesta"));
        }
        if held.pid != process::id() {
            // Left behind: neither used nor dropped.
            mem::forget(mem::take(&mut held.service));
            held.pid = process::id();
            held.generation += 1;
        }
        Ok((held.service.clone(), held.generation))
    }

    /// Calls the service of this process without the interpreter's lock; again if a fork has ended it.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl Fn(&LocalIdService) -> Result<T, IdError> + Sync,
    ) -> PyResult<T> {
        let call = &call;
        loop {
            let (service, generation) = self.own(py)?;
            let done = py.detach(move || {
                let built = service.get_or_try_init(|| self.settings.build())?;
                Ok(call(&built.service)?)
            });
            let held = self.held();
            if done.is_ok() || held.is_closed || held.generation == generation {
                drop(held);
                return done.map_err(|failed: Failed| failed.raise(py));
            }
        }
    }

    /// Ends the service of this process, if it has one.
    fn end(&self, py: Python<'_>, closes: bool) {
        let mut held = self.held();
        held.is_closed |= closes;
        held.generation += 1;
        if held.pid != process::id() {
            return;
        }
        let service = mem::take(&mut held.service);
        drop(held);
        py.detach(|| end(service));
    }
}

#[pymethods]
impl Core {
    #[new]
    #[pyo3(signature = (*, machine=None, store=None, state_dir=None, layout="max-peak", namespace="default"))]
    fn new(
        machine: Option<u64>,
        store: Option<&str>,
        state_dir: Option<PathBuf>,
        layout: &str,
        namespace: &str,
    ) -> PyResult<Self> {
        let layout = layouts::named(layout).map_err(error)?;
        layout.check_generates().map_err(error)?;
        let state_dir = state_dir.unwrap_or_else(default_state_dir);
        let pool = || format!("sqlite:{}/vesta.db", state_dir.display());
        let is_unnamed = store.is_none() && machine.is_none();
        let store = match (store, machine) {
            (None, Some(_)) => None,
            (store, _) => Some(store.map_or_else(pool, str::to_owned)),
        };
        let store = store.map(|url| url.parse()).transpose().map_err(error)?;
        let settings = Settings {
            machine,
            store,
            state_dir,
            layout,
            namespace: namespace.to_owned(),
            is_unnamed,
        };
        let held = Mutex::new(Held {
            pid: process::id(),
            service: Service::default(),
            generation: 0,
            is_closed: false,
        });
        Ok(Self { settings, held })
    }

    fn next_id(&self, py: Python<'_>) -> PyResult<u64> {
        // Fast path. In the child of a fork the inherited service has none.
        if let Some(built) = self.held().service.get()
            && let Ok(id) = built.service.try_gen_id()
        {
            return Ok(id);
        }
        self.call(py, |service| service.gen_id())
    }

    fn next_ids(&self, py: Python<'_>, count: u64) -> PyResult<Vec<u64>> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(error(format!(
                "count must be 1 to {MAX_COUNT}, but is {count}"
            )));
        }
        self.call(py, |service| {
            let mut ids = vec![0; usize::try_from(count).unwrap_or_default()];
            service.gen_ids(&mut ids).map(|()| ids)
        })
    }

    /// ID, layout, milliseconds since 1970, time, seq, machine, genMethod, type, version.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn _explain(
        &self,
        id: u64,
    ) -> PyResult<(u64, &'static str, u64, u64, u64, u64, u64, u64, u64)> {
        let layout = self.settings.layout.explaining(id);
        let it = layout.unpack(id).map_err(error)?;
        let moment = layout.moment_of(it.time).map_err(error)?.0;
        let (upper, name) = ((it.gen_method, it.id_type, it.version), layout.name());
        Ok((
            id, name, moment, it.time, it.seq, it.machine, upper.0, upper.1, upper.2,
        ))
    }

    fn close(&self, py: Python<'_>) {
        self.end(py, true);
    }

    /// Before a fork: gives back a machine ID from a pool in SQLite, and closes the database.
    fn _before_fork(&self, py: Python<'_>) {
        if self.settings.is_file() {
            self.end(py, false);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let mut held = self.held();
        let service = mem::take(&mut held.service);
        if held.pid != process::id() {
            mem::forget(service);
        }
    }
}

#[pyfunction]
fn begin_fork() {
    FORKING.fetch_add(1, Ordering::AcqRel);
}

#[pyfunction]
fn end_fork(is_child: bool) {
    // Other threads that were forking are not in the child.
    let left = FORKING.load(Ordering::Acquire).saturating_sub(1);
    FORKING.store(if is_child { 0 } else { left }, Ordering::Release);
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Core>()?;
    module.add("VestaError", module.py().get_type::<VestaError>())?;
    module.add_function(wrap_pyfunction!(begin_fork, module)?)?;
    module.add_function(wrap_pyfunction!(end_fork, module)?)
}
