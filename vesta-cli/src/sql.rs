//! `sql`: functions that take IDs apart in a database, and bounds for its indexes.

use vesta_boot::Error;
use vesta_intf::{Field, IdMeta, TimeUnit};

use crate::Done;
use crate::cli::{Dialect, SqlArgs};
use crate::output::print;

pub(crate) fn run(args: &SqlArgs) -> Done {
    let (layout, blank) = args.upper.blank();
    let name = layout.name();
    if !layout.spec().order.sorts_by_time() {
        return Error::refuse(format!(
            "{name} sorts by machine before time: its IDs have no bounds"
        ));
    }
    if layout.spec().unit == TimeUnit::TenMicros {
        return Error::refuse(format!("{name} has ticks that are shorter than a millisecond"));
    }
    let base = layout.pack(&blank).map_err(Error::setting)?;
    let functions = functions(&layout, base, args.dialect);
    print(&format!("-- {layout}, since {}\n{functions}", layout.spec().epoch))
}

/// The functions of a layout; `base` is the ID of the fields above the time.
fn functions(layout: &IdMeta, base: u64, dialect: Dialect) -> String {
    let (unit, epoch) = (layout.spec().unit.millis(), layout.spec().epoch.0);
    let field = |field| format!("(id >> {} & {})", layout.shift(field), layout.max(field));
    let made = format!("({} * {unit} + {epoch})", field(Field::Time));
    // The type of a moment, the one at which an ID was made, and the milliseconds of another.
    let (moment, made, millis) = match dialect {
        Dialect::Postgres => (
            "timestamptz",
            format!("timestamptz '1970-01-01 00:00:00+00' + {made} * interval '1 millisecond'"),
            "floor(extract(epoch FROM at) * 1000)::bigint",
        ),
        Dialect::Mysql => (
            "DATETIME(3)",
            format!("TIMESTAMPADD(MICROSECOND, {made} * 1000, '1970-01-01')"),
            "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) DIV 1000)",
        ),
        Dialect::Sqlite => (
            "text",
            format!(
                "strftime('%Y-%m-%dT%H:%M:%S', {made} / 1000, 'unixepoch') || \
                 printf('.%03dZ', {made} % 1000)"
            ),
            "CAST(round((julianday(at) - 2440587.5) * 86400000) AS integer)",
        ),
    };
    // A value for IDs of this layout, NULL for others.
    let of_own = |value: String| match (layout.is_vesta(), layout.total_bits()) {
        (true, _) => {
            let (id_type, own) = (field(Field::Type), layout.id_type());
            format!("CASE WHEN {id_type} = {own} THEN {value} END")
        }
        (false, 64) => value,
        (false, bits) => format!("CASE WHEN id >> {bits} = 0 THEN {value} END"),
    };
    // A bound of the tick of a moment; NULL outside the layout's time.
    let shift = layout.shift(Field::Time);
    let end = layout.max(Field::Time).saturating_add(1).saturating_mul(unit);
    let bound = |low: u64| {
        let (since, rest) = (format!("({millis} - {epoch})"), (base | low).cast_signed());
        let id = match dialect {
            // Its bits are unsigned.
            Dialect::Mysql => format!("CAST(({since} DIV {unit} << {shift} | {rest}) AS SIGNED)"),
            _ => format!("({since} / {unit} << {shift} | {rest})"),
        };
        format!("CASE WHEN {since} >= 0 AND {since} < {end} THEN {id} END")
    };
    let (machine, seq) = (of_own(field(Field::Machine)), of_own(field(Field::Seq)));
    let (lower, upper) = (bound(0), bound((1 << shift) - 1));
    let (id, at) = (("id", "bigint"), ("at", moment));
    [
        ("time", id, moment, of_own(made), "the moment at which an ID was made, in UTC"),
        ("machine", id, "bigint", machine, "the machine ID that made it"),
        ("seq", id, "bigint", seq, "its number inside the tick"),
        ("lower", at, "bigint", lower, "the smallest ID of the tick of a moment"),
        ("upper", at, "bigint", upper, "the largest ID of the tick of a moment"),
    ]
    .map(|(name, (given, takes), returns, body, about)| match dialect {
        Dialect::Postgres => format!(
            "\n-- {about}\nCREATE OR REPLACE FUNCTION vesta_{name}({given} {takes}) RETURNS {returns}\n\
             LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT {body} $$;\n"
        ),
        Dialect::Mysql => format!(
            "\n-- {about}\nDROP FUNCTION IF EXISTS vesta_{name};\n\
             CREATE FUNCTION vesta_{name}({given} {takes}) RETURNS {returns} DETERMINISTIC NO SQL\n\
             RETURN {body};\n"
        ),
        // It has no functions of its own: a statement with the parameter instead.
        Dialect::Sqlite => format!(
            "\n-- vesta_{name}: {about}\n\
             WITH given({given}) AS (SELECT :{given}) SELECT {body} FROM given;\n"
        ),
    })
    .concat()
}
