"""The end of a built-in function that made arrays: one result, or a tuple of them, or none where one was missing."""

from tenferro_cpu.native.kernels._body import Body, Loop, item


def give_results(b: Body, nout: str, made: str, counts: tuple[str, str], tuple_items: int) -> None:
    """Return the arrays in `made`; code may go to ``failed`` where one could not be made, and to ``finite`` to return.

    Args:
        b: the function; its last block has ended.
        nout: number of results.
        made: the results.
        counts: variables; the first one counts the results that are there at ``failed``.
        tuple_items: where the items of a tuple start.
    """
    k, d = counts
    b.label("finite")
    b.branch(b.get(f"icmp eq i64 {nout}, 1"), "one", "several")
    b.label("one")
    b.give(b.load(made))
    b.label("several")
    answer = b.call("tenferro_tuple", f"i64 {nout}")
    b.store(nout, k, kind="i64")
    b.present(answer, "failed")
    with Loop(b, d, nout, "place") as at:
        b.store(b.load(item(b, made, at)), item(b, b.at(answer, tuple_items), at))
    b.give(answer)
    # A result could not be made: those before it go.
    b.label("failed")
    with Loop(b, d, b.load(k, kind="i64"), "drop") as at:
        b.drop(b.load(item(b, made, at)))
    b.give("null")
