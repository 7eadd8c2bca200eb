import os
from types import TracebackType

from .formats import decode as decode
from .formats import encode as encode
from .rest import Explained as Explained
from .rest import RestClient as RestClient
from .rest import RestError as RestError

class VestaError(Exception):
    """A failed call. The text says what happened and what to do."""

    retry_after: float | None
    """Seconds after which another call can succeed, if known."""

class Vesta:
    """Makes IDs in this process. Threads may share it; after a fork, parent and child go on with machine IDs of
    their own.

    Without `machine` and `store`, the pool of this user on this host gives a machine ID; `store` names another pool,
    `machine` a fixed number, both together a number reserved in that pool. The first call claims it."""

    def __init__(
        self,
        *,
        machine: int | None = None,
        store: str | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        layout: str = "max-peak",
        namespace: str = "default",
    ) -> None: ...
    def next_id(self) -> int:
        """A new ID. Waits up to two seconds if none is due."""
    def next_ids(self, count: int) -> list[int]:
        """`count` new IDs, 1 to 1,048,576, ascending."""
    def explain(self, id: int) -> Explained:
        """The fields of an ID, by this layout."""
    def close(self) -> None:
        """Gives the machine ID back. Later calls fail."""
    def __enter__(self) -> Vesta: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
