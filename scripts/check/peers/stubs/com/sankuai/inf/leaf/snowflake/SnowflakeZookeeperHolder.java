package com.sankuai.inf.leaf.snowflake;

/** Gives worker ID 1 without a ZooKeeper. */
public class SnowflakeZookeeperHolder {
    public SnowflakeZookeeperHolder(String ip, String port, String connection) {}

    public boolean init() {
        return true;
    }

    public int getWorkerID() {
        return 1;
    }
}
