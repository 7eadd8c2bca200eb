//! `sql`: functions or statements that decode or make IDs in a database, and conditions for its indexes.

mod gapless;
mod generate;

use std::ops::RangeInclusive;

use vesta_boot::Error;
use vesta_intf::{Field, Id, IdMeta};

use crate::Done;
use crate::cli::{Dialect, SqlArgs};
use crate::output::print;
use generate::Generate;

pub(crate) fn run(args: &SqlArgs) -> Done {
    if args.gapless {
        return print(&gapless::sql(args.dialect));
    }
    let layout = args.layout.layout;
    if let Some(machine) = args.machine {
        if args.dialect != Dialect::Postgres {
            return Error::refuse(
                "--generate needs --dialect postgres: the DEFAULT of a column cannot call such a function in MySQL or SQLite",
            );
        }
        let generate = Generate {
            layout,
            machine,
            version: args.id_version,
            gen_method: args.gen_method,
            schema: args.schema.as_deref().unwrap_or("public"),
            replace: args.replace,
        };
        return print(&generate.sql()?);
    }
    if layout.spec().unit.micros() < 1000 {
        let name = layout.name();
        return Error::refuse(format!("{name} has ticks shorter than a millisecond"));
    }
    let base = Id {
        version: args.id_version,
        ..layout.blank()
    };
    let base = layout
        .lower_bound(layout.spec().epoch, &base)
        .map_err(Error::setting)?;
    let functions = functions(&layout, base, args.dialect);
    print(&format!(
        "-- {layout}, since {}\n{functions}",
        layout.spec().epoch
    ))
}

/// The functions of a layout, or statements where an ordinary user cannot create functions; `base` is the ID
/// in which all fields but version and type are 0.
fn functions(layout: &IdMeta, base: u64, dialect: Dialect) -> String {
    let (unit, epoch) = (layout.spec().unit.millis(), layout.spec().epoch.0);
    let field = |field| format!("(id >> {} & {})", layout.shift(field), layout.max(field));
    let made = format!("({} * {unit} + {epoch})", field(Field::Time));
    let (notes, time, made, millis) = time_terms(dialect, &made);
    let is_own = match (layout.is_vesta(), layout.total_bits()) {
        (true, _) => format!("{} = {}", field(Field::Type), layout.id_type()),
        (false, 64) => "1 = 1".to_owned(),
        (false, bits) => format!("id >> {bits} = 0"),
    };
    let of_own = |value: String| format!("CASE WHEN {is_own} THEN {value} END");
    let parameter = |name, of| match dialect {
        Dialect::Postgres => format!("{name} {of}"),
        Dialect::Mysql => format!("@{name} AS {name}"),
        Dialect::Sqlite => format!(":{name} AS {name}"),
    };
    let (of_id, mut of_time) = (parameter("id", "bigint"), parameter("at", time));
    let (mut within, mut above, mut whose) = (String::new(), String::new(), "");
    if layout.bits(Field::GenMethod) > 0 {
        let (shift, max) = (layout.shift(Field::GenMethod), layout.max(Field::GenMethod));
        of_time += &format!(", {}", parameter("gen_method", "bigint"));
        within = format!(" AND gen_method BETWEEN 0 AND {max}");
        above = format!(" | (gen_method << {shift})");
        whose = " among the IDs of one genMethod: 0 embedded, 1 gRPC, 2 REST";
    }
    // A bound of the tick of a time; NULL outside the layout's time.
    let shift = layout.shift(Field::Time);
    let end = layout
        .max(Field::Time)
        .saturating_add(1)
        .saturating_mul(unit);
    let div = if dialect == Dialect::Mysql {
        "DIV"
    } else {
        "/"
    };
    let since = format!("({millis} - {epoch})");
    let bound = |low: u64| {
        let ticks = format!(
            "{since} {div} {unit} << {shift} | {}",
            (base | low).cast_signed()
        );
        format!("CASE WHEN {since} >= 0 AND {since} < {end}{within} THEN ({ticks}{above}) END")
    };
    let (machine, seq) = (of_own(field(Field::Machine)), of_own(field(Field::Seq)));
    let (lower, upper) = (bound(0), bound((1 << shift) - 1));
    let statements = [
        (
            "time",
            &of_id,
            time,
            of_own(made),
            "the time at which an ID was made",
            "",
        ),
        (
            "machine",
            &of_id,
            "bigint",
            machine,
            "the machine ID that made an ID",
            "",
        ),
        (
            "seq",
            &of_id,
            "bigint",
            seq,
            "the number of an ID inside its tick",
            "",
        ),
        (
            "lower",
            &of_time,
            "bigint",
            lower,
            "the smallest ID of the tick of a time",
            whose,
        ),
        (
            "upper",
            &of_time,
            "bigint",
            upper,
            "the largest ID of the tick of a time",
            whose,
        ),
    ]
    .map(|(name, takes, returns, body, about, whose)| {
        let name = format!("vesta_{}_{name}", layout.name().replace('-', "_"));
        let statement = match dialect {
            Dialect::Postgres => format!(
                "CREATE FUNCTION {name}({takes}) RETURNS {returns}\n\
                 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT {body} $$"
            ),
            _ => format!("SELECT {body} AS {name} FROM (SELECT {takes}) AS given"),
        };
        format!("\n-- {name}: {about}{whose}\n{statement};\n")
    });
    notes.to_owned() + &statements.concat()
}

