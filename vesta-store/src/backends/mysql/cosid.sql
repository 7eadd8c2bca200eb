-- CosId's table of segments.
CREATE TABLE IF NOT EXISTS cosid (
  name            VARCHAR(100)    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  last_max_id     BIGINT UNSIGNED NOT NULL DEFAULT 0,
  last_fetch_time BIGINT UNSIGNED NOT NULL DEFAULT 0,
  CONSTRAINT cosid_pk PRIMARY KEY (name)
) ENGINE = InnoDB
