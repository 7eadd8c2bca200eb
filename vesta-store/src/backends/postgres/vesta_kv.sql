-- All entries of Vesta. Rows are never deleted. Bytes, because text depends on the encoding of the
-- database; SELECT convert_from(name, 'UTF8'), convert_from(value, 'UTF8') FROM vesta_kv shows the
-- entries as text.
CREATE TABLE IF NOT EXISTS vesta_kv (
  area  BYTEA NOT NULL, -- lease/default
  name  BYTEA NOT NULL, -- namespace, or the number of a machine ID
  value BYTEA NOT NULL, -- JSON
  PRIMARY KEY (area, name)
)
