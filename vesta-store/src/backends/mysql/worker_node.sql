-- uid-generator's table, for machine IDs that are used only once. PORT is our process ID.
CREATE TABLE IF NOT EXISTS WORKER_NODE (
  ID          BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'auto increment id',
  HOST_NAME   VARCHAR(64) NOT NULL COMMENT 'host name',
  PORT        VARCHAR(64) NOT NULL COMMENT 'port',
  TYPE        INT         NOT NULL COMMENT 'node type: CONTAINER(1), ACTUAL(2), FAKE(3)',
  LAUNCH_DATE DATE        NOT NULL COMMENT 'launch date',
  MODIFIED    TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT 'modified time',
  CREATED     TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT 'created time',
  PRIMARY KEY (ID)
) ENGINE = InnoDB
