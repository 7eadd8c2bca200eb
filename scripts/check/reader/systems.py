"""What the databases of other systems hold, for readers of the pages on moving from them. The formats are those of
vesta-store/src/import and of the systems' own tables."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ZOOKEEPER = ["java", "-cp", "/usr/share/java/*", "org.apache.zookeeper.ZooKeeperMain", "-server"]

# Statements for the database that the page names, by the name of the system.
TABLES = {
    "Tinyid": f"""{(ROOT / "vesta-store/src/backends/mysql/tiny_id_info.sql").read_text()};
        INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step) VALUES ('test', 1, 2000, 1000);
        CREATE TABLE tiny_id_token (token varchar(255), biz_type varchar(63));
        INSERT INTO tiny_id_token VALUES ('0f673adf80504e2eaa552f5d791b644c', 'test')""",
    "the Java Vesta": """CREATE TABLE DB_MACHINE_ID_PROVIDER (ID int PRIMARY KEY, IP varchar(64));
        INSERT INTO DB_MACHINE_ID_PROVIDER VALUES (0, '10.0.0.1'), (1, NULL)""",
}
KEYS = {
    "CosId": [
        ["HSET", "cosid:{shop}:itc_idx", "10.0.0.1:8080", "0|1769832060123"],
        ["SET", "cosid:{shop}:adder", "0"],
        ["SET", "cosid:{shop.order}.adder", "2200"],
    ],
}
NODES = {
    "Leaf": ["", "/LEAF_NAME", "/LEAF_NAME/forever", "/LEAF_NAME/forever/10.0.0.1:8080-0000000000"],
    "worker IDs": ["", "/orders", "/orders/0"],
}
WORKER = '{"ip":"10.0.0.1","port":"8080","timestamp":1769832060123}'


def redis(url):
    """A command of Redis's administrator."""
    password, port = re.match(r"redis://:(\w+)@127.0.0.1:(\d+)", url).groups()
    return ["redis-cli", "-p", port, "-a", password, "--no-auth-warning"]


def keys(url, needs):
    for command in [it for name, commands in KEYS.items() if name in needs for it in commands]:
        subprocess.run([*redis(url), *command], check=True, capture_output=True)


def nodes(port, needs):
    named = [it for name, nodes in NODES.items() if name in needs for it in nodes]
    lines = [f"create /snowflake{it} {WORKER}" for it in dict.fromkeys(named)]
    if lines:
        subprocess.run(
            [*ZOOKEEPER, f"127.0.0.1:{port}"], input="\n".join([*lines, "quit\n"]),
            check=True, capture_output=True, text=True,
        )  # fmt: skip
