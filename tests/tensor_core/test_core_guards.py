"""Questions about sizes: what needs no guard, what records one, what has no answer."""

import contextvars
import pickle
import threading

import pytest

from tenferro_tensor_core import (
    ArgumentError,
    Decisions,
    Guard,
    InconclusiveDimError,
    ShapeError,
    ask,
    dim,
    dim_min,
    require_equal,
)

n, m, k = dim("n"), dim("m"), dim("k")


def facts(decisions):
    return [f"{g.lhs} {g.op} {g.rhs}" for g in decisions.guards]


def test_bounds_need_no_guard():
    with Decisions({"n": 5, "m": 3}) as decisions:
        assert ask(n, ">=", 0) and ask(n, "==", n) and ask(n, ">=", dim_min(n, m)) and not ask(n, "==", n + 1)
        assert ask(3, "<", 4)
    assert decisions.guards == []


def test_examples_answer_and_the_negated_fact_is_recorded():
    with Decisions({"n": 5, "m": 3}) as decisions:
        assert ask(n, ">", 3)
        assert not ask(n, "==", m)
        assert not ask(n, "<", m)
    assert facts(decisions) == ["n > 3", "n != m", "n >= m"]


def test_a_guard_knows_the_line_that_asked():
    with Decisions({"n": 5}) as decisions:
        ask(n, ">", 3)
    (guard,) = decisions.guards
    line = test_a_guard_knows_the_line_that_asked.__code__.co_firstlineno + 2
    assert guard.where == f"{__file__}:{line}"
    assert str(guard) == f"n > 3 ({__file__}:{line})"


def test_an_equality_is_learned_and_the_later_variable_gives_way():
    with Decisions({"n": 5, "m": 5, "k": 5}) as decisions:
        assert ask(m, "==", n)
        assert ask(2 * n, "==", 2 * m)
        assert ask(k, "==", m)
        assert ask(k, "==", n)
    assert facts(decisions) == ["m == n", "k == m"]
    assert decisions.equalities == {"m": n, "k": n}
    assert decisions.canonical(m * k + 1) is n * n + 1


def test_learned_equalities_are_kept_resolved():
    with Decisions({"n": 3, "m": 4, "k": 8}) as decisions:
        assert ask(k, "==", 2 * m)
        assert ask(m, "==", n + 1)
        assert ask(k, "==", 2 * n + 2)
    assert decisions.equalities == {"k": 2 * n + 2, "m": n + 1}
    assert facts(decisions) == ["k == 2*m", "m == n + 1"]


def test_a_variable_inside_the_other_side_is_not_replaced():
    with Decisions({"n": 2, "m": 2}) as decisions:
        assert ask(n, "==", n * m - 2)
        assert decisions.equalities == {}
        assert ask(n * m, "==", n + m)
    assert decisions.equalities == {}


def test_guards_hold_or_fail_for_other_sizes():
    guard = Guard(n * 2, "<=", m, "f.py:1")
    assert guard.holds({"n": 1, "m": 2}) and not guard.holds({"n": 2, "m": 2})
    assert pickle.loads(pickle.dumps(guard)) == guard
    assert str(Guard(n, "==", 3)) == "n == 3"


def test_repeating_a_run_with_sizes_that_meet_the_guards_gives_the_same_answers():
    def program():
        return [ask(n, op, d) for op in ("==", "<", ">=") for d in (m, 3, m * m - 1, dim_min(n, 2 * m))]

    with Decisions({"n": 4, "m": 3}) as first:
        answers = program()
    same = different = 0
    for size_n in range(8):
        for size_m in range(8):
            with Decisions({"n": size_n, "m": size_m}):
                again = program()
            if all(g.holds({"n": size_n, "m": size_m}) for g in first.guards):
                assert again == answers
                same += 1
            else:
                assert again != answers
                different += 1
    assert same > 1 and different > 1


def test_the_innermost_decisions_answer_and_leave_in_order():
    with Decisions({"n": 1}) as outer:
        with Decisions({"n": 5}) as inner:
            assert ask(n, ">", 3)
            with outer:
                assert not ask(n, ">", 3)
            assert ask(n, ">", 4)
        assert not ask(n, ">", 4)
    assert facts(outer) == ["n <= 3"] and facts(inner) == ["n > 3", "n > 4"]
    with pytest.raises(InconclusiveDimError):
        ask(n, ">", 3)


def test_decisions_leave_also_after_an_error():
    with pytest.raises(KeyError), Decisions({"n": 1}):
        raise KeyError
    with pytest.raises(InconclusiveDimError):
        ask(n, ">", 3)


def test_decisions_do_not_leak_into_other_threads():
    outcome = []

    def other():
        try:
            ask(n, ">", 3)
        except InconclusiveDimError:
            outcome.append("inconclusive")

    with Decisions({"n": 5}):
        # Newer Pythons may hand the context on to threads; a fresh one shows the variable's scope.
        thread = threading.Thread(target=contextvars.Context().run, args=(other,))
        thread.start()
        thread.join()
    assert outcome == ["inconclusive"]


def test_require_equal():
    require_equal(3, 3, "add")
    require_equal(n + m, m + n, "add")
    with Decisions({"n": 4, "m": 4}) as decisions:
        require_equal(n, m, "add")
    assert facts(decisions) == ["n == m"]
    with pytest.raises(ShapeError) as caught:
        require_equal(3, 4, "dot_general: axis 1 of x and axis 0 of y")
    assert str(caught.value) == (
        "dot_general: axis 1 of x and axis 0 of y: sizes must be equal, got 3 and 4; "
        "reshape, slice or broadcast one of them"
    )
    assert caught.value.payload == {"what": "dot_general: axis 1 of x and axis 0 of y", "sizes": (3, 4)}
    with pytest.raises(ShapeError, match=r"got 2\*n and 2\*n \+ 1"):
        require_equal(2 * n, 2 * n + 1, "add")


def test_inconclusive_questions_say_why_and_where():
    with pytest.raises(InconclusiveDimError) as caught:
        ask(n, "<", m)
    text = str(caught.value)
    assert text.startswith(f"cannot decide n < m at {__file__}:")
    assert "no trace that knows them is active (a traced value that outlived its trace" in text
    assert text.endswith(
        "; give the sizes bounds (dim(name, min=, max=)), supply example sizes, or write the code without this branch"
    )
    assert caught.value.payload["op"] == "<" and caught.value.payload["lhs"] is n
    with Decisions({"n": 3}), pytest.raises(InconclusiveDimError, match="m known only when the program runs"):
        ask(n, "<", m)
    with Decisions({"n": 3}), pytest.raises(ArgumentError, match="'<>' is not a comparison of sizes"):
        ask(n, "<>", 2)


def test_what_was_asked_since_a_state_can_be_forgotten() -> None:
    n, m, k = dim("n"), dim("m"), dim("k")
    decisions = Decisions({"n": 5, "m": 5, "k": 3})
    with decisions:
        assert ask(n, ">", 2)
        before = decisions.state()
        assert ask(n, "==", m) and ask(k, "<", 4) and ask(n + k, "==", 8)
        decisions.restore(before)
        assert [str(g).split(" (")[0] for g in decisions.guards] == ["n > 2"] and not decisions.equalities
        assert ask(n, ">", 1) and len(decisions.guards) == 1  # still known
        assert ask(k, "<", 4) and ask(n, "==", m) and len(decisions.guards) == 3  # asked anew
