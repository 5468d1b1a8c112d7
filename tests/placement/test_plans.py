"""Plans: the waits that are needed and no others, transfers by pairs of memories, frees, and a verifier that sees."""

import random

import pytest

from random_work import OPS, random_work, spec_on
from tenferro_runtime.placement import PlanError, verify
from tenferro_runtime.placement._moves import Kind
from tenferro_runtime.placement._plan import plan_of
from tenferro_runtime.placement._tasks import Task, Work
from tenferro_tensor import ComputeDevice

CPU0, CPU1, CPU2, SIM0, SIM1 = map(ComputeDevice, ("cpu:0", "cpu:1", "cpu:2", "sim:0", "sim:1"))
DEVICES = (CPU0, CPU1, SIM0, SIM1)


def kernel(name, device):
    return OPS[name][2]


def work(inputs, tasks, outputs):
    """Work of calls ``(device, operands, result)`` and transfers ``(None, operand, result, device)``."""
    specs = {v: spec_on(device) for v, device in inputs.items()}
    made = []
    for task in tasks:
        device, operands, result = task[0] or task[3], task[1], task[2]
        specs[result] = spec_on(device)
        made.append(Task(None if task[0] is None else max, operands, (result,), False, device))
    return Work(tuple(inputs), {}, tuple(made), tuple(outputs), specs)


def kinds(plan):
    return [step.action.kind for step in plan.steps]


def test_one_queue_waits_for_nothing():
    plan = verify(plan_of(work({0: CPU0}, [(CPU0, (0,), 1), (CPU0, (1,), 2)], [2])))
    assert plan.waits == plan.edges == 0
    assert len(plan.queues) == 1
    assert [step.frees for step in plan.steps] == [(), (1,)]


def test_what_the_latest_dependency_implies_is_not_waited_for():
    # 1 and 2 on cpu:1, 3 of both on the caller: the second of one queue implies the first.
    plan = verify(plan_of(work({0: CPU0}, [(CPU1, (0,), 1), (CPU1, (0,), 2), (CPU0, (1, 2), 3)], [3])))
    assert (plan.edges, plan.waits) == (2, 1)
    assert [step.waits for step in plan.steps] == [(), (), (1,)]
    assert [step.signal for step in plan.steps] == [False, True, False]


def test_what_another_queue_has_waited_for_is_not_waited_for_again():
    tasks = [(CPU1, (0,), 1), (CPU2, (1,), 2), (CPU0, (1, 2), 3)]
    plan = verify(plan_of(work({0: CPU0}, tasks, [3])))
    assert (plan.edges, plan.waits) == (3, 2)


def test_a_thread_does_what_it_can_alone_before_it_waits():
    tasks = [(CPU1, (0,), 1), (CPU0, (1,), 2), (CPU0, (0,), 3), (CPU0, (2, 3), 4)]
    plan = verify(plan_of(work({0: CPU0}, tasks, [4])))
    assert [plan.steps[i].action.results for i in plan.of_thread(0)] == [(3,), (2,), (4,)]


def test_streams_are_fed_before_the_caller_works():
    tasks = [(CPU0, (0,), 1), (SIM0, (9,), 2), (SIM0, (2,), 3)]
    plan = verify(plan_of(work({0: CPU0, 9: SIM0}, tasks, [1, 3])))
    assert [plan.steps[i].action.results for i in plan.of_thread(0)] == [(9,), (2,), (3,), (1,)]


def test_an_upload_is_issued_on_the_copy_queue_of_the_accelerator():
    plan = verify(plan_of(work({0: CPU0}, [(None, (0,), 1, SIM0), (SIM0, (1,), 2)], [2])))
    assert kinds(plan) == [Kind.UPLOAD, Kind.LAUNCH]
    assert [str(plan.queues[step.queue]) for step in plan.steps] == ["sim:0/copy", "sim:0/compute"]
    assert plan.steps[1].waits == (0,)
    assert plan.steps[0].event
    assert plan.steps[1].frees == (1,)


def test_a_download_arrives_in_the_pool_that_reads_it_first():
    tasks = [(SIM0, (0,), 1), (None, (1,), 2, CPU1), (CPU1, (2,), 3)]
    plan = verify(plan_of(work({0: SIM0}, tasks, [3])))
    assert kinds(plan) == [Kind.BEGIN, Kind.LAUNCH, Kind.DOWNLOAD, Kind.ARRIVE, Kind.CALL]
    download, arrive = plan.steps[2], plan.steps[3]
    assert str(plan.queues[arrive.queue]) == "cpu:1"
    assert download.signal  # the pool has to see that it was issued
    assert not download.event  # the handle knows when the copy is done


@pytest.mark.parametrize(
    ("reaches", "expected"),
    [(True, [Kind.BEGIN, Kind.PEER, Kind.LAUNCH]), (False, [Kind.BEGIN, Kind.DOWNLOAD, Kind.UPLOAD, Kind.LAUNCH])],
)
def test_between_accelerators_data_goes_directly_or_by_way_of_main_memory(reaches, expected):
    tasks = [(None, (0,), 1, SIM1), (SIM1, (1,), 2)]
    plan = verify(plan_of(work({0: SIM0}, tasks, [2]), lambda source, target: reaches))
    assert [kind for kind in kinds(plan) if kind is not Kind.END] == expected
    assert all(step.thread == 0 and not step.signal for step in plan.steps)  # no thread waits on the way


