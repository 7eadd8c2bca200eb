"""Generates code from the protocol with the plugins of npm, and has it exchange large IDs with a server: see generated.js.

Usage: generated.py FOLDER-WITH-THE-PROGRAMS FOLDER-WITH-THE-PACKAGES
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import protoc
from server import Server

HERE = Path(__file__).parent
# protoc 3.20 is the last one with the generator that grpc-web's messages come from.
OUTPUTS = {
    "grpc-web": ("js", "import_style=commonjs,binary"),
    "ts-proto": ("ts_proto", "outputServices=none,useJsTypeOverride=true"),
    "ts-proto-string": ("ts_proto", "outputServices=none,forceLong=string"),
    "es": ("es", "target=js,js_import_style=legacy_commonjs"),
    "protobuf-ts": ("ts", ""),
    "protobuf-ts-string": ("ts", "long_type_string"),
}


def main() -> None:
    programs, packages = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve() / "node_modules"
    sources = HERE.parents[2] / "vesta-intf/proto"
    source = sources / "vesta/v1/vesta.proto"
    environment = os.environ | {"PATH": f"{packages}/.bin:{os.environ['PATH']}", "NODE_PATH": str(packages)}

    def run(*command: object) -> None:
        subprocess.run(command, check=True, timeout=120, env=environment)

    with tempfile.TemporaryDirectory() as folder, Server(programs / "vesta-server", "gRPC") as server:
        for name, (plugin, options) in OUTPUTS.items():
            Path(folder, name).mkdir()
            run(protoc.PROTOC_EXE, f"-I{sources}", f"-I{protoc.PROTOC_INCLUDE_DIR}", f"--{plugin}_out={options}:{folder}/{name}", source)
        run("pbjs", "--target", "static-module", "--wrap", "commonjs", "--path", sources, "--out", f"{folder}/protobufjs.js", source)
        run("node", HERE / "generated.js", server.address, folder, source)


main()
