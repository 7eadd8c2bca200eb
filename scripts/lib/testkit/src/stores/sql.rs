//! MariaDB, PostgreSQL, and PgBouncer in front of it.

use std::fs;
use std::process::Command;

use rustix::process::geteuid;

use super::PATIENCE;
use super::process::within;
use super::server::Server;
use super::tools::{self, command, create_folder, log, output, path_of, write};

impl Server {
    pub(super) fn launch_mysql(&self, data_is_complete: bool) -> Result<String, String> {
        let Self {
            home,
            password,
            port,
            ..
        } = self;
        let place = home.display();
        let (init, temporary) = (home.join("init.sql"), home.join("tmp"));
        create_folder(&temporary)?;
        // A starting server removes the temporary tables of all servers that share its folder for them.
        let mut options = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={place}/data"),
            format!("--tmpdir={place}/tmp"),
        ];
        if geteuid().is_root() {
            options.push("--user=root".to_owned());
        }
        if !data_is_complete {
            let _ = fs::remove_dir_all(home.join("data")); // of a start that failed
            let user = output(&mut command(["id", "-un"]), "")?;
            let mut install = command(["mariadb-install-db"]);
            install.args(&options).args([
                "--skip-test-db",
                "--auth-root-authentication-method=socket",
                "--innodb-log-file-size=8M",
            ]);
            install.arg(format!("--auth-root-socket-user={user}"));
            log(&mut install, "", &self.log()?)?;
            let sql = format!(
                "SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS vesta@'%' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO vesta@'%' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS vesta;
"
            );
            write(&init, &sql)?;
        }
        if self.source.is_some() {
            options.push("--read-only".to_owned());
        }
        // Paths are relative to the data folder: a socket's must be short.
        let mut server = command(["mariadbd"]);
        server.args(options).args(
            "--bind-address=127.0.0.1 --socket=socket --pid-file=mariadbd.pid \
                --skip-name-resolve --max-connections=500 --innodb-flush-log-at-trx-commit=1 \
                --innodb-log-file-size=8M --innodb-buffer-pool-size=32M --log-bin=binlog \
                --sync-binlog=1 --relay-log=relay"
                .split_whitespace(),
        );
        server.arg(format!("--init-file={}", init.display()));
        server.args([format!("--port={port}"), format!("--server-id={port}")]);
        self.daemon(&mut server)?;
        Ok(format!("mysql://vesta:{password}@127.0.0.1:{port}/vesta"))
    }

    /// The rows of a statement at a port of MariaDB.
    pub(super) fn ask_mysql(&self, port: u16, sql: &str) -> Result<String, String> {
        let mut client = command(
            "mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --user=vesta \
                --connect-timeout=2 --skip-column-names"
                .split_whitespace(),
        );
        let client = client.arg(format!("--port={port}"));
        let client = client.arg(format!("--execute={sql}")).arg("vesta");
        output(client.env("MYSQL_PWD", &self.password), "")
    }

    /// From the first line of its source's log.
    pub(super) fn follow_mysql(&self) -> Result<String, String> {
        let (source, password) = (self.source()?, &self.password);
        let sql = format!(
            "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {source}, master_user = 'vesta',
            master_password = '{password}', master_connect_retry = 1, master_use_gtid = slave_pos; START SLAVE"
        );
        self.ask_mysql(self.port, &sql)
    }

    pub(super) fn launch_postgres(
        &self,
        data_is_complete: bool,
        under: &[String],
    ) -> Result<String, String> {
        let Self { password, port, .. } = self;
        let folder = postgres_folder().ok_or("no initdb")?;
        let (user, data) = (self.not_as_root()?, self.home.join("data"));
        let place = data.display().to_string();
        if !data_is_complete {
            let _ = fs::remove_dir_all(&data); // of a start that failed
            create_folder(&data)?;
            user.owns(&data)?;
            match self.source {
                Some(source) => self.copy_postgres(&user, &folder, source)?,
                None => self.init_postgres(&user, &folder)?,
            }
        }
        // After a kill, the process may not be reaped yet, which would count as running.
        let _ = fs::remove_file(data.join("postmaster.pid"));
        let mut server = user.command(under, &format!("{folder}/postgres"));
        server.args(["-D", &place, "-p", &port.to_string()]);
        let settings = "listen_addresses=127.0.0.1 unix_socket_directories= max_connections=500 \
            shared_buffers=32MB fsync=on synchronous_commit=on wal_level=logical";
        for setting in settings.split_whitespace() {
            server.args(["-c", setting]);
        }
        self.daemon(&mut server)?;
        Ok(format!(
            "postgres://vesta:{password}@127.0.0.1:{port}/vesta"
        ))
    }

    fn copy_postgres(&self, user: &User, folder: &str, source: u16) -> Result<(), String> {
        let mut copy = user.command(&[], &format!("{folder}/pg_basebackup"));
        let options =
            "--host=127.0.0.1 --username=owner --write-recovery-conf --checkpoint=fast --no-sync";
        copy.args(options.split_whitespace());
        copy.arg(format!("--port={source}"));
        copy.arg(format!("--pgdata={}/data", self.home.display()));
        log(copy.env("PGPASSWORD", &self.password), "", &self.log()?)
    }

    fn init_postgres(&self, user: &User, folder: &str) -> Result<(), String> {
        let (place, password) = (self.home.display(), &self.password);
        let file = self.home.join("data.password");
        write(&file, password)?;
        user.owns(&file)?;
        let mut init = user.command(&[], &format!("{folder}/initdb"));
        let options = "--username=owner --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync";
        init.args(options.split_whitespace());
        init.arg(format!("--pgdata={place}/data"));
        init.arg(format!("--pwfile={}", file.display()));
        log(&mut init, "", &self.log()?)?;
        let _ = fs::remove_file(file);
        let mut single = user.command(&[], &format!("{folder}/postgres"));
        single.args(["--single", "-D", &format!("{place}/data"), "postgres"]);
        let sql = format!(
            "CREATE ROLE vesta LOGIN CREATEDB PASSWORD '{password}'
CREATE DATABASE vesta OWNER vesta
"
        );
        log(&mut single, &sql, &self.log()?)
    }

    /// The rows of statements at a port of PostgreSQL. Each is a separate transaction, so that the sessions locked out
    /// cannot return before the next.
    pub(super) fn ask_postgres(&self, port: u16, user: &str, sql: &str) -> Result<String, String> {
        let mut client = command(
            "psql --no-psqlrc --host=127.0.0.1 --dbname=vesta --no-align --tuples-only \
                --set=ON_ERROR_STOP=1"
                .split_whitespace(),
        );
        client.args([format!("--port={port}"), format!("--username={user}")]);
        client.env("PGPASSWORD", &self.password);
        output(client.env("PGCONNECT_TIMEOUT", "2"), sql)
    }

    pub(super) fn lag_postgres(&self) -> Result<String, String> {
        let ask = |sql| self.ask_postgres(self.port, "owner", sql);
        ask("ALTER SYSTEM SET primary_conninfo = ''")?;
        ask("SELECT pg_reload_conf()")?;
        let receivers = || ask("SELECT count(*) FROM pg_stat_wal_receiver");
        match within(PATIENCE, || receivers().is_ok_and(|it| it == "0")) {
            true => Ok(String::new()),
            false => Err(format!("{} still receives", self.name)),
        }
    }

    pub(super) fn promote_postgres(&self) -> Result<String, String> {
        let ask = |sql| self.ask_postgres(self.port, "owner", sql);
        let subscribed = self.home.join("subscribed");
        if subscribed.exists() {
            ask("DROP SUBSCRIPTION vesta")?;
            return fs::remove_file(subscribed)
                .map(|()| String::new())
                .map_err(|error| error.to_string());
        }
        match ask("SELECT pg_promote()")?.as_str() {
            "t" => Ok(String::new()),
            other => Err(format!("pg_promote() is {other}")),
        }
    }

    /// Writes to the tables of its source as a subscriber; both can be written.
    pub(super) fn subscribe(&self, source: u16) -> Result<(), String> {
        let Self { password, port, .. } = self;
        let mut dump = command(["pg_dump", "--host=127.0.0.1", "--username=owner"]);
        dump.args([&format!("--port={source}"), "--schema-only", "vesta"]);
        let tables = output(dump.env("PGPASSWORD", password), "")?;
        let mut restore = command(["psql", "--no-psqlrc", "--quiet", "--host=127.0.0.1"]);
        restore.args([&format!("--port={port}"), "--username=owner", "vesta"]);
        output(restore.env("PGPASSWORD", password), &tables)?;
        let publication = "CREATE PUBLICATION vesta FOR ALL TABLES";
        self.ask_postgres(source, "owner", publication)?;
        let sql = format!(
            "CREATE SUBSCRIPTION vesta CONNECTION
            'host=127.0.0.1 port={source} user=owner password={password} dbname=vesta' PUBLICATION vesta"
        );
        self.ask_postgres(*port, "owner", &sql)?;
        write(&self.home.join("subscribed"), "")
    }

    pub(super) fn launch_pgbouncer(&self) -> Result<String, String> {
        let postgres = Self::started(&self.folder, "postgres")?;
        let user = self.not_as_root()?;
        let (port, password, at) = (self.port, &self.password, postgres.port);
        let (users, settings) = (self.home.join("users"), self.home.join("pgbouncer.ini"));
        write(
            &users,
            &format!("\"vesta\" \"{password}\"\n\"owner\" \"{password}\"\n"),
        )?;
        let text = format!(
            "[databases]
vesta_session = host=127.0.0.1 port={at} dbname=vesta pool_mode=session pool_size=100
* = host=127.0.0.1 port={at}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {}
pool_mode = transaction
default_pool_size = 2
max_client_conn = 500
",
            users.display()
        );
        write(&settings, &text)?;
        user.owns(&users)?;
        user.owns(&settings)?;
        let mut pooler = user.command(&[], "pgbouncer");
        self.daemon(pooler.arg(settings))?;
        Ok(format!(
            "postgres://vesta:{password}@127.0.0.1:{port}/vesta"
        ))
    }

    /// A user for a server that does not run as root.
    fn not_as_root(&self) -> Result<User, String> {
        if !geteuid().is_root() {
            return Ok(User(None));
        }
        let id = |option, name| output(&mut command(["id", option, name]), "");
        let name = ["postgres", "nobody"]
            .into_iter()
            .find(|name| id("-u", name).is_ok());
        let name = name.ok_or("there is no user nobody")?;
        let (uid, gid) = (id("-u", name)?, id("-g", name)?);
        let mut open = command(["chmod", "go+x"]);
        output(open.arg(&self.folder).arg(&self.home), "")?;
        let user = User(Some((uid, gid)));
        let place = self.home.display();
        output(user.command(&[], "test").arg("-x").arg(&self.home), "").map_err(|_| {
            format!("user {name}, as which this server must run, cannot access {place}: choose another folder")
        })?;
        Ok(user)
    }
}

