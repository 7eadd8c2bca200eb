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
    /// A function that is there goes on with these settings.
    pub(super) replace: bool,
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
        let database = GenMethod::Database
            .value()
            .min(layout.max(Field::GenMethod));
        let method = self.gen_method.unwrap_or(database);
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
        let millis = (last_tick + 1)
            .saturating_mul(unit)
            .min(i64::MAX.cast_unsigned())
            - 1;
        let (time_shift, seq_shift) = (layout.shift(Field::Time), layout.shift(Field::Seq));
        let (before, after) = if self.replace {
            self.replaced(60_000u64.div_ceil(unit) << seq_bits)
        } else {
            self.installed()
        };
        Ok(format!(
            "-- {layout}, since {epoch}: machine ID {machine}, genMethod {method}\n\
             -- No process may use this machine ID. Reserve it in the pool, with the settings of the servers:\n\
             --   vesta store reserve {machine} --for \"PostgreSQL of the shop\"\n\
             -- For PostgreSQL 11 or later. Callers need EXECUTE on {schema}.vesta_id(), which everyone has by default: it\n\
             -- runs with the rights of its owner. docs/use/postgres.md has the reasons and what a restore needs.\n\
             -- The next line is for psql; leave it out elsewhere.\n\
             \\set ON_ERROR_STOP on\n\
             BEGIN;\n\
             {before}\
             -- This database, as a number that no copy of it has. IMMUTABLE: a session works it out once.\n\
             CREATE OR REPLACE FUNCTION {schema}.vesta_here() RETURNS bigint\n\
             LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$\n\
             \x20 SELECT hashtextextended(concat_ws(' ', system_identifier, '{schema}.vesta_count'::regclass::oid,\n\
             \x20   (SELECT oid FROM pg_database WHERE datname = current_database())), 0) & {positive}\n\
             \x20 FROM pg_control_system()\n\
             $$;\n\
             CREATE OR REPLACE FUNCTION {schema}.vesta_id() RETURNS bigint\n\
             LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER\n\
             SET search_path = pg_catalog, pg_temp AS $$\n\
             -- {layout}, since {epoch}\n\
             DECLARE\n\
             \x20 ms bigint := (date_part('epoch', clock_timestamp()) * 1e6)::bigint / 1000 - {since};\n\
             \x20 now bigint := ms / {unit} << {seq_bits};\n\
             \x20 base bigint; n bigint; p bigint;\n\
             BEGIN\n\
             \x20 IF pg_sequence_last_value('{schema}.vesta_home') IS DISTINCT FROM {schema}.vesta_here() THEN\n\
             \x20   RAISE EXCEPTION 'vesta_id: this database is a copy of the one in which it was installed, or an upgrade'\n\
             \x20     USING HINT = 'install it again with vesta sql --generate --replace, and with another machine ID '\n\
             \x20       'unless the original is gone for good';\n\
             \x20 END IF;\n\
             \x20 IF ms NOT BETWEEN 0 AND {millis} THEN\n\
             \x20   RAISE EXCEPTION 'vesta_id: the clock shows %, but the layout {name} is for {epoch} to {end}',\n\
             \x20     clock_timestamp() USING HINT = 'set the clock, or choose another layout';\n\
             \x20 END IF;\n\
             \x20 LOOP\n\
             \x20   base := pg_sequence_last_value('{schema}.vesta_base');\n\
             \x20   n := nextval('{schema}.vesta_count');\n\
             \x20   p := base + n;\n\
             \x20   -- If the base was raised meanwhile, the number is left out: with the old base it could repeat.\n\
             \x20   CONTINUE WHEN base <> pg_sequence_last_value('{schema}.vesta_base');\n\
             \x20   EXIT WHEN p >= now;\n\
             \x20   -- One session at a time raises the base to the clock. Rolling this block back keeps sequences as they\n\
             \x20   -- are and gives up the lock, which otherwise lasts to the end of the caller's transaction.\n\
             \x20   BEGIN\n\
             \x20     LOCK TABLE {schema}.vesta_lock IN SHARE UPDATE EXCLUSIVE MODE;\n\
             \x20     base := pg_sequence_last_value('{schema}.vesta_base');\n\
             \x20     n := pg_sequence_last_value('{schema}.vesta_count') + 1;\n\
             \x20     IF base + n < now THEN\n\
             \x20       base := setval('{schema}.vesta_base', now - n);\n\
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
             \x20 n := setval('{schema}.vesta_home', {schema}.vesta_here());\n\
             \x20 RETURN {base} | ((p >> {seq_bits}) << {time_shift}) | ((p & {last_seq}) << {seq_shift});\n\
             END $$;\n\
             {after}",
            positive = i64::MAX,
        ))
    }

    /// The statements around the functions, in a schema without them.
    fn installed(self) -> (String, String) {
        let schema = self.schema;
        let before = format!(
            "DO $$ BEGIN\n\
             \x20 IF num_nonnulls(to_regprocedure('{schema}.vesta_id()'), to_regclass('{schema}.vesta_count')) > 0 THEN\n\
             \x20   RAISE EXCEPTION 'vesta_id() is already installed in the schema {schema}; nothing was changed'\n\
             \x20     USING HINT = 'to install it again, for instance with another machine ID, add --replace';\n\
             \x20 END IF;\n\
             END $$;\n\
             -- Position of an ID (tick << seq bits | seq) = vesta_base + vesta_count. Both only grow.\n\
             CREATE SEQUENCE {schema}.vesta_count;\n\
             CREATE SEQUENCE {schema}.vesta_base MINVALUE 0;\n\
             CREATE SEQUENCE {schema}.vesta_home MINVALUE 0;\n\
             CREATE UNLOGGED TABLE {schema}.vesta_lock ();\n"
        );
        let after = format!(
            "DO $$ BEGIN\n\
             \x20 PERFORM setval('{schema}.vesta_base', 0), setval('{schema}.vesta_home', {schema}.vesta_here());\n\
             END $$;\n\
             COMMIT;\n"
        );
        (before, after)
    }

    /// The statements around functions that replace others; their IDs begin a minute ahead of the clock and of
    /// the last position.
    fn replaced(self, minute: u64) -> (String, String) {
        let Self { layout, schema, .. } = self;
        let (name, epoch) = (layout.name(), layout.spec().epoch);
        let before = format!(
            "DO $$ BEGIN\n\
             \x20 IF NOT EXISTS (SELECT FROM pg_proc WHERE oid = to_regprocedure('{schema}.vesta_id()')\n\
             \x20   AND position('-- {layout}, since {epoch}' IN prosrc) > 0) THEN\n\
             \x20   RAISE EXCEPTION 'the schema {schema} has no vesta_id() of the layout {name}; nothing was changed'\n\
             \x20     USING HINT = 'leave --replace out to install it; another layout needs another schema';\n\
             \x20 END IF;\n\
             END $$;\n"
        );
        let (since, unit) = (epoch.0, layout.spec().unit.millis());
        let seq_bits = layout.bits(Field::Seq);
        let after = format!(
            "-- On from the last ID or from the clock, whichever is later, and a minute ahead, for what a restore lost.\n\
             DO $$ BEGIN\n\
             \x20 LOCK TABLE {schema}.vesta_lock IN SHARE UPDATE EXCLUSIVE MODE;\n\
             \x20 PERFORM setval('{schema}.vesta_base', {minute} +\n\
             \x20   greatest(b.last_value, ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - {since}) / {unit}\n\
             \x20     << {seq_bits}) - c.last_value))\n\
             \x20 FROM {schema}.vesta_base b, {schema}.vesta_count c;\n\
             END $$;\n\
             COMMIT;\n\
             -- Only now may this database make IDs: a rollback would not undo this.\n\
             DO $$ BEGIN PERFORM setval('{schema}.vesta_home', {schema}.vesta_here()); END $$;\n"
        );
        (before, after)
    }
}
