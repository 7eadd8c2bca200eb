//! Roles: the two server programs.

/// The running program. The two differ in defaults and in protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `vesta-server`: gRPC.
    Server,
    /// `vesta-rest`: HTTP.
    Rest,
}

impl Role {
    /// The program's name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Server => "vesta-server",
            Role::Rest => "vesta-rest",
        }
    }

    /// The name of its protocol, for people.
    pub const fn protocol(self) -> &'static str {
        match self {
            Role::Server => "gRPC",
            Role::Rest => "HTTP",
        }
    }

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Role::Server => "Vesta's gRPC server: 64-bit IDs that never repeat",
            Role::Rest => "Vesta's REST server: 64-bit IDs that never repeat",
        }
    }

    pub(crate) const fn examples(self) -> &'static str {
        match self {
            Role::Server => {
                "\
Every setting is a flag, an environment variable, or a key in the TOML file (--config);
a flag wins over the environment, the environment over the file.

Examples:
  vesta-server
      on loopback, with a machine ID from the pool in vesta-data/vesta.db
  vesta-server --machine-id 7 --listen 10.0.0.7:50051 --allow-plaintext
      reachable from a trusted network, with a fixed machine ID
  vesta-server --machine-id 7 --listen 10.0.0.7:50051 --tls-cert cert.pem --tls-key key.pem
      reachable from any network, encrypted; vesta-server token new --name X makes tokens
  vesta-server --layout snowflake --machine-store mysql://vesta:secret@db/ids
      Twitter's and Leaf's bits, with a pool for all hosts (the password had better stand in
      VESTA_MACHINE_STORE, where others do not see it)
  vesta-server store show
      who has which machine ID; more such commands: vesta-server store --help
  vesta-server --segment-store mysql://vesta:secret@db/leaf
      numbers for each tag of Leaf's table too; vesta-server segment --help lists and adds tags
  vesta-server --config /etc/vesta.toml --print-config
      what would hold, and why

Exit codes: 0 stopped as asked, 64 a setting is wrong or taken, 69 the store cannot be reached,
70 another failure."
            }
            Role::Rest => {
                "\
Every setting is a flag, an environment variable, or a key in the TOML file (--config);
a flag wins over the environment, the environment over the file.

Examples:
  vesta-rest
      on loopback, with a machine ID from the pool in vesta-data/vesta.db
  vesta-rest --machine-id 7 --listen 10.0.0.7:8088 --allow-plaintext
      reachable from a trusted network, with a fixed machine ID
  vesta-rest --machine-id 7 --listen 10.0.0.7:8088 --tls-cert cert.pem --tls-key key.pem
      reachable from any network, encrypted; vesta-rest token new --name X makes tokens
  vesta-rest --layout js-safe
      IDs that JavaScript numbers hold exactly
  vesta-rest --machine-store mysql://vesta:secret@db/ids
      with a pool for all hosts (the password had better stand in VESTA_MACHINE_STORE, where
      others do not see it)
  vesta-rest store show
      who has which machine ID; more such commands: vesta-rest store --help
  vesta-rest --segment-store mysql://vesta:secret@db/leaf
      numbers for each tag of Leaf's table too; vesta-rest segment --help lists and adds tags
  vesta-rest --config /etc/vesta.toml --print-config
      what would hold, and why

Exit codes: 0 stopped as asked, 64 a setting is wrong or taken, 69 the store cannot be reached,
70 another failure."
            }
        }
    }

    /// A first call to try, for the start-up summary.
    pub(crate) fn first_call(self, listen: std::net::SocketAddr, needs: ClientNeeds) -> String {
        match self {
            Role::Server => {
                let how = needs.grpcurl();
                format!("grpcurl {how}{listen} vesta.v1.IdService/GenId")
            }
            Role::Rest => format!("curl {}{}://{listen}/genid", needs.curl(), needs.scheme()),
        }
    }
}

/// Requirements for clients of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientNeeds {
    pub(crate) tls: bool,
    pub(crate) client_certificate: bool,
    pub(crate) token: bool,
}

impl ClientNeeds {
    pub(crate) const fn scheme(self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    pub(crate) fn curl(self) -> String {
        self.options([
            (self.tls, "--cacert CA.pem "),
            (self.client_certificate, "--cert CLIENT.pem --key CLIENT.key "),
        ])
    }

    fn grpcurl(self) -> String {
        self.options([
            (true, if self.tls { "-cacert CA.pem " } else { "-plaintext " }),
            (self.client_certificate, "-cert CLIENT.pem -key CLIENT.key "),
        ])
    }

    fn options(self, options: [(bool, &str); 2]) -> String {
        let token = (self.token, "-H 'authorization: Bearer TOKEN' ");
        options.into_iter().chain([token]).filter(|it| it.0).map(|it| it.1).collect()
    }
}
