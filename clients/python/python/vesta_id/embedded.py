"""IDs made in this process, by the compiled part of the package."""

from __future__ import annotations

import os
import weakref
from datetime import datetime, timedelta, timezone
from multiprocessing import util

from ._core import Core, VestaError, begin_fork, end_fork
from .rest import Explained

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_open: weakref.WeakSet[Vesta] = weakref.WeakSet()
VestaError.retry_after = None


class Vesta(Core):
    __slots__ = ("__weakref__",)

    def __init__(self, **settings: object) -> None:
        _open.add(self)

    def explain(self, id: int) -> Explained:
        id, layout, millis, *fields = self._explain(id)
        return Explained(id, layout, _EPOCH + timedelta(milliseconds=millis), *fields)

    def __enter__(self) -> Vesta:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _before_fork() -> None:
    begin_fork()
    for it in list(_open):
        it._before_fork()


def _close_all() -> None:
    for it in list(_open):
        it.close()


def _at_exit(_: object) -> None:
    # Also in the children of multiprocessing, which do not run atexit.
    util.Finalize(None, _close_all, exitpriority=0)


_at_exit(None)
util.register_after_fork(_open, _at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=lambda: end_fork(False), after_in_child=lambda: end_fork(True))
