//! `doctor`: checks everything that can be wrong on this host before a server starts.

use std::fmt::Display;
use std::process::Command;
use std::time::Duration;

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use vesta_boot::commands::leases;
use vesta_boot::settings::{Machine, Number, Values};
use vesta_boot::{Config, Error};
use vesta_service::clock::{ClockPair, SystemClock};
use vesta_service::lease::{Leases, Snapshot, Writer, check_local};
use vesta_store::StoreUrl;

use crate::http;
use crate::output::{Output, Table, grouped, print};
use crate::values::{day, now, relative};
use crate::{Answer, Done};

/// Findings, each with its subject.
struct Report {
    table: Table,
    has_failed: bool,
}

impl Report {
    fn note(&mut self, mark: &str, what: &str, said: impl Display) {
        self.has_failed |= mark == "fail";
        self.table
            .row([mark.into(), what.into(), said.to_string().into()]);
    }

    fn ok(&mut self, what: &str, said: impl Display) {
        self.note("ok", what, said);
    }

    fn warn(&mut self, what: &str, said: impl Display) {
        self.note("warn", what, said);
    }

    fn either(&mut self, fine: bool, what: &str, said: impl Display, doubt: impl Display) {
        match fine {
            true => self.ok(what, said),
            false => self.warn(what, doubt),
        }
    }

    fn fail(&mut self, what: &str, said: impl Display) {
        self.note("fail", what, said);
    }
}

pub(crate) fn run(settings: Result<Values, Error>, output: Output) -> Done {
    let table = Table::new(["result", "what", "said"]);
    let mut report = Report {
        table,
        has_failed: false,
    };
    match settings.and_then(|values| Config::check(&values)) {
        Err(error) => report.fail("settings", error),
        Ok(config) => {
            report.ok("settings", "they fit together");
            layout(&config, &mut report);
            synchronisation(&mut report);
            folder(&config, &mut report);
            container(&config, &mut report);
            store(&config, &mut report);
            others(&config, &mut report);
            ports(&config, &mut report);
            descriptors(&config, &mut report);
        }
    }
    let text = report.table.render(output);
    // Text for people needs no header line.
    print(match (output, text.split_once('\n')) {
        (Output::Text, Some((_, lines))) => lines,
        _ => &text,
    })?;
    Ok(if report.has_failed {
        Answer::No
    } else {
        Answer::Yes
    })
}

const TWO_YEARS: u64 = 2 * 365 * 86_400_000;

fn layout(config: &Config, report: &mut Report) {
    let (layout, now) = (&config.ids.layout, now());
    let (name, end) = (layout.name(), layout.end());
    if now < layout.spec().epoch {
        report.fail(
            "clock",
            format!("{now} is before the layout's epoch; set the clock"),
        );
    } else if now >= end {
        report.fail(
            "layout",
            format!("{name} ran out on {}; choose another one", day(end)),
        );
    } else {
        let said = format!("{name} runs out on {} ({})", day(end), relative(end, now));
        let doubt = format!("{said}; plan a new layout or epoch");
        report.either(end.0 - now.0 >= TWO_YEARS, "layout", said, doubt);
    }
}

fn synchronisation(report: &mut Report) {
    let asked = Command::new("timedatectl")
        .args(["show", "-p", "NTPSynchronized", "--value"])
        .output();
    match asked.ok().filter(|asked| asked.status.success()).as_ref().map(|asked| &*asked.stdout) {
        Some(b"yes\n") => report.ok("clock", "it is synchronised"),
        Some(_) => report.warn(
            "clock",
            "it is not synchronised: run chronyd or systemd-timesyncd; IDs never repeat because of it, but \
             show the wrong time",
        ),
        None => report.warn("clock", "cannot tell whether it is synchronised (no timedatectl)"),
    }
}

/// Free space that a state directory should have, in bytes.
const ROOM: u64 = 100 << 20;

