//! The table by gRPC.

use std::rc::Rc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};
use vesta_intf::grpc::kind_of;
use vesta_intf::grpc::v1;
use vesta_intf::grpc::v1::id_service_client::IdServiceClient;
use vesta_intf::grpc::v1::segment_service_client::SegmentServiceClient;
use vesta_intf::grpc::v1::serial_service_client::SerialServiceClient;
use vesta_testkit::programs::Program;

use crate::line::Line;
use crate::rest::{TOKEN, served};
use crate::{Answer, Arguments, Door, rows, text};

pub(crate) struct Grpc {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
    _server: Program,
    _folder: Rc<TempDir>,
}

impl Grpc {
    pub(crate) fn start() -> Self {
        let folder = Rc::new(tempfile::tempdir().expect("a folder"));
        // The protocol creates no segment tags.
        let mut line = Line(Rc::clone(&folder));
        for row in rows() {
            if let ("createSegment", Some(arguments)) =
                (&*text(&row["operation"]), row["arguments"].as_object())
            {
                line.ask("createSegment", arguments);
            }
        }
        let server = served(folder.path());
        let address = server.grpc().expect("both listeners");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let endpoint = Channel::from_shared(format!("http://{address}")).expect("a URL");
        let channel = runtime.block_on(endpoint.connect()).expect("a server");
        Self {
            runtime,
            channel,
            _server: server,
            _folder: folder,
        }
    }
}

/// A request with the token.
fn with_token<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let token: MetadataValue<_> = format!("Bearer {TOKEN}").parse().expect("a header");
    request.metadata_mut().insert("authorization", token);
    request
}

fn serial(it: v1::Serial) -> Value {
    json!({ "serial": it.serial, "counter": it.counter })
}

impl Grpc {
    async fn call(
        channel: Channel,
        operation: &str,
        arguments: &Arguments,
    ) -> Option<Result<Value, Status>> {
        let word = |name: &str| arguments.get(name).map(text);
        let number = |name: &str| word(name).and_then(|it| it.parse::<u64>().ok());
        let tag = word("tag").unwrap_or_default();
        let count = number("count").and_then(|count| u32::try_from(count).ok());
        let mut ids = IdServiceClient::new(channel.clone());
        let mut segments = SegmentServiceClient::new(channel.clone());
        let mut serials = SerialServiceClient::new(channel);
        Some(match operation {
            "explain" if arguments.len() == 1 => {
                let id = number("id")?;
                let answer = ids.exp_id(with_token(v1::ExpIdRequest { id })).await;
                answer.map(|it| {
                    let it = it.into_inner();
                    json!({
                        "version": it.version, "type": it.r#type, "genMethod": it.gen_method,
                        "time": it.time, "seq": it.seq, "machine": it.machine,
                    })
                })
            }
            "make" if !arguments.contains_key("layout") => {
                let request = v1::MakeIdRequest {
                    time: number("time")?,
                    seq: number("seq")?,
                    machine: number("machine"),
                    gen_method: number("genMethod"),
                    r#type: number("type"),
                    version: number("version"),
                };
                let answer = ids.make_id(with_token(request)).await;
                answer.map(|it| json!({ "id": it.into_inner().id }))
            }
            "nextNumbers" => match count {
                None => {
                    let answer = segments
                        .next_id(with_token(v1::NextIdRequest { tag }))
                        .await;
                    answer.map(|it| json!({ "id": it.into_inner().id }))
                }
                Some(count) => {
                    let request = v1::NextIdsRequest { tag, count };
                    let answer = segments.next_ids(with_token(request)).await;
                    answer.map(|it| {
                        let runs = it.into_inner().runs.into_iter();
                        let runs = runs.map(vesta_intf::IdRun::from);
                        let ids = runs.flat_map(|run| run.iter().collect::<Vec<_>>());
                        json!({ "ids": ids.collect::<Vec<_>>() })
                    })
                }
            },
            "createSerial" => {
                let request = v1::CreateSerialRequest {
                    tag,
                    pattern: word("pattern").unwrap_or_default(),
                    reset: word("reset"),
                    zone: word("zone"),
                    step: number("step"),
                    first: number("first"),
                    description: word("description"),
                    max_tags: number("maxTags"),
                };
                let answer = serials.create(with_token(request)).await;
                answer.map(|it| json!({ "created": it.into_inner().created }))
            }
            "nextSerials" => {
                let request = v1::NextSerialsRequest { tag, count };
                let answer = serials.next(with_token(request)).await;
                answer.map(|it| {
                    let mut all = it.into_inner().serials.into_iter().map(serial);
                    match count {
                        None => all.next().expect("one"),
                        Some(_) => json!({ "serials": all.collect::<Vec<_>>() }),
                    }
                })
            }
            "parseSerial" => {
                let serial = word("serial").unwrap_or_default();
                let request = v1::ParseSerialRequest { tag, serial };
                let answer = serials.parse(with_token(request)).await;
                answer.map(|it| {
                    let it = it.into_inner();
                    let members = [
                        ("tag", Some(it.tag)),
                        ("period", it.period),
                        ("date", it.date),
                        ("counter", Some(it.counter.to_string())),
                        ("check", it.check),
                    ];
                    let members = members.into_iter();
                    members
                        .filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))))
                        .collect::<Value>()
                })
            }
            _ => return None,
        })
    }
}

impl Door for Grpc {
    fn ask(&mut self, operation: &str, arguments: &Arguments) -> Answer {
        let call = Self::call(self.channel.clone(), operation, arguments);
        let answer = self.runtime.block_on(call)?;
        let kind = |status: &Status| kind_of(status).name().to_owned();
        Some(answer.map_err(|status| (kind(&status), status.message().to_owned())))
    }
}
