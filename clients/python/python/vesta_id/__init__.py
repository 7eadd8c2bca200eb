"""64-bit IDs that never repeat: made in this process (`Vesta`), or by a server (`RestClient`)."""

from __future__ import annotations

from .formats import decode, encode
from .rest import Explained, RestClient, RestError

__all__ = ["Explained", "RestClient", "RestError", "decode", "encode"]

try:
    from .embedded import Vesta, VestaError
except ModuleNotFoundError as missing:
    if missing.name != f"{__name__}._core":
        raise

    def __getattr__(name: str) -> None:
        if name in ("Vesta", "VestaError"):
            raise ImportError("this is vesta-id without its compiled part, which makes IDs in this process: it has RestClient. "
                              "To compile the other one: pip install --no-binary vesta-id vesta-id")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
else:
    __all__ += ["Vesta", "VestaError"]
