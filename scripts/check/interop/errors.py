"""Every error of errors.json reaches clients of other languages with its code, text and kind: grpcio, and
grpc-js if Node is present. grpcurl shows the field of a bad request.

Usage: errors.py FOLDER-WITH-THE-PROGRAMS GRPCURL|'' [FOLDER-WITH-GRPC-JS]
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from server import Server

HERE = Path(__file__).parent
TOKEN = "reader-token-of-the-interop-tests"
TOKENS = f"""
[[auth.tokens]]
name = "reader"
sha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"
scopes = ["read"]
"""
SEGMENTS = ("--segment-store", "sqlite:tags.db")
# Its time field of 12 bits ends in a minute.
LATE = f"""
[layout.custom]
version_bits = 1
type_bits = 0
gen_method_bits = 0
time_bits = 12
seq_bits = 50
machine_bits = 1
unit = "second"
epoch = "{datetime.now(UTC) - timedelta(seconds=2**12 - 60):%Y-%m-%dT%H:%M:%SZ}"
"""
FIXED = ("--machine-id", "1", "--namespace")
# js-safe makes 16,384 IDs a second.
SERVERS = {
    "usual": (SEGMENTS, ""),
    "narrow": (("--layout", "js-safe", "--max-wait-ms", "0"), ""),
    "short": (("--layout", "js-safe", "--max-wait-ms", "600000", "--request-timeout-ms", "100"), ""),
    "away": (("--segment-store", "redis://127.0.0.1:1", "--wait-for-store"), ""),
    "tokens": ((), TOKENS),
    "late": ((), LATE),
    "behind": ((*FIXED, "behind", "--request-timeout-ms", "100"), ""),
    "sealed": ((*FIXED, "sealed"), ""),
}
# After both servers have started.
CLOCKS = {"late": "+2m", "behind": "-1h"}
SPECIAL = {"TOO LARGE": b"\x0a\xff\xff\x03" + bytes(65_535), "TRUNCATED": b"\x09\x01"}


def message(case: dict) -> bytes:
    return SPECIAL.get(case["message"]) or bytes.fromhex(case["message"])


def check(case: dict, code: int, said: str, details: bytes) -> None:
    assert code == case["code"], f"{case}: code {code}: {said}"
    assert case["says"] in said, f"{case}: {said}"
    kind = case.get("kind", "")
    assert kind.encode() in details, f"{case}: {details}"
    assert (b"google.rpc.BadRequest" in details) == (kind in ("INVALID", "OUT_OF_RANGE")), f"{case}: {details}"


def ask(address: str, case: dict) -> None:
    metadata = [("authorization", f"Bearer {case['token']}")] if "token" in case else []
    with grpc.insecure_channel(address) as channel:
        make = channel.unary_stream if case.get("stream") else channel.unary_unary
        call = make(f"/{case['path']}", request_serializer=None, response_deserializer=None)
        try:
            answer = call(message(case), timeout=None if case.get("patient") else 10, metadata=metadata)
            list(answer)
        except grpc.RpcError as error:
            details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
            return check(case, error.code().value[0], error.details(), details)
    raise AssertionError(f"{case}: no error")


def shown_by(grpcurl: str, address: str) -> None:
    """grpcurl knows the details of an error only by reflection."""
    command = [grpcurl, "-plaintext", "-d", '{"count": 0}', address, "vesta.v1.IdService/GenIds"]
    said = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60).stderr
    assert '"field": "count"' in said and '"reason": "OUT_OF_RANGE"' in said, said
    print("grpcurl shows the field of a bad request")


def main() -> None:
    program = Path(sys.argv[1]).resolve() / "vesta-server"
    cases = json.loads((HERE / "errors.json").read_text())
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(Server(program, "gRPC", *flags, config=config, own_clock=name in CLOCKS))
            for name, (flags, config) in SERVERS.items()
        }
        for name, offset in CLOCKS.items():
            servers[name].set_clock(offset)
        servers["sealed"].replace_state_file()
        with grpc.insecure_channel(servers["sealed"].address) as channel:
            gen_id = channel.unary_unary("/vesta.v1.IdService/GenId")
            with contextlib.suppress(grpc.RpcError):
                while gen_id(b"", timeout=10):  # until it checks its file
                    pass
        for case in cases:
            case["address"] = servers[case.pop("server", "usual")].address
            ask(case["address"], case)
        print(f"{len(cases)} errors: grpcio gets code, text and kind")
        if sys.argv[2]:
            shown_by(sys.argv[2], servers["usual"].address)
        else:
            print("left out: grpcurl, because go is missing")
        if len(sys.argv) < 4:
            return print("left out: grpc-js, because node or npm is missing")
        for case in cases:
            case["message"] = message(case).hex()
        environment = os.environ | {"NODE_PATH": f"{sys.argv[3]}/node_modules"}
        command = ["node", HERE / "errors.js"]
        subprocess.run(command, input=json.dumps(cases), text=True, check=True, timeout=60, env=environment)


main()