fn folder(config: &Config, report: &mut Report) {
    let (folder, what) = (&config.state_dir, "state");
    let shown = folder.display();
    let urls = config.segments.store.iter().chain(&config.serials.store);
    let files = urls
        .chain(config.machine.store())
        .filter_map(StoreUrl::file);
    for said in files
        .chain([&**folder])
        .filter_map(|path| check_local(path, false).err())
    {
        report.note(
            if config.allow_network_fs {
                "warn"
            } else {
                "fail"
            },
            what,
            said,
        );
    }
    let Some(existing) = folder.ancestors().find(|path| path.is_dir()) else {
        return report.fail(what, format!("{shown} cannot be created"));
    };
    let probe = existing.join(format!(".vesta-doctor-{}", std::process::id()));
    if let Err(error) = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)) {
        return report.fail(
            what,
            format!("{} cannot be written: {error}", existing.display()),
        );
    }
    let free = statvfs(existing).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    match free < ROOM {
        true => report.warn(what, format!("{shown} has only {} MB left", free >> 20)),
        false if existing == folder => report.ok(what, format!("{shown} can be written")),
        false => report.ok(what, format!("{shown} will be created by the first start")),
    }
}

fn container(config: &Config, report: &mut Report) {
    if let Some(said) = vesta_boot::lost_state(config) {
        report.warn("state", said);
    }
}

fn store(config: &Config, report: &mut Report) {
    let what = "store";
    match (&config.machine, config.machine.store()) {
        (Machine::Disposable { .. }, _) => return, // with those of tags
        (Machine::Stateless(_), _) => {
            let said = "without any state IDs may repeat after a restart; name a store";
            return report.fail(what, said);
        }
        (_, None) => {
            return report.ok(what, "a state file keeps the bound of the fixed machine ID");
        }
        (_, Some(_)) => {}
    }
    let leases = match leases(config) {
        Ok(leases) => leases,
        Err(error) => return unfit(config, report, what, error),
    };
    let store = leases.store();
    let name = store.describe();
    let asked = leases
        .find()
        .and_then(|namespace| Ok((leases.doubt(namespace.as_ref())?, namespace)));
    let (doubt, namespace) = match asked {
        Err(error) => return report.fail(what, format!("{name}: {error}")),
        Ok(asked) => asked,
    };
    doubted(report, what, &name, doubt.as_ref().map(|doubt| &*doubt.why));
    if let Some(Writer {
        server,
        unseen: Some(grant),
    }) = store.writer()
    {
        report.warn(
            what,
            format!(
                "this user may not see whether server `{server}` replicates from another one, so starts after a \
                 fail-over are refused; run `{grant}`"
            ),
        );
    }
    match ClockPair::read(&SystemClock::new(), || store.now()) {
        Err(error) => report.fail(what, format!("{name}: {error}")),
        Ok(None) => {}
        Ok(Some(pair)) => {
            let apart = pair.apart().as_millis();
            let differs = format!("it differs from the store's by {apart} ms");
            let refused = if doubt.is_some() { APART } else { REFUSED };
            match apart {
                apart if apart > refused => report.fail("clock", format!("{differs}; set it")),
                apart if apart > APART => report.warn("clock", differs),
                _ => report.ok("clock", "it agrees with the store's within a second"),
            }
        }
    }
    let found = match namespace.map(|_| leases.snapshot()).transpose() {
        Ok(found) => found,
        Err(error) => return report.fail("pool", error),
    };
    if let Some(refusal) = leases.forgotten(&config.state_dir, &config.ids.layout, found.as_ref()) {
        report.fail("memory", refusal);
    }
    if config.store_doubt.unwrap_or(doubt.is_some()) {
        first_id(config, &leases, found.as_ref(), report);
    }
    pool(config, &leases, report);
}

/// How long the first ID takes on a store that may forget, and what makes it quicker.
fn first_id(config: &Config, leases: &Leases, found: Option<&Snapshot>, report: &mut Report) {
    let after = leases.first_id_after(found, config.store.doubtful_window, now());
    let (what, said) = (
        "first ID",
        format!("it comes {} s after a start", after.as_secs()),
    );
    let doubt = format!(
        "{said}: windows of processes that do not know that the store may forget have to end first; start one server \
         ahead of the others, or set machine.store_trust = \"durable\" if a fail-over loses nothing"
    );
    report.either(after <= SOON, what, said, doubt);
}

/// Time to a first ID that needs no word.
const SOON: Duration = Duration::from_secs(10);

