"""Objects are put right in the child of a fork as long as they live, and nothing keeps them alive."""

import gc
from weakref import WeakSet

import pytest

from tenferro_tensor import _forks


class Thing:
    mended = 0

    def forked(self) -> None:
        self.mended += 1


def test_what_is_alive_is_mended_and_nothing_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: WeakSet[_forks.Forked] = WeakSet()  # locks that others hold here are left alone
    monkeypatch.setattr(_forks, "_alive", alive)
    kept, dropped = Thing(), Thing()
    for thing in (kept, dropped):
        _forks.mended_after_fork(thing)
    del thing, dropped
    gc.collect()
    assert list(alive) == [kept]
    _forks._mend()
    assert kept.mended == 1
