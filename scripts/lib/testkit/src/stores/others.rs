//! Redis, ZooKeeper, etcd, and vesta-server as a pool server.

use super::server::Server;
use super::tools::{command, create_folder, output, write};

pub(super) const ZOOKEEPER_JAR: &str = "/usr/share/java/zookeeper.jar";

impl Server {
    pub(super) fn launch_redis(&self) -> Result<String, String> {
        let Self { password, port, .. } = self;
        let (data, settings) = (self.home.join("data"), self.home.join("redis.conf"));
        create_folder(&data)?;
        let mut text = format!(
            "bind 127.0.0.1
port {port}
dir \"{}\"
requirepass {password}
appendonly yes
appendfsync always
save \"\"
maxmemory-policy noeviction
",
            data.display()
        );
        if let Some(source) = self.source {
            text += &format!(
                "replicaof 127.0.0.1 {source}\nmasterauth {password}\nrepl-diskless-sync-delay 0\n"
            );
        }
        write(&settings, &text)?;
        self.daemon(command(["redis-server"]).arg(settings))?;
        Ok(format!("redis://:{password}@127.0.0.1:{port}/0"))
    }

    pub(super) fn ask_redis(&self, port: u16, words: &[&str]) -> Result<String, String> {
        let mut client = command(["timeout", "2", "redis-cli", "-p", &port.to_string()]);
        output(client.args(words).env("REDISCLI_AUTH", &self.password), "")
    }

    /// A number among what Redis says of its replication.
    pub(super) fn offset(&self, port: u16, name: &str) -> Result<u64, String> {
        let info = self.ask_redis(port, &["INFO", "replication"])?;
        let value = info
            .lines()
            .find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        let number = value.and_then(|it| it.trim().parse().ok());
        number.ok_or_else(|| format!("no {name} in {info}"))
    }

    pub(super) fn is_linked(&self) -> bool {
        let info = self.ask_redis(self.port, &["INFO", "replication"]);
        info.is_ok_and(|it| it.contains("\nmaster_link_status:up"))
    }

    pub(super) fn launch_zookeeper(&self) -> Result<String, String> {
        let port = self.port;
        let (data, settings) = (self.home.join("data"), self.home.join("zoo.cfg"));
        create_folder(&data)?;
        let text = format!(
            "dataDir={}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
tickTime=500
preAllocSize=1024
admin.enableServer=false
4lw.commands.whitelist=srvr
",
            data.display()
        );
        write(&settings, &text)?;
        let mut java = command([
            "java",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xmx192m",
            "-cp",
            ZOOKEEPER_JAR,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        ]);
        self.daemon(java.arg(settings))?;
        Ok(format!("zookeeper://127.0.0.1:{port}/vesta"))
    }

    pub(super) fn launch_etcd(&self) -> Result<String, String> {
        let clients = format!("http://127.0.0.1:{}", self.port);
        let peers = format!("http://127.0.0.1:{}", self.second_port);
        let mut server = command(["etcd", "--log-level=warn"]);
        server.args([
            format!("--data-dir={}/data", self.home.display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ]);
        self.daemon(&mut server)?;
        Ok(format!("etcd://127.0.0.1:{}", self.port))
    }

    /// Its store is a SQLite file; the password is the token.
    pub(super) fn launch_pool_server(&self) -> Result<String, String> {
        let Self {
            password,
            port,
            second_port,
            ..
        } = self;
        let sum = output(&mut command(["sha256sum"]), password)?;
        let sha256 = sum.split(' ').next().unwrap_or_default();
        let settings = self.home.join("vesta.toml");
        let text = format!(
            "pool_server.namespaces = \"*\"
state_dir = \"{}/data\"
grpc.listen = \"127.0.0.1:{port}\"
admin.listen = \"127.0.0.1:{second_port}\"
[[auth.tokens]]
name = \"members\"
sha256 = \"{sha256}\"
scopes = [\"pool\"]
",
            self.home.display()
        );
        write(&settings, &text)?;
        let program = super::vesta_server().display().to_string();
        self.daemon(command([&program, "--config"]).arg(settings))?;
        Ok(format!("vesta://:{password}@127.0.0.1:{port}"))
    }
}
