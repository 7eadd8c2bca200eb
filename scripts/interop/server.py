"""A server of Vesta's for clients in other languages."""

import subprocess
import tempfile
from pathlib import Path


class Server:
    """A program on free loopback ports, stopped by its own process ID."""

    def __init__(self, program: Path, label: str, *more: str, config: str = "") -> None:
        self.folder = tempfile.TemporaryDirectory()
        Path(self.folder.name, "vesta.toml").write_text(config)
        flags = "--config vesta.toml --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --state-dir state"
        self.process = subprocess.Popen(
            [program, *flags.split(), *more],
            cwd=self.folder.name,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = ""
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == [label]:
                self.address = words[1]
            if words[:1] == ["try"]:
                break
        assert self.address, f"{program} did not say where it listens"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0, "not a clean exit"
        self.folder.cleanup()
