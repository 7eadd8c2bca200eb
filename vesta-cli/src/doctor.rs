//! `doctor`: everything that can be wrong on this host before a server starts.

use std::fmt::Display;
use std::process::Command;

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use vesta_boot::commands::leases;
use vesta_boot::settings::{Machine, Values};
use vesta_boot::{Config, Error};
use vesta_service::{Leases, check_local};
use vesta_store::StoreUrl;

use crate::http;
use crate::output::{Output, Table, grouped, print};
use crate::values::{day, now, relative};
use crate::{Answer, Done};

/// Findings, each with what it is about.
struct Report {
    table: Table,
    has_failed: bool,
}

impl Report {
    fn note(&mut self, mark: &str, what: &str, said: impl Display) {
        self.has_failed |= mark == "fail";
        self.table.row([mark.to_owned(), what.to_owned(), said.to_string()]);
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
    let mut report = Report { table, has_failed: false };
    match settings.and_then(|values| Config::check(&values)) {
        Err(error) => report.fail("settings", error),
        Ok(config) => {
            report.ok("settings", "they fit together");
            layout(&config, &mut report);
            synchronisation(&mut report);
            folder(&config, &mut report);
            store(&config, &mut report);
            ports(&config, &mut report);
            descriptors(&config, &mut report);
        }
    }
    let text = report.table.render(output);
    // Words for people need no line of names.
    print(match (output, text.split_once('\n')) {
        (Output::Text, Some((_, lines))) => lines,
        _ => &text,
    })?;
    Ok(if report.has_failed { Answer::No } else { Answer::Yes })
}

const TWO_YEARS: u64 = 2 * 365 * 86_400_000;

fn layout(config: &Config, report: &mut Report) {
    let (layout, now) = (&config.ids.layout, now());
    let (name, end) = (layout.name(), layout.end());
    if now < layout.spec().epoch {
        report.fail("clock", format!("{now} is before the layout's epoch; set the clock"));
    } else if now >= end {
        report.fail("layout", format!("{name} ran out on {}; choose another one", day(end)));
    } else {
        let said = format!("{name} runs out on {} ({})", day(end), relative(end, now));
        let doubt = format!("{said}; plan a new layout or epoch");
        report.either(end.0 - now.0 >= TWO_YEARS, "layout", said, doubt);
    }
}

fn synchronisation(report: &mut Report) {
    let asked =
        Command::new("timedatectl").args(["show", "-p", "NTPSynchronized", "--value"]).output();
    match asked.ok().filter(|asked| asked.status.success()).as_ref().map(|asked| &*asked.stdout) {
        Some(b"yes\n") => report.ok("clock", "it is synchronised"),
        Some(_) => report.warn(
            "clock",
            "it is not synchronised: run chronyd or systemd-timesyncd; IDs never repeat because of it, but \
             show the wrong time",
        ),
        None => report.warn("clock", "nobody here knows whether it is synchronised (no timedatectl)"),
    }
}

/// Free space that a state folder should have, in bytes.
const ROOM: u64 = 100 << 20;

fn folder(config: &Config, report: &mut Report) {
    let (folder, what) = (&config.state_dir, "state");
    let shown = folder.display();
    let urls = config.segments.urls().into_iter().chain(&config.serials.store);
    let files = urls.chain(config.machine.store()).filter_map(StoreUrl::file);
    for said in files.chain([&**folder]).filter_map(|path| check_local(path, false).err()) {
        report.note(if config.allow_network_fs { "warn" } else { "fail" }, what, said);
    }
    let Some(existing) = folder.ancestors().find(|path| path.is_dir()) else {
        return report.fail(what, format!("{shown} cannot be made"));
    };
    let probe = existing.join(format!(".vesta-doctor-{}", std::process::id()));
    if let Err(error) = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)) {
        return report.fail(what, format!("{} cannot be written: {error}", existing.display()));
    }
    let free = statvfs(existing).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    match free < ROOM {
        true => report.warn(what, format!("{shown} has only {} MB left", free >> 20)),
        false if existing == folder => report.ok(what, format!("{shown} can be written")),
        false => report.ok(what, format!("{shown} will be made by the first start")),
    }
}