/// Clock difference worth a warning, in milliseconds; refused by a store that may forget.
const APART: u128 = 1000;
/// Clock difference that every store refuses, in milliseconds.
const REFUSED: u128 = 60_000;

fn doubted(report: &mut Report, what: &str, name: &str, doubt: Option<&str>) {
    let doubts = format!(
        "{name} may forget: {}; see docs/inside/safety.md",
        doubt.unwrap_or_default()
    );
    let said = format!("{name} answers, and keeps what it acknowledges");
    report.either(doubt.is_none(), what, said, doubts);
}

/// Reports a store that a start refuses, unless the first start creates everything that it lacks.
fn unfit(config: &Config, report: &mut Report, what: &str, error: Error) {
    match error {
        Error::Setting(said) if config.store.auto_init && said.contains("auto_init is off") => {
            let said = said
                .split(", and auto_init is off")
                .next()
                .unwrap_or_default();
            report.warn(what, format!("{said}; the first start creates it"));
        }
        error => report.fail(what, error),
    }
}

/// Checks the stores of disposable machine IDs, of segment tags and of serials.
fn others(config: &Config, report: &mut Report) {
    for (what, answer) in vesta_boot::ask_stores(config) {
        match answer {
            Ok(doubt) => doubted(report, what, "its store", doubt.as_deref()),
            Err(error) => unfit(config, report, what, error),
        }
    }
}

fn pool(config: &Config, leases: &Leases, report: &mut Report) {
    let what = "pool";
    let snapshot = match leases.snapshot() {
        Ok(snapshot) => snapshot,
        Err(error) => return report.fail(what, error),
    };
    for lost in snapshot.lost() {
        let said =
            format!("the record of machine ID {lost} was deleted: vesta store repair {lost}");
        let is_own = matches!(&config.machine,
            Machine::Reserved { number: Number::Id(id), .. } if *id == lost);
        report.note(if is_own { "fail" } else { "warn" }, what, said);
    }
    let Machine::Pool { range, count, .. } = &config.machine else {
        return;
    };
    let range = range.clone().unwrap_or(config.ids.layout.machines());
    let all = range.end() - range.start() + 1;
    let taken = snapshot
        .records
        .range(range)
        .filter(|(_, record)| record.owner != 0)
        .count();
    let (free, wanted) = (all.saturating_sub(taken as u64), *count as u64);
    let said = format!("{} of {} machine IDs are free", grouped(free), grouped(all));
    // A server that is already running may own the others.
    if free < wanted {
        report.warn(
            what,
            format!("{said}, and {wanted} are wanted; widen machine.range"),
        );
    } else {
        let doubt = format!("{said}; widen machine.range");
        report.either(free >= all / 10, what, said, doubt);
    }
}

fn ports(config: &Config, report: &mut Report) {
    let admin = config.admin_listen.as_ref().map(|at| ("admin.listen", at));
    let public = [
        ("http.listen", &config.http_listen),
        ("grpc.listen", &config.grpc_listen),
    ];
    for (setting, at) in public.into_iter().chain(admin) {
        match at.check() {
            Ok(()) => report.ok("ports", format!("{setting} ({at}) is free")),
            Err(error) => report.warn(
                "ports",
                format!("{setting}{error}; or a server is already running"),
            ),
        }
    }
}

/// Asks the admin listener of these settings whether the server is ready.
pub(crate) fn healthcheck(settings: &Values) -> Done {
    let config = Config::check(settings)?;
    let Some(admin) = &config.admin_listen else {
        return Error::refuse("admin.listen is off, and with it /readyz");
    };
    let (status, text) = http::get_here(&admin.reachable(), config.admin_tls.is_some(), "/readyz")?;
    print(&text)?;
    Ok(if status == 200 {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn descriptors(config: &Config, report: &mut Report) {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let wanted = config.limits.max_connections;
    let said = format!("enough file descriptors for {wanted} connections");
    let doubt = format!(
        "{most} file descriptors are less than max_connections = {wanted}; raise LimitNOFILE"
    );
    report.either(
        most >= (wanted as u64).saturating_add(64),
        "limits",
        said,
        doubt,
    );
}
