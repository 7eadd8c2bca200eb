-- All entries of Vesta. Rows are never deleted. With row IDs: keys and rows are in different pages, so that
-- a change writes only the page of its row.
PRAGMA application_id = 0x56535441; -- "VSTA"
PRAGMA user_version = 2;            -- another one is refused
CREATE TABLE vesta_kv (
  area  TEXT NOT NULL, -- lease/default
  name  TEXT NOT NULL, -- namespace, or the number of a machine ID
  value TEXT NOT NULL, -- JSON
  PRIMARY KEY (area, name)
) STRICT;