fn store(config: &Config, report: &mut Report) {
    let what = "store";
    let url = match (&config.machine, config.machine.store()) {
        (Machine::Disposable { .. }, _) => {
            return report.ok(what, "each start uses up a row of WORKER_NODE");
        }
        (Machine::Stateless(_), _) => {
            let said = "without any state IDs may repeat after a restart; name a store";
            return report.fail(what, said);
        }
        (_, None) => {
            return report.ok(what, "a state file keeps the bound of the fixed machine ID");
        }
        (_, Some(url)) => url.to_string(),
    };
    let leases = match leases(config) {
        Ok(leases) => leases,
        // Nobody has started here yet: a start makes the file.
        Err(Error::Setting(said)) if config.store.auto_init && url.starts_with("sqlite") => {
            return report.warn(what, said);
        }
        Err(error) => return report.fail(what, error),
    };
    let store = leases.store();
    let name = store.describe();
    match store.doubt() {
        Err(error) => return report.fail(what, format!("{name}: {error}")),
        Ok(Some(doubt)) => {
            report.warn(what, format!("{name} may forget: {}; see docs/SAFETY.md", doubt.why))
        }
        Ok(None) => report.ok(what, format!("{name} answers, and keeps what it acknowledges")),
    }
    match store.now() {
        Err(error) => report.fail(what, format!("{name}: {error}")),
        Ok(None) => {}
        Ok(Some(theirs)) => {
            let apart = now().0.abs_diff(theirs.0);
            let doubt = format!("it differs from the store's by {apart} ms");
            let said = "it agrees with the store's within a second";
            report.either(apart <= APART, "clock", said, doubt);
        }
    }
    pool(config, &leases, report);
}

/// Clocks that are further apart than this need somebody to look, in milliseconds.
const APART: u64 = 1000;

fn pool(config: &Config, leases: &Leases, report: &mut Report) {
    let Machine::Pool { range, count, .. } = &config.machine else { return };
    let what = "pool";
    let snapshot = match leases.snapshot() {
        Ok(snapshot) => snapshot,
        Err(error) => return report.fail(what, error),
    };
    let range = range.clone().unwrap_or(config.ids.layout.machines());
    let all = range.end() - range.start() + 1;
    let taken = snapshot.records.range(range).filter(|(_, record)| record.owner != 0).count();
    let (free, wanted) = (all.saturating_sub(taken as u64), *count as u64);
    let said = format!("{} of {} machine IDs are free", grouped(free), grouped(all));
    if free < wanted {
        report.warn(what, format!("{said}, and {wanted} are wanted; widen machine.range"));
    } else {
        let doubt = format!("{said}; widen machine.range");
        report.either(free >= all / 10, what, said, doubt);
    }
    for lost in snapshot.lost() {
        let said =
            format!("the record of machine ID {lost} was deleted: vesta store repair {lost}");
        report.warn(what, said);
    }
}

fn ports(config: &Config, report: &mut Report) {
    let admin = config.admin_listen.as_ref().map(|at| ("admin.listen", at));
    let grpc = config.grpc_listen.as_ref().map(|at| ("grpc.listen", at));
    for (setting, at) in [("listen", &config.listen)].into_iter().chain(grpc).chain(admin) {
        match at.check() {
            Ok(()) => report.ok("ports", format!("{setting} ({at}) is free")),
            Err(error) => {
                report.warn("ports", format!("{setting}{error}; or a server runs already"))
            }
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
    Ok(if status == 200 { Answer::Yes } else { Answer::No })
}

fn descriptors(config: &Config, report: &mut Report) {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let wanted = config.limits.max_connections;
    let said = format!("enough file descriptors for {wanted} connections");
    let doubt = format!(
        "{most} file descriptors are less than max_connections = {wanted}; raise LimitNOFILE"
    );
    report.either(most >= (wanted as u64).saturating_add(64), "limits", said, doubt);
}
