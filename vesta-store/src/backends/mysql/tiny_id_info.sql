-- Tinyid's table of segments.
CREATE TABLE IF NOT EXISTS tiny_id_info (
  id          BIGINT      NOT NULL AUTO_INCREMENT,
  biz_type    VARCHAR(63) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  begin_id    BIGINT      NOT NULL DEFAULT 0,
  max_id      BIGINT      NOT NULL DEFAULT 0,
  step        INT         DEFAULT 0,
  delta       INT         NOT NULL DEFAULT 1,
  remainder   INT         NOT NULL DEFAULT 0,
  create_time TIMESTAMP   NOT NULL DEFAULT '2010-01-01 00:00:00',
  update_time TIMESTAMP   NOT NULL DEFAULT '2010-01-01 00:00:00',
  version     BIGINT      NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  UNIQUE KEY uniq_biz_type (biz_type)
) ENGINE = InnoDB
