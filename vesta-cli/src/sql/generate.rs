//! `sql --generate`: a function with which PostgreSQL makes IDs itself.

use vesta_boot::Error;
use vesta_intf::{Field, GenMethod, Id, IdMeta};

/// Function of one machine ID of a layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Generate<'a> {
    pub(super) layout: IdMeta,
    pub(super) machine: u64,
    pub(super) version: u64,
    /// `None`: 3, which no server and no library uses, or 0 in a layout without the field.
    pub(super) gen_method: Option<u64>,
    pub(super) schema: &'a str,
}

impl Generate<'_> {
    /// The statements that install it.
    pub(super) fn sql(self) -> Result<String, Error> {
        let Self {
            layout,
            machine,
            schema,
            ..
        } = self;
        layout.check_generates().map_err(Error::setting)?;
        let reserved = GenMethod::Reserved
            .value()
            .min(layout.max(Field::GenMethod));
        let method = self.gen_method.unwrap_or(reserved);
        let zero = Id {
            version: self.version,
            gen_method: method,
            machine,
            ..layout.blank()
        };
        let base = layout.pack(&zero).map_err(Error::setting)?;
        let seq_bits = layout.bits(Field::Seq);
        let (last_tick, last_seq) = (layout.max(Field::Time), layout.max(Field::Seq));
        let last = last_tick << seq_bits | last_seq;
        if layout.id_at(base, last) > i64::MAX.cast_unsigned() {
            return Error::refuse(format!(
                "IDs of {} with version {} reach 2^63 and do not fit a bigint of PostgreSQL, which is signed; \
                 choose version 0, or a layout of at most 63 bits",
                layout.name(),
                self.version,
            ));
        }
        let (name, epoch, end) = (layout.name(), layout.spec().epoch, layout.end());
        let (since, unit) = (epoch.0, layout.spec().unit.millis());
        let (time_shift, seq_shift) = (layout.shift(Field::Time), layout.shift(Field::Seq));
        let minute = (60_000 / unit) << seq_bits;
        Ok(format!(
            "-- {layout}, since {epoch}: machine ID {machine}, genMethod {method}\n\
             -- No process may use this machine ID. Reserve it in the pool, with the settings of the servers:\n\
             --   vesta store reserve {machine} --for \"PostgreSQL of the shop\"\n\
             -- For PostgreSQL 11 or later. Callers need EXECUTE on {schema}.vesta_id(), which everyone has by default: it\n\
             -- runs with the rights of its owner. docs/use/postgres.md has the reasons and what a restore needs.\n\
             BEGIN;\n\
             -- Position of an ID (tick << {seq_bits} | seq) = vesta_base + vesta_count. Both only grow.\n\
             CREATE SEQUENCE {schema}.vesta_count;\n\
             CREATE SEQUENCE {schema}.vesta_base MINVALUE 0 START 0;\n\
             CREATE OR REPLACE FUNCTION {schema}.vesta_id() RETURNS bigint\n\
             LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER\n\
             SET search_path = pg_catalog, pg_temp AS $$\n\
             DECLARE\n\
             \x20 tick bigint := floor((floor(extract(epoch FROM clock_timestamp()) * 1000) - {since}) / {unit});\n\
             \x20 base bigint; n bigint; p bigint;\n\
             BEGIN\n\
             \x20 IF tick NOT BETWEEN 0 AND {last_tick} THEN\n\
             \x20   RAISE EXCEPTION 'vesta_id: the clock shows %, but the layout {name} is for {epoch} to {end}',\n\
             \x20     clock_timestamp() USING HINT = 'set the clock, or choose another layout';\n\
             \x20 END IF;\n\
             \x20 LOOP\n\
             \x20   base := (SELECT last_value FROM {schema}.vesta_base);\n\
             \x20   n := nextval('{schema}.vesta_count');\n\
             \x20   p := base + n;\n\
             \x20   -- If the base was raised meanwhile, the number is left out: with the old base it could repeat.\n\
             \x20   CONTINUE WHEN base <> (SELECT last_value FROM {schema}.vesta_base);\n\
             \x20   EXIT WHEN p >= tick << {seq_bits};\n\
             \x20   -- One session at a time raises the base to the clock. Rolling this block back keeps sequences as they\n\
             \x20   -- are and gives up the lock, which otherwise lasts to the end of the caller's transaction.\n\
             \x20   BEGIN\n\
             \x20     PERFORM pg_advisory_xact_lock(hashtextextended('{schema}.vesta_id', 0));\n\
             \x20     base := (SELECT last_value FROM {schema}.vesta_base);\n\
             \x20     n := (SELECT last_value FROM {schema}.vesta_count) + 1;\n\
             \x20     IF base + n < tick << {seq_bits} THEN\n\
             \x20       PERFORM setval('{schema}.vesta_base', (tick << {seq_bits}) - n);\n\
             \x20     END IF;\n\
             \x20     RAISE EXCEPTION USING ERRCODE = 'VESTA';\n\
             \x20   EXCEPTION WHEN SQLSTATE 'VESTA' THEN NULL;\n\
             \x20   END;\n\
             \x20 END LOOP;\n\
             \x20 IF p > {last} THEN\n\
             \x20   RAISE EXCEPTION 'vesta_id: the layout {name} has no IDs left'\n\
             \x20     USING HINT = 'choose another machine ID or another layout';\n\
             \x20 END IF;\n\
             \x20 -- Without a record of its own, a transaction that only reads would not wait for the disk.\n\
             \x20 PERFORM pg_logical_emit_message(true, 'vesta', '');\n\
             \x20 RETURN {base} | ((p >> {seq_bits}) << {time_shift}) | ((p & {last_seq}) << {seq_shift});\n\
             END $$;\n\
             COMMIT;\n\
             -- After a restore or the promotion of an asynchronous replica, before clients connect (a minute ahead):\n\
             -- SELECT {schema}.vesta_id();\n\
             -- SELECT setval('{schema}.vesta_base', last_value + {minute}) FROM {schema}.vesta_base;\n"
        ))
    }
}
