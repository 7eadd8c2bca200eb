//! `sql`: functions that take IDs apart in a database, and bounds for its indexes.

use vesta_boot::Error;
use vesta_intf::{Field, IdMeta, TimeUnit};

use crate::cli::{Dialect, SqlArgs};
use crate::output::print;
use crate::{Answer, Done};

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
    let sql = Sql { layout: &layout, base, dialect: args.dialect };
    print(&format!("-- {layout}, since {}\n{}", layout.spec().epoch, sql.functions()))?;
    Ok(Answer::Yes)
}

struct Sql<'a> {
    layout: &'a IdMeta,
    /// The ID of the fields above the time.
    base: u64,
    dialect: Dialect,
}

impl Sql<'_> {
    fn functions(&self) -> String {
        let field = |field| self.of_own(&self.field(field));
        let moment = self.of_own(&self.moment());
        [
            ("time", "id", moment, "the moment at which an ID was made, in UTC"),
            ("machine", "id", field(Field::Machine), "the machine ID that made it"),
            ("seq", "id", field(Field::Seq), "its number inside the tick"),
            ("lower", "at", self.bound(false), "the smallest ID of the tick of a moment"),
            ("upper", "at", self.bound(true), "the largest ID of the tick of a moment"),
        ]
        .map(|(name, parameter, body, about)| self.function(name, parameter, &body, about))
        .concat()
    }

    fn function(&self, name: &str, parameter: &str, body: &str, about: &str) -> String {
        let moment = match self.dialect {
            Dialect::Postgres => "timestamptz",
            Dialect::Mysql => "DATETIME(3)",
            Dialect::Sqlite => "text",
        };
        let returns = if name == "time" { moment } else { "bigint" };
        let takes = if parameter == "at" { moment } else { "bigint" };
        match self.dialect {
            Dialect::Postgres => format!(
                "\n-- {about}\nCREATE OR REPLACE FUNCTION vesta_{name}({parameter} {takes}) RETURNS {returns}\n\
                 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT {body} $$;\n"
            ),
            Dialect::Mysql => format!(
                "\n-- {about}\nDROP FUNCTION IF EXISTS vesta_{name};\n\
                 CREATE FUNCTION vesta_{name}({parameter} {takes}) RETURNS {returns} DETERMINISTIC NO SQL\n\
                 RETURN {body};\n"
            ),
            // It has no functions of its own: a statement with the parameter instead.
            Dialect::Sqlite => format!(
                "\n-- vesta_{name}: {about}\n\
                 WITH given({parameter}) AS (SELECT :{parameter}) SELECT {body} FROM given;\n"
            ),
        }
    }

    fn field(&self, field: Field) -> String {
        format!("(id >> {} & {})", self.layout.shift(field), self.layout.max(field))
    }

    /// A value for IDs of this layout, NULL for others.
    fn of_own(&self, value: &str) -> String {
        match (self.layout.is_vesta(), self.layout.total_bits()) {
            (true, _) => {
                let own = self.layout.id_type();
                format!("CASE WHEN {} = {own} THEN {value} END", self.field(Field::Type))
            }
            (false, 64) => value.to_owned(),
            (false, bits) => format!("CASE WHEN id >> {bits} = 0 THEN {value} END"),
        }
    }

    /// The moment at which an ID was made.
    fn moment(&self) -> String {
        let (unit, epoch) = (self.layout.spec().unit.millis(), self.layout.spec().epoch.0);
        let millis = format!("({} * {unit} + {epoch})", self.field(Field::Time));
        match self.dialect {
            Dialect::Postgres => {
                format!(
                    "timestamptz '1970-01-01 00:00:00+00' + {millis} * interval '1 millisecond'"
                )
            }
            Dialect::Mysql => format!("TIMESTAMPADD(MICROSECOND, {millis} * 1000, '1970-01-01')"),
            Dialect::Sqlite => format!(
                "strftime('%Y-%m-%dT%H:%M:%S', {millis} / 1000, 'unixepoch') || \
                 printf('.%03dZ', {millis} % 1000)"
            ),
        }
    }

    /// A bound of the tick of a moment; NULL outside the layout's time.
    fn bound(&self, upper: bool) -> String {
        let (unit, epoch) = (self.layout.spec().unit.millis(), self.layout.spec().epoch.0);
        let (millis, divided) = match self.dialect {
            Dialect::Postgres => ("floor(extract(epoch FROM at) * 1000)::bigint", "/"),
            Dialect::Mysql => ("(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) DIV 1000)", "DIV"),
            Dialect::Sqlite => {
                ("CAST(round((julianday(at) - 2440587.5) * 86400000) AS integer)", "/")
            }
        };
        let since = format!("({millis} - {epoch})");
        let (shift, last) = (self.layout.shift(Field::Time), self.layout.max(Field::Time));
        let low = if upper { (1u64 << shift) - 1 } else { 0 };
        let rest = (self.base | low).cast_signed();
        let id = format!("({since} {divided} {unit} << {shift} | {rest})");
        // MySQL's bits are unsigned.
        let is_mysql = self.dialect == Dialect::Mysql;
        let id = if is_mysql { format!("CAST({id} AS SIGNED)") } else { id };
        let end = last.saturating_add(1).saturating_mul(unit);
        format!("CASE WHEN {since} >= 0 AND {since} < {end} THEN {id} END")
    }
}
