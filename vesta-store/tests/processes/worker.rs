//! Program of the processes: this test program starts itself, makes IDs and reports them. Every
//! reported ID is one that a caller received.

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use vesta_service::lease::Timing;
use vesta_service::{ErrorKind, IdError, IdMeta, LocalIdService, MachineSource};
use vesta_store::Options;
use vesta_testkit::fleet::{Event, Process, child};

pub(crate) const LAYOUT: IdMeta = IdMeta::MIN_GRANULARITY;

/// Task of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) namespace: String,
    pub(crate) state_dir: PathBuf,
    pub(crate) range: Option<RangeInclusive<u64>>,
    /// The store's own timing, if `None`.
    pub(crate) timing: Option<Timing>,
    /// Claims a machine ID only when a line is read.
    pub(crate) waits: bool,
    /// Waits for its store, however long.
    pub(crate) patient: bool,
    /// Makes IDs as fast as they are read.
    pub(crate) greedy: bool,
    /// Logs everything to stderr.
    pub(crate) traces: bool,
}

/// The first line of a tracing worker.
pub(crate) const TRACING: &str = "everything is logged from here on";

/// IDs per batch, if not greedy.
const BATCH: usize = 200;
const PACE: Duration = Duration::from_millis(5);

impl Task {
    fn words(&self) -> [String; 9] {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let timing = |t: Timing| [t.window, t.renew_every, t.request_timeout, t.takeover_grace];
        let timing = self.timing.map(|it| timing(it).map(millis).join(" "));
        let range = self.range.as_ref();
        [
            self.url.clone(),
            self.namespace.clone(),
            self.state_dir.display().to_string(),
            range.map_or(String::new(), |it| format!("{} {}", it.start(), it.end())),
            timing.unwrap_or_default(),
            self.waits.to_string(),
            self.patient.to_string(),
            self.greedy.to_string(),
            self.traces.to_string(),
        ]
    }

    fn of([url, namespace, state_dir, range, timing, flags @ ..]: [String; 9]) -> Self {
        let numbers = |text: &str| -> Vec<u64> {
            let numbers = text.split_whitespace().map(str::parse);
            numbers.collect::<Result<_, _>>().expect("numbers")
        };
        let [waits, patient, greedy, traces] = flags.map(|flag| flag == "true");
        let millis = Duration::from_millis;
        Self {
            url,
            namespace,
            state_dir: state_dir.into(),
            range: match numbers(&range)[..] {
                [first, last] => Some(first..=last),
                _ => None,
            },
            timing: match numbers(&timing)[..] {
                [window, renew_every, request_timeout, takeover_grace] => Some(Timing {
                    window: millis(window),
                    renew_every: millis(renew_every),
                    request_timeout: millis(request_timeout),
                    takeover_grace: millis(takeover_grace),
                }),
                _ => None,
            },
            waits,
            patient,
            greedy,
            traces,
        }
    }

    fn build(&self) -> Result<LocalIdService, String> {
        let request_timeout = self.timing.map(|timing| timing.request_timeout);
        let options = Options {
            request_timeout,
            ..Options::default()
        };
        let store = self
            .url
            .parse()
            .and_then(|url| vesta_store::open_with(&url, &options))
            .map_err(in_full)?;
        if self.traces {
            eprintln!("{} {store:?} {store:#?}", store.describe());
        }
        let builder = LocalIdService::builder()
            .layout(LAYOUT)
            .namespace(&self.namespace)
            .state_dir(&self.state_dir)
            .wait_for_store(self.patient)
            .machine(MachineSource::Pool {
                store,
                range: self.range.clone(),
            });
        let builder = match self.timing {
            Some(timing) => builder.timing(timing),
            None => builder,
        };
        builder.build().map_err(in_full)
    }
}

/// An error with its causes, in display and debug form.
fn in_full(error: impl std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(" {source} {source:?}");
        next = source.source();
    }
    text.replace('\n', " ")
}

/// Starts a process for a task.
pub(crate) fn launch(task: &Task) -> Process {
    let mut command = child::command("worker::worker", &task.words());
    if task.traces {
        command.stderr(Stdio::piped());
    }
    Process::start(&mut command)
}

#[test]
#[ignore = "what runs in the processes of the other tests"]
fn worker() {
    let Some(task) = child::task().map(Task::of) else {
        return;
    };
    if task.traces {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .init();
        tracing::trace!("{TRACING}");
    }
    // If the starting process is gone, errors do not matter.
    let _ = work(&task, &child::commands(), &mut std::io::stdout().lock());
}

fn work(task: &Task, commands: &Receiver<()>, out: &mut impl Write) -> std::io::Result<()> {
    Event::Started.say(out)?;
    if task.waits && commands.recv().is_err() {
        return Ok(());
    }
    let service = match task.build() {
        Ok(service) => service,
        Err(reason) => return Event::Refused(reason).say(out),
    };
    if task.traces {
        writeln!(out, "debug {:?} {:?}", service, service.status())?;
    }
    let mut machine = None;
    let mut held = None;
    let mut batch = vec![0; 1]; // the first one alone
    loop {
        if machine != Some(service.machine()) {
            machine = Some(service.machine());
            Event::Machine(service.machine()).say(out)?;
        }
        let made = service.try_gen_ids(&mut batch);
        match &made {
            Ok(count) => {
                held = None;
                Event::Ids(batch[..*count].to_vec()).say(out)?;
            }
            Err(error) => report(error, &mut held, out)?,
        }
        batch.resize(BATCH, 0);
        let pace = if task.greedy && made.is_ok() {
            Duration::ZERO
        } else {
            PACE
        };
        if commands.recv_timeout(pace) == Err(RecvTimeoutError::Disconnected) {
            service.close();
            return Event::Closed.say(out);
        }
    }
}

/// Reports a refusal, except for the end of a tick and repetitions of the same reason.
fn report(
    error: &IdError,
    held: &mut Option<ErrorKind>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let kind = error.kind();
    if kind == ErrorKind::SequenceUsedUp || held.replace(kind) == Some(kind) {
        return Ok(());
    }
    Event::Held(format!("{} {error}", kind.name())).say(out)
}