def test_a_copy_that_is_in_main_memory_already_is_the_source():
    tasks = [(None, (0,), 1, SIM0), (None, (1,), 2, SIM1), (SIM1, (2,), 3)]
    plan = verify(plan_of(work({0: CPU0}, tasks, [3])))
    assert kinds(plan) == [Kind.UPLOAD, Kind.UPLOAD, Kind.LAUNCH]


def test_the_same_transfer_twice_and_a_way_there_and_back_move_once():
    tasks = [(None, (0,), 1, SIM0), (None, (0,), 2, SIM0), (None, (1,), 3, CPU0), (SIM0, (1, 2), 4), (CPU0, (3,), 5)]
    plan = verify(plan_of(work({0: CPU0}, tasks, [4, 5])))
    assert kinds(plan).count(Kind.UPLOAD) == 1
    assert Kind.DOWNLOAD not in kinds(plan)


def test_branches_from_the_inputs_of_an_accelerator_have_streams_of_their_own():
    tasks = [(SIM0, (0,), 1), (SIM0, (1,), 2), (SIM0, (0,), 3), (SIM0, (3,), 4), (SIM0, (2, 4), 5), (CPU0, (9,), 8)]
    plan = verify(plan_of(work({0: SIM0, 9: CPU0}, tasks, [5, 8])))
    names = {step.action.results: str(plan.queues[step.queue]) for step in plan.steps}
    assert [names[v,] for v in (1, 2, 3, 4)] == ["sim:0/compute"] * 2 + ["sim:0/compute 2"] * 2
    waits = [step for step in plan.steps if step.waits and step.action.results]
    assert [step.action.results for step in waits] == [(3,), (5,)]  # for the input, and where the branches meet


def test_what_follows_from_a_value_of_a_stream_stays_on_it():
    tasks = [(SIM0, (0,), 1), (SIM0, (1,), 2), (SIM0, (1,), 3), (SIM0, (2, 3), 4), (CPU0, (9,), 8)]
    plan = verify(plan_of(work({0: SIM0, 9: CPU0}, tasks, [4, 8])))
    assert {str(q) for q in plan.queues} == {"cpu:0", "sim:0/compute"}


def test_pools_share_main_memory():
    tasks = [(CPU1, (0,), 1), (None, (1,), 2, CPU2), (CPU2, (2,), 3)]
    plan = verify(plan_of(work({0: CPU0}, tasks, [3])))
    assert kinds(plan) == [Kind.CALL, Kind.CALL]


def test_what_the_caller_has_on_an_accelerator_is_not_freed():
    tasks = [(SIM0, (0,), 1), (SIM0, (1,), 2)]
    plan = verify(plan_of(work({0: SIM0}, tasks, [2])))
    assert {v for step in plan.steps for v in step.frees} == {1}
    assert plan.kept == {0, 2}
    assert plan.made == {2}


def test_views_live_as_long_as_what_they_look_at():
    w = work({0: SIM0}, [(SIM0, (0,), 1), (SIM0, (1,), 2), (SIM0, (2,), 3)], [3])
    tasks = list(w.tasks)
    tasks[1] = tasks[1]._replace(views=True)
    plan = verify(plan_of(w._replace(tasks=tuple(tasks))))
    assert [set(step.frees) for step in plan.steps if step.frees] == [{1, 2}]
    assert plan.steps[-1].frees


def test_the_repr_counts():
    plan = plan_of(work({0: CPU0}, [(CPU1, (0,), 1), (CPU0, (1,), 2)], [2]))
    assert repr(plan) == "<ExecutionPlan: 2 steps on cpu:0, cpu:1; 1 waits for 1 dependencies>"


@pytest.mark.parametrize("seed", range(150))
def test_random_plans_obey_the_law_and_every_dropped_wait_is_seen(seed):
    rng = random.Random(seed)
    plan = verify(plan_of(random_work(rng, DEVICES, kernel, most=25), lambda source, target: seed % 2 == 0))
    for i, step in enumerate(plan.steps):
        waits = step.waits
        for d in waits:
            step.waits = tuple([w for w in waits if w != d])
            with pytest.raises(PlanError):
                verify(plan)
        step.waits = waits
        for flag in ("signal", "event"):
            if getattr(step, flag):
                setattr(step, flag, False)
                with pytest.raises(PlanError, match="sends no signal" if flag == "signal" else "records no event"):
                    verify(plan)
                setattr(step, flag, True)
        for v in step.frees:
            if plan.homes[v] not in (None, CPU0):
                frees = step.frees
                step.frees = tuple([u for u in frees if u != v])
                with pytest.raises(PlanError, match=f"v{v}, which nobody frees"):
                    verify(plan)
                step.frees = frees
        later = plan.steps[i + 1 :]
        if step.frees and later:
            before = later[0].frees
            later[0].frees = (*before, step.frees[0])
            with pytest.raises(PlanError, match="a second time|which is on|may still use"):
                verify(plan)
            later[0].frees = before
    verify(plan)


def test_a_circle_of_waits_is_seen():
    plan = plan_of(work({0: CPU0}, [(CPU1, (0,), 1), (CPU0, (1,), 2)], [2]))
    plan.steps[0].waits, plan.steps[1].signal = (1,), True
    with pytest.raises(PlanError, match=r"step \d, call on cpu:\d, waits for ever"):
        verify(plan)
