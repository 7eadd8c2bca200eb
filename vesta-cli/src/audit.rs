//! `audit`: finds the process that made an ID.

use serde_json::json;
use vesta_boot::answers::in_utc;
use vesta_boot::commands::leases;
use vesta_boot::settings::Values;
use vesta_boot::{Config, Error};
use vesta_intf::plain;
use vesta_service::lease::{Origin, Record, StoreError};

use crate::Done;
use crate::output::{Output, answer, csv_line};
use crate::values::id_of;

pub(crate) fn audit_id(text: &str, settings: &Values, output: Output) -> Done {
    let raw = id_of(text)?;
    let config = Config::check(settings)?;
    let layout = config.ids.layout;
    let leases = leases(&config)?;
    let (namespace, store) = (leases.name(), leases.store().describe());
    let failed =
        |error: StoreError| Error::lasting(error.is_permanent(), format!("{store}: {error}"));
    let id = layout.unpack(raw).map_err(Error::setting)?;
    let machine = id.machine;
    let position = layout.position_of(&id);
    let origin = match layout.is_vesta() && id.id_type != layout.id_type() {
        true => None,
        false => Some(Origin::of(
            &leases.claims(machine).map_err(failed)?,
            position,
        )),
    };
    // The start time of a position's tick.
    let when = |position: u64| in_utc(layout.moment_at(position), &layout);
    let claim = if let Some(Origin::Claim(claim)) = &origin {
        Some(claim)
    } else {
        None
    };
    let said = match &origin {
        None => format!("no: its layout is not {}", layout.name()),
        Some(Origin::Claim(claim)) => {
            let Record {
                epoch,
                pid,
                version,
                ..
            } = claim;
            let (host, claimed) = (plain(&claim.host), in_utc(claim.claimed, &layout));
            let ended = if claim.owner == 0 {
                "released"
            } else {
                "reserved"
            };
            format!(
                "only claim {epoch} can have made it: {host} (pid {pid}), vesta {version}, claimed {claimed}, \
                 {ended} up to {}",
                when(claim.bound)
            )
        }
        Some(Origin::NotReserved(last)) => format!(
            "no: no process of this namespace has reserved IDs of machine {machine} from {} on",
            when(last.bound)
        ),
        Some(Origin::Skipped(next)) => format!(
            "no: it is below the start of claim {} of machine {machine}, {}, and above everything reserved \
             before",
            next.epoch,
            when(next.from)
        ),
        Some(Origin::NeverClaimed) => {
            format!("no: machine {machine} was never claimed in this namespace")
        }
        Some(Origin::Forgotten(first)) => format!(
            "unknown: the history of machine {machine} begins with claim {}, {}",
            first.epoch,
            when(first.from)
        ),
    };
    let made = layout
        .moment_of(id.time)
        .map_or(String::new(), |at| in_utc(at, &layout));
    let text =
        format!("{raw}  machine {machine}  {made}\n  namespace {namespace} of {store}\n  {said}\n");
    let as_json = claim.map(|claim| {
        json!({
            "claim": claim.epoch, "host": claim.host, "pid": claim.pid, "version": claim.version,
            "claimed": claim.claimed.to_string(), "until": when(claim.bound),
        })
    });
    let json = json!({
        "id": raw.to_string(), "machine": machine, "moment": made, "namespace": namespace,
        "store": store, "by": as_json, "answer": said,
    });
    let cells = |claim: &Record| {
        [
            claim.epoch.to_string(),
            plain(&claim.host),
            claim.pid.to_string(),
        ]
    };
    let [number, host, pid] = claim.map(cells).unwrap_or_default();
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
    answer(output, claim.is_some(), &text, &json, &csv)
}
