//! APIs of the server: REST and gRPC.

/// An API of the server. Each has one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// REST, by HTTP/1.1.
    Rest,
    /// gRPC, by HTTP/2.
    Grpc,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Rest, Self::Grpc];

    /// Display name of its protocol.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Api::Rest => "HTTP",
            Api::Grpc => "gRPC",
        }
    }

    /// Setting with the address of its listener.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Api::Rest => "http.listen",
            Api::Grpc => "grpc.listen",
        }
    }
}

/// Description of a program that serves these APIs.
pub(crate) const fn about(apis: &[Api]) -> &'static str {
    match apis {
        [Api::Rest] => "Serve IDs by REST only",
        [Api::Grpc] => "Serve IDs by gRPC only",
        _ => "Serve IDs by REST and gRPC, with one machine ID",
    }
}

/// Usage examples of a program that serves these APIs, called by this name, which may be two words.
pub(crate) fn examples(called: &str, apis: &[Api]) -> String {
    let listen = match apis {
        [Api::Grpc] => "--grpc-listen 10.0.0.7:50051",
        _ => "--http-listen 10.0.0.7:8088",
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
        .replace("LISTEN", listen)
}
