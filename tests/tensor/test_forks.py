"""Objects are put right in the child of a fork as long as they live, and nothing keeps them alive."""

import gc

from tenferro_tensor import _forks


class Thing:
    mended = 0

    def forked(self) -> None:
        self.mended += 1


def test_what_is_alive_is_mended_and_nothing_is_kept_alive() -> None:
    kept, dropped = Thing(), Thing()
    before = len(_forks._alive)
    for thing in (kept, dropped):
        _forks.mended_after_fork(thing)
    del thing, dropped
    gc.collect()
    assert len(_forks._alive) <= before + 1
    _forks._mend()
    assert kept.mended == 1
