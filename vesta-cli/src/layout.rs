//! `layout`: lists, shows, checks and designs layouts.

use vesta_boot::settings::{layout_table, read_layout};
use vesta_boot::{Error, period};
use vesta_intf::{Field, IdMeta, UnixMillis};

use crate::cli::LayoutCommand;
use crate::output::{Cell, Output, Table, facts, grouped, print, record, say};
use crate::values::{day, now, relative};
use crate::{Answer, Done};

pub(crate) fn run(command: LayoutCommand, output: Output) -> Done {
    match command {
        LayoutCommand::List => list(output),
        LayoutCommand::Show { layout } => show(&layout, output),
        LayoutCommand::Check { file } => {
            let layout = read_layout(&file)?;
            layout.check_generates().map_err(Error::setting)?;
            show(&layout, output)
        }
        LayoutCommand::Design {
            years,
            machines,
            per_second,
            epoch,
            toml,
        } => {
            let epoch = epoch.unwrap_or_else(this_year);
            let spec =
                IdMeta::design(years, machines, per_second, epoch).map_err(Error::setting)?;
            let layout = IdMeta::new(spec).map_err(Error::setting)?;
            match toml {
                true => print(&format!("{}# {}\n", layout_table(spec), sharding(&layout))),
                false => show(&layout, output),
            }
        }
    }
}

fn this_year() -> UnixMillis {
    period(&day(now())[..4]).map_or(now(), |year| *year.start())
}

fn list(output: Output) -> Done {
    let mut table = Table::new(["name", "bits", "unit", "ends", "about"]);
    for layout in IdMeta::all_known() {
        let fields = layout
            .fields()
            .into_iter()
            .filter(|field| layout.bits(*field) > 0);
        let bits = fields.map(|field| format!("{} {}", field.name(), layout.bits(field)));
        let bits = bits.collect::<Vec<_>>().join(" + ");
        let unit = layout.spec().unit.to_string();
        let name = layout.name().to_owned();
        table.row(
            [
                name,
                bits,
                unit,
                day(layout.end()),
                layout.about().to_owned(),
            ]
            .map(Cell::from),
        );
    }
    print(&table.render(output))
}

/// Spread of the IDs of one machine ID under `id % n`.
fn sharding(layout: &IdMeta) -> String {
    match layout.same_low_bits() {
        0 => {
            "id % n spreads the IDs of a machine ID as far as their sequence numbers do".to_owned()
        }
        bits => format!(
            "id % 2^k is the same for all IDs of a machine ID up to k = {bits}: use a hash or an odd n"
        ),
    }
}

/// The width of numbers that JavaScript holds exactly.
const JS_BITS: u8 = 53;

fn show(layout: &IdMeta, output: Output) -> Done {
    let spec = layout.spec();
    let capacity = layout.capacity_per_second();
    let machines = layout.max(Field::Machine).saturating_add(1);
    let total = layout.total_bits();
    let generates = layout.check_generates();
    let generates = generates.map_or_else(|error| format!("no: {error}"), |()| "yes".into());
    let rows = [
        ("layout", layout.to_string(), layout.name().into()),
        ("bits", total.to_string(), u64::from(total).into()),
        (
            "begins",
            spec.epoch.to_string(),
            spec.epoch.to_string().into(),
        ),
        (
            "ends",
            format!("{} ({})", layout.end(), relative(layout.end(), now())),
            layout.end().to_string().into(),
        ),
        ("machine IDs", grouped(machines), machines.into()),
        (
            "capacity/s",
            format!("{} IDs of each machine ID", grouped(capacity)),
            capacity.into(),
        ),
        (
            "same low bits",
            sharding(layout),
            u64::from(layout.same_low_bits()).into(),
        ),
        ("makes IDs", generates.clone(), generates.into()),
    ];
    let text = facts(&rows.each_ref().map(|(name, text, _)| (*name, text.clone())));
    record(
        output,
        text,
        rows.each_ref().map(|row| row.0),
        rows.map(|row| row.2),
    )?;
    if total == 64 && spec.version_bits == 0 {
        say("its IDs need 64 bits: as signed numbers some of them are negative");
    } else if total > JS_BITS {
        say("JavaScript numbers are exact up to 53 bits: give these IDs as text there");
    }
    Ok(Answer::Yes)
}
