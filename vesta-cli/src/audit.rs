//! `audit`: finds the process that made an ID.

use serde_json::{Value, json};
use vesta_boot::answers::in_utc;
use vesta_boot::commands::leases;
use vesta_boot::settings::Values;
use vesta_boot::{Config, Error};
use vesta_intf::{Field, GenMethod, IdMeta, plain};
use vesta_service::lease::{Origin, Record, StoreError};

use crate::Done;
use crate::output::{Output, answer, csv_line};
use crate::values::id_of;

pub(crate) fn audit_id(text: &str, settings: &Values, output: Output) -> Done {
    let raw = id_of(text)?;
    let config = Config::check(settings)?;
    let own = config.ids.layout;
    let layout = own.explaining(raw);
    let leases = leases(&config)?;
    let (namespace, store) = (leases.name(), leases.store().describe());
    let failed =
        |error: StoreError| Error::lasting(error.is_permanent(), format!("{store}: {error}"));
    let id = layout.unpack(raw).map_err(Error::setting)?;
    let machine = id.machine;
    let position = layout.position_of(&id);
    let origin = match layout.id_type() == own.id_type() {
        false => None,
        true => Some(Origin::of(
            &leases.claims(machine).map_err(failed)?,
            position,
        )),
    };
    let (said, maker) = match &origin {
        Some(origin) => verdict(origin, machine, position, &layout),
        None => {
            let (name, own) = (layout.name(), own.name());
            let said = format!(
                "no: its layout is {name}, and this namespace is for {own}; choose both with --layout and --namespace"
            );
            (said, None)
        }
    };
    let method = GenMethod::from_value(id.gen_method).filter(|_| layout.bits(Field::GenMethod) > 0);
    let is_reserved = matches!(origin, Some(Origin::Foreign(_)));
    let said = match method {
        Some(GenMethod::Database) if origin.is_some() && !is_reserved => format!(
            "{said}; genMethod 3 is of a database (vesta sql --generate --machine {machine}), unless a process sets \
             gen_method"
        ),
        _ => said,
    };
    let made = layout
        .moment_of(id.time)
        .map_or(String::new(), |at| in_utc(at, &layout));
    let method = method.map_or(String::new(), |it| format!("  {}", it.name()));
    let text = format!(
        "{raw}  machine {machine}  {made}{method}\n  namespace {namespace} of {store}\n  {said}\n"
    );
    let (by, [number, host, pid]) = maker.unwrap_or_default();
    let json = json!({
        "id": raw.to_string(), "machine": machine, "moment": made, "namespace": namespace,
        "store": store, "by": by, "answer": said,
    });
    let is_known = by != Value::Null;
    let csv = csv_line(&[
        raw.to_string(),
        machine.to_string(),
        made,
        number,
        host,
        pid,
        said,
    ]);
    let csv = format!("id,machine,moment,claim,host,pid,answer\n{csv}");
    answer(output, is_known, &text, &json, &csv)
}

/// The maker of an ID: a sentence, and if it is known, its JSON and its cells.
type Verdict = (String, Option<(Value, [String; 3])>);

fn verdict(origin: &Origin, machine: u64, position: u64, layout: &IdMeta) -> Verdict {
    // The start time of a position's tick.
    let when = |position: u64| in_utc(layout.moment_at(position), layout);
    let said = match origin {
        Origin::Claim(claim) => return claimed(claim, &when(claim.bound), layout),
        Origin::Foreign(holder) => {
            let until = match holder.owner {
                Record::FOREIGN => String::new(),
                _ => format!(" until {}", when(holder.bound)),
            };
            return reserved(holder, &until, machine, position, layout);
        }
        Origin::NotReserved(last) => format!(
            "no: no process of this namespace has reserved IDs of machine {machine} from {} on",
            when(last.bound)
        ),
        Origin::Skipped(next) => format!(
            "no: it is below the start of claim {} of machine {machine}, {}, and above everything reserved before",
            next.epoch,
            when(next.from)
        ),
        Origin::NeverClaimed => format!(
            "no: machine {machine} was never claimed in this namespace; a process with a fixed machine ID and no store \
             leaves no record"
        ),
        Origin::Forgotten(first) => format!(
            "unknown: the history of machine {machine} begins with claim {}, {}",
            first.epoch,
            when(first.from)
        ),
    };
    (said, None)
}

fn claimed(claim: &Record, until: &str, layout: &IdMeta) -> Verdict {
    let Record {
        epoch,
        pid,
        version,
        ..
    } = claim;
    let (host, claimed) = (plain(&claim.host), in_utc(claim.claimed, layout));
    let ended = if claim.owner == 0 {
        "released"
    } else {
        "reserved"
    };
    let said = format!(
        "only claim {epoch} can have made it: {host} (pid {pid}), vesta {version}, claimed {claimed}, {ended} up to {until}"
    );
    let json = json!({
        "claim": epoch, "host": claim.host, "pid": pid, "version": version,
        "claimed": claim.claimed.to_string(), "until": until,
    });
    (
        said,
        Some((json, [epoch.to_string(), host, pid.to_string()])),
    )
}

fn reserved(holder: &Record, until: &str, machine: u64, position: u64, layout: &IdMeta) -> Verdict {
    let (host, since) = (plain(&holder.host), in_utc(holder.claimed, layout));
    // Whether the reservation came first is known to the tick.
    let at = layout.position_at(holder.claimed);
    if at.is_ok_and(|at| position < at) {
        let said =
            format!("unknown: machine {machine} was reserved for {host} only later, {since}");
        return (said, None);
    }
    let said = format!(
        "no process of Vesta: machine {machine} is reserved for {host} since {since}{until}"
    );
    let json = json!({ "host": holder.host, "reserved": holder.claimed.to_string() });
    (said, Some((json, [String::new(), host, String::new()])))
}
