//! Roles: the server programs.

/// The running program. Roles differ in defaults and in protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `vesta-server`: gRPC.
    Server,
    /// `vesta-rest`: HTTP.
    Rest,
    /// `vesta`: HTTP and gRPC over one service.
    Vesta,
}

impl Role {
    /// The program's name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Server => "vesta-server",
            Role::Rest => "vesta-rest",
            Role::Vesta => "vesta",
        }
    }

    /// Display name of its protocol.
    pub const fn protocol(self) -> &'static str {
        match self {
            Role::Server => "gRPC",
            Role::Rest | Role::Vesta => "HTTP",
        }
    }

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Role::Server => "Vesta's gRPC server: 64-bit IDs that never repeat",
            Role::Rest => "Vesta's REST server: 64-bit IDs that never repeat",
            Role::Vesta => "Serve IDs by REST and gRPC, with one machine ID",
        }
    }

    /// Defaults of settings in which the programs differ.
    pub(crate) fn default(self, setting: &str) -> Option<&'static str> {
        match (self, setting) {
            (Role::Rest | Role::Vesta, "listen") => Some("127.0.0.1:8088"),
            (Role::Rest | Role::Vesta, "admin.listen") => Some("127.0.0.1:8089"),
            (Role::Rest | Role::Vesta, "gen_method") => Some("2"),
            // Longer than the 60 s after which common proxies close their side, so that a proxy
            // does not send a request into a connection that is being closed.
            (Role::Rest, "idle_timeout_ms") => Some("75000"),
            (Role::Vesta, "grpc.listen") => Some("127.0.0.1:50051"),
            _ => None,
        }
    }

    /// Usage examples of a program called by this name.
    pub(crate) fn examples(self, called: &str) -> String {
        let port = match self {
            Role::Server => "50051",
            Role::Rest | Role::Vesta => "8088",
        };
        let program = called.split(' ').next().unwrap_or(called);
        let text = include_str!("examples.txt").trim_end();
        ["store", "token", "segment", "serial"]
            .into_iter()
            .fold(text.to_owned(), |text, command| {
                text.replace(
                    &format!("PROGRAM {command}"),
                    &format!("{program} {command}"),
                )
            })
            .replace("PROGRAM", called)
            .replace("PORT", port)
    }
}
