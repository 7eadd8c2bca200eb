//! `audit`: finds the process that made an ID.

use serde_json::{Value, json};
use vesta_boot::answers::in_utc;
use vesta_boot::commands::leases;
use vesta_boot::settings::Values;
use vesta_boot::{Config, Error};
use vesta_intf::{Field, GenMethod, plain};
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
    // The start time of a position's tick.
    let when = |position: u64| in_utc(layout.moment_at(position), &layout);
    // Whether the reservation came first is known to the tick.
    let is_older = |holder: &Record| {
        let reserved = layout.position_at(holder.claimed);
        reserved.is_ok_and(|reserved| position < reserved)
    };
    let (said, maker) = match &origin {
        None => {
            let (name, own) = (layout.name(), own.name());
            let said = format!(
                "no: its layout is {name}, and this namespace is for {own}; choose both with --layout and --namespace"
            );
            (said, None)
        }
        Some(Origin::Claim(claim)) => {
            let (claimed, until) = (in_utc(claim.claimed, &layout), when(claim.bound));
            let Record {
                epoch,
                pid,
                version,
                ..
            } = claim;
            let host = plain(&claim.host);
            let ended = if claim.owner == 0 {
                "released"
            } else {
                "reserved"
            };
            let said = format!(
                "only claim {epoch} can have made it: {host} (pid {pid}), vesta {version}, claimed {claimed}, \
                 {ended} up to {until}"
            );
            let json = json!({
                "claim": epoch, "host": claim.host, "pid": pid, "version": version,
                "claimed": claim.claimed.to_string(), "until": until,
            });
            let cells = [epoch.to_string(), host, pid.to_string()];
            (said, Some((json, cells)))
        }
        Some(Origin::Foreign(holder)) if is_older(holder) => {
            let (host, since) = (plain(&holder.host), in_utc(holder.claimed, &layout));
            let said =
                format!("unknown: machine {machine} was reserved for {host} only later, {since}");
            (said, None)
        }
        Some(Origin::Foreign(holder)) => {
            let (host, since) = (plain(&holder.host), in_utc(holder.claimed, &layout));
            let until = match holder.owner {
                Record::FOREIGN => String::new(),
                _ => format!(" until {}", when(holder.bound)),
            };
            let said = format!(
                "no process of Vesta: machine {machine} is reserved for {host} since {since}{until}"
            );
            let json = json!({ "host": holder.host, "reserved": holder.claimed.to_string() });
            (said, Some((json, [String::new(), host, String::new()])))
        }
        Some(Origin::NotReserved(last)) => {
            let bound = when(last.bound);
            let said = format!(
                "no: no process of this namespace has reserved IDs of machine {machine} from {bound} on"
            );
            (said, None)
        }
        Some(Origin::Skipped(next)) => {
            let (epoch, from) = (next.epoch, when(next.from));
            let said = format!(
                "no: it is below the start of claim {epoch} of machine {machine}, {from}, and above everything \
                 reserved before"
            );
            (said, None)
        }
        Some(Origin::NeverClaimed) => {
            let said = format!(
                "no: machine {machine} was never claimed in this namespace; a process with a fixed machine ID and no \
                 store leaves no record"
            );
            (said, None)
        }
        Some(Origin::Forgotten(first)) => {
            let (epoch, from) = (first.epoch, when(first.from));
            let said = format!(
                "unknown: the history of machine {machine} begins with claim {epoch}, {from}"
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