/// Terms of a dialect: a note on times and IDs, the type of a time, `made` as a time, and the milliseconds
/// of the time `at`.
fn time_terms(dialect: Dialect, made: &str) -> (&str, &str, String, &str) {
    match dialect {
        Dialect::Postgres => (
            "-- Times are timestamptz; one without an offset is read in the session's TimeZone.\n\
             -- IDs are bigint: an ID from 2^63 on is stored as itself minus 2^64. From a numeric column take\n\
             -- (CASE WHEN id < 9223372036854775808 THEN id ELSE id - 18446744073709551616 END)::bigint\n",
            "timestamptz",
            format!("timestamptz '1970-01-01 00:00:00+00' + {made} * interval '1 millisecond'"),
            "floor(extract(epoch FROM at) * 1000)::bigint",
        ),
        Dialect::Mysql => (
            "-- Times are DATETIME in UTC, whatever the session's time_zone: UTC_TIMESTAMP(3), not NOW(), and no\n\
             -- offset in a text. Bounds are BIGINT UNSIGNED; in a signed column an ID from 2^63 on is negative:\n\
             -- CAST(… AS SIGNED).\n",
            "DATETIME(3)",
            format!("TIMESTAMPADD(MICROSECOND, {made} * 1000, '1970-01-01')"),
            "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) DIV 1000)",
        ),
        Dialect::Sqlite => (
            "-- Times are text; one without an offset is read in UTC. An ID from 2^63 on is stored as itself minus\n\
             -- 2^64.\n",
            "text",
            format!(
                "strftime('%Y-%m-%dT%H:%M:%S', {made} / 1000, 'unixepoch') || \
                 printf('.%03dZ', {made} % 1000)"
            ),
            "CAST(round((julianday(at) - 2440587.5) * 86400000) AS integer)",
        ),
    }
}

/// A condition that holds for the IDs in these ranges, in a signed or unsigned column: an ID from 2^63 on
/// is negative in a signed column.
pub(crate) fn condition(column: &str, ranges: &[RangeInclusive<u64>]) -> String {
    const SIGN: u64 = 1 << 63;
    let both = |range: &RangeInclusive<u64>| {
        let (lower, upper) = (*range.start(), *range.end());
        let signed = (
            lower.max(SIGN).cast_signed().into(),
            upper.cast_signed().into(),
        );
        [
            Some((lower.into(), upper.into())),
            (upper >= SIGN).then_some(signed),
        ]
    };
    let between = |(lower, upper): (i128, i128)| format!("{column} BETWEEN {lower} AND {upper}");
    let all: Vec<_> = ranges
        .iter()
        .flat_map(both)
        .flatten()
        .map(between)
        .collect();
    format!("({})\n", all.join("\n  OR "))
}