/// The user as which a server runs: this program's, or another one's numbers.
struct User(Option<(String, String)>);

impl User {
    /// A command under other words, in a folder that every user may enter.
    fn command(&self, under: &[String], program: &str) -> Command {
        let program = match path_of(program) {
            Some(path) => path.display().to_string(),
            None => program.to_owned(),
        };
        let mut words = Vec::new();
        if let Some((uid, gid)) = &self.0 {
            words = vec![
                "setpriv".to_owned(),
                format!("--reuid={uid}"),
                format!("--regid={gid}"),
                "--clear-groups".to_owned(),
            ];
        }
        words.extend(under.iter().cloned());
        words.push(program);
        let mut command = tools::command(words);
        command.current_dir("/");
        command
    }

    fn owns(&self, path: &std::path::Path) -> Result<(), String> {
        let Some((uid, _)) = &self.0 else {
            return Ok(());
        };
        output(command(["chown", uid]).arg(path), "").map(drop)
    }
}

/// The folder of initdb: Debian keeps it out of PATH.
pub(super) fn postgres_folder() -> Option<String> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.flatten().map(|it| it.path().join("bin"));
    let version = |path: &std::path::PathBuf| -> u32 {
        let name = path.parent().and_then(|it| it.file_name()?.to_str());
        name.and_then(|it| it.parse().ok()).unwrap_or_default()
    };
    let newest = versions.filter(|it| it.is_dir()).max_by_key(version);
    let folder = newest.or_else(|| Some(path_of("initdb")?.parent()?.to_owned()));
    folder.map(|it| it.display().to_string())
}
