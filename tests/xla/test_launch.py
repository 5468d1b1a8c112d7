"""The launcher: numbers, outputs and exit statuses of the processes, and how those that are left are ended."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenferro_xla import launch

NUMBERS = "import os; print('number', os.environ['TENFERRO_PROCESS'], 'of', os.environ['TENFERRO_PROCESSES'], "
OTHERS_WAIT = "import os, sys, time, signal; number = int(os.environ['TENFERRO_PROCESS']); "


def started(tmp_path: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "tenferro_xla.launch", *arguments, str(script), "last"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_each_process_knows_its_number_and_prints_behind_it(tmp_path: Path) -> None:
    text = NUMBERS + "__import__('sys').argv[1], os.environ['XLA_FLAGS'], os.environ['TENFERRO_COORDINATOR'])"
    given = ["-n", "2", "--first", "1", "--processes", "3", "--coordinator", "host:12", "--devices", "2"]
    process = started(tmp_path, text, *given)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    flag = "--xla_force_host_platform_device_count=2"
    before = os.environ.get("XLA_FLAGS", "")
    assert sorted(out.splitlines()) == [
        f"[{k}] number {k} of 3 last {before + ' ' if before else ''}{flag} host:12" for k in (1, 2)
    ]


def test_the_first_failure_is_told_and_the_others_are_ended_after_a_while(tmp_path: Path) -> None:
    text = OTHERS_WAIT + "sys.exit(7) if number == 1 else time.sleep(100)"
    process = started(tmp_path, text, "-n", "3", "--grace", "0.2")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 7
    first, *lines = err.splitlines()
    assert re.fullmatch(r"launch: processes of 3: 0 is \d+, 1 is \d+, 2 is \d+", first)
    assert lines[:2] == [
        "launch: process 1 of 3 ended with status 7",
        "launch: ending processes 0, 2, still running 0.2 s later",
    ]
    assert sorted(lines[2:]) == [f"launch: process {k} of 3 was ended by SIGTERM" for k in (0, 2)]


def test_a_killed_process_is_named_with_its_signal(tmp_path: Path) -> None:
    text = OTHERS_WAIT + "os.kill(os.getpid(), signal.SIGKILL) if number else sys.exit(0)"
    process = started(tmp_path, text, "-n", "2")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    assert "launch: process 1 of 2 was ended by SIGKILL" in err


def test_an_interrupt_reaches_all_and_those_that_ignore_it_are_ended(tmp_path: Path) -> None:
    text = OTHERS_WAIT + (  # both are ready before the signal is sent
        "signal.signal(signal.SIGINT, signal.SIG_IGN if number else signal.default_int_handler); "
        "print('ready'); time.sleep(100)"
    )
    process = started(tmp_path, text, "-n", "2", "--grace", "0.2")
    assert process.stdout is not None
    assert [process.stdout.readline()[3:] for _ in range(2)] == [" ready\n"] * 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "process 0 of 2 was ended by SIGINT" in err or "process 0 of 2 ended with status" in err
    assert "launch: process 1 of 2 was ended by SIGTERM" in err


def test_an_interrupt_while_processes_start_reaches_the_new_one_and_starts_no_more(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    launcher, real = launch.Launcher(2, 0.2), subprocess.Popen

    def interrupted(*given: Any, **named: Any) -> Any:
        launcher.stop(signal.SIGINT, None)
        return real(*given, **named)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    launcher.start([sys.executable, "-c", "import time; time.sleep(100)"], {k: {**os.environ} for k in range(2)})
    assert [*launcher.processes] == [0]
    assert launcher.wait() == 128 + signal.SIGINT
    assert "launch: process 0 of 2" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["-n", "0", "x.py"], "are not all among 0"),
        (["-n", "2", "--first", "1", "x.py"], "processes 1 to 2 are not all among 2, from 0"),
        (["-n", "2", "--processes", "4", "x.py"], "a run on several machines needs --coordinator"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    given: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        launch.main(given)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err
