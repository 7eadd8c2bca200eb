"""vesta-server and vesta-rest agree on the same IDs: called by a gRPC client that knows the protocol
only by reflection, and by curl.

Usage: golden.py FOLDER-WITH-THE-PROGRAMS
"""

import json
import subprocess
import sys
from pathlib import Path

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from server import Server

# Computed with the converter of the Java Vesta: type, machine, seq, time, genMethod, version -> ID.
GOLDEN = [
    (0, 1, 0, 0, 0, 0, 0x1),
    (0, 0, 1, 0, 0, 0, 0x400),
    (0, 0, 0, 1, 0, 0, 0x40000000),
    (0, 7, 42, 123456789, 1, 0, 1285482222412933127),
    (0, 1023, 1048575, 1073741823, 3, 1, 0xBFFFFFFFFFFFFFFF),
    (0, 1021, 0, 94990103, 2, 0, 2407837855670862845),
    (1, 0, 0, 1, 0, 0, 0x4000000000100000),
    (1, 7, 42, 123456789012, 2, 0, 7046982853636171783),
    (1, 1023, 1023, 1099511627775, 3, 1, 0xFFFFFFFFFFFFFFFF),
]


class ByReflection:
    """A gRPC client without generated code."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        services = set(database.get_services())
        assert {"vesta.v1.IdService", "grpc.health.v1.Health"} <= services, services
        service = DescriptorPool(database).FindServiceByName("vesta.v1.IdService")
        self.methods = {method.name: method for method in service.methods}

    def call(self, name: str, **fields: int):
        method = self.methods[name]
        request = GetMessageClass(method.input_type)(**fields)
        response = GetMessageClass(method.output_type)
        stub = self.channel.unary_unary(
            f"/vesta.v1.IdService/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )
        return stub(request, timeout=10)


def curl(url: str, *arguments: str) -> str:
    command = ["curl", "--silent", "--show-error", "--fail", *arguments, url]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def main() -> None:
    programs = Path(sys.argv[1]).resolve()
    checked = 0
    with (
        Server(programs / "vesta-server", "gRPC") as server,
        Server(programs / "vesta-rest", "HTTP") as rest,
    ):
        grpc_client = ByReflection(server.address)
        url = f"http://{rest.address}"
        for type_, machine, seq, time, gen_method, version, golden in GOLDEN:
            fields = {
                "time": time,
                "seq": seq,
                "machine": machine,
                "gen_method": gen_method,
                "type": type_,
                "version": version,
            }
            in_java = {("genMethod" if k == "gen_method" else k): v for k, v in fields.items()}
            query = "&".join(f"{name}={value}" for name, value in in_java.items())
            body = json.dumps(in_java)

            made = {
                "gRPC MakeId": grpc_client.call("MakeId", **fields).id,
                "REST /makeid": int(curl(f"{url}/makeid?{query}")),
                "REST /v1/ids:make": int(
                    json.loads(
                        curl(f"{url}/v1/ids:make", "--json", body)
                    )["id"]
                ),
            }
            assert set(made.values()) == {golden}, f"expected {golden}: {made}"

            explained = grpc_client.call("ExpId", id=golden)
            by_grpc = {name: getattr(explained, name) for name in fields}
            by_rest = json.loads(curl(f"{url}/expid?id={golden}"))
            assert by_grpc == fields, f"{golden}: {by_grpc}"
            assert by_rest == in_java, f"{golden}: {by_rest}"
            checked += 1

        first, second = grpc_client.call("GenId").id, int(curl(f"{url}/genid"))
        assert grpc_client.call("ExpId", id=second).gen_method == 2
        assert json.loads(curl(f"{url}/expid?id={first}"))["genMethod"] == 1
        runs = grpc_client.call("GenRuns", count=100_000).runs
        many = [run.first + n * run.step for run in runs for n in range(run.count)]
        assert len(many) == 100_000 and all(a < b for a, b in zip(many, many[1:]))
    print(f"{checked} golden IDs: gRPC by reflection and REST by curl agree")


main()
