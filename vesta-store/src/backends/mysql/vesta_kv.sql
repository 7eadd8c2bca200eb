-- All entries of Vesta. Rows are never deleted.
-- SELECT name, CONVERT(value USING utf8mb4) FROM vesta_kv shows the entries as text.
CREATE TABLE IF NOT EXISTS vesta_kv (
  area  VARBINARY(400)  NOT NULL, -- lease/default
  name  VARBINARY(1600) NOT NULL, -- namespace, or the number of a machine ID
  value BLOB            NOT NULL, -- JSON
  PRIMARY KEY (area, name)
) ENGINE = InnoDB
