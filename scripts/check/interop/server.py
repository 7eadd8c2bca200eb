"""A Vesta server for clients in other languages."""

import os
import subprocess
import tempfile
from pathlib import Path

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class Server:
    """A program on free loopback ports, stopped by its own process ID."""

    def __init__(self, program: Path, label: str, *more: str, config: str = "", own_clock: bool = False) -> None:
        self.folder = tempfile.TemporaryDirectory()
        Path(self.folder.name, "vesta.toml").write_text(config)
        clock = {}
        if own_clock:
            assert FAKETIME, "libfaketime: install the package `faketime`"
            clock = {
                "LD_PRELOAD": FAKETIME,
                "FAKETIME_TIMESTAMP_FILE": f"{self.folder.name}/clock",
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
            self.set_clock("+0")
        flags = "--config vesta.toml --http-listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --state-dir state"
        self.process = subprocess.Popen(
            [program, *flags.split(), *more],
            cwd=self.folder.name,
            env=os.environ | clock,
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
        assert self.address, f"{program} did not print its address"

    def set_clock(self, offset: str) -> None:
        """Sets its own wall clock to this distance from the right time: `-1h`, `+2m`."""
        new = Path(self.folder.name, "new")
        new.write_text(f"{offset}\n")
        new.rename(Path(self.folder.name, "clock"))

    def replace_state_file(self) -> None:
        """Replaces the file that it holds by a copy."""
        (held,) = Path(self.folder.name, "state").glob("*.state")
        new = held.with_suffix(".new")
        new.write_bytes(held.read_bytes())
        new.rename(held)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0, "not a clean exit"
        self.folder.cleanup()
