# SPDX-License-Identifier: Apache-2.0
"""The benchmark harness: turns of contenders, counters, and computed figures. Real processes, short rounds."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import allocations, cases, report, worker
from benchmarks.case import IMAGES_PER_S, MIB, MS_PER_IMAGE, Bar, Case, Contender, Loop, Sample
from benchmarks.data import Data, mean_window, random_window
from benchmarks.harness import Series, judge, measure, run_round, turns
from benchmarks.process import Round, Settings, combine
from benchmarks.worker import measure_loop, rest
from tests.idle_clock import HANG_S

MODULE = "tests.bench.test_harness"

# Contenders: the functions below, in separate processes, found by the name of this module.


def doze(data: Data, *, milliseconds: float) -> Loop:
    """Sleep in each step: this takes almost no processor time, however busy the machine is."""
    return Loop(lambda: (2, time.sleep(milliseconds / 1e3) or 0.5), warm=1)


def spin(data: Data, *, milliseconds: float) -> Loop:
    """Spend a fixed processor time in each step, however long it takes on a busy machine."""

    def step() -> tuple[int, float]:
        end = time.process_time() + milliseconds / 1e3
        while time.process_time() < end:
            pass
        return 1, 0.5

    return Loop(step, warm=1)


def clocked(data: Data, *, milliseconds: float, meeting: int = 0) -> Loop:
    """Return steps of an exact duration on a simulated clock. This many copies start together."""
    now = 0.0
    time.perf_counter = lambda: now  # type: ignore[assignment]
    arrived = Path(data.root) / f"{os.getpid()}.arrived"

    def step() -> tuple[int, float]:
        nonlocal now
        now += milliseconds / 1e3
        arrived.touch()
        while len(list(arrived.parent.glob("*.arrived"))) < meeting:  # the harness waits for an answer, but not forever
            time.sleep(0.001)
        return 2, 0.5

    return Loop(step, warm=1)


def count_cores(data: Data) -> Sample:
    return Sample(lambda: float(len(os.sched_getaffinity(0))))


def import_missing_library(data: Data) -> Sample:
    import a_missing_library  # type: ignore[import-not-found]

    return Sample(a_missing_library.read)


def fail_later(data: Data) -> Sample:
    readings = iter([1.0, 2.0])
    return Sample(lambda: next(readings))


def die(data: Data) -> Sample:
    sys.stderr.write("last output\n")
    return Sample(lambda: os._exit(3))


def chatter(data: Data) -> Sample:
    print("libraries may print anything")
    return Sample(lambda: float(print("at any time") is None))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, {"stoker": Path(sys.executable)}, tmp_path)


def run(settings: Settings, *contenders: Contender, unit: object = MIB, bars: tuple[Bar, ...] = (), rounds: int = 3):
    case = Case("a", "A case", unit, contenders, bars, module=MODULE)
    return measure(case, settings, rounds, seconds=0.02)


def test_turns_alternate_their_order() -> None:
    assert turns(3, 4) == [[0, 1, 2], [2, 1, 0], [0, 1, 2], [2, 1, 0]]


def test_a_slower_contender_is_slower_by_the_right_factor(settings: Settings) -> None:
    fast = Contender("fast", "clocked", {"milliseconds": 4})
    slow = Contender("slow", "clocked", {"milliseconds": 12})
    bars = (Bar("rate", "fast", ("slow",), at_least=2.0, goal=100), Bar("rate", "slow", ("fast",), at_least=1.0))
    result = run(settings, fast, slow, unit=IMAGES_PER_S, bars=bars)
    assert result.verdicts[0].text == "PASS"
    assert result.verdicts[0].figure is not None
    assert result.verdicts[0].figure.median == pytest.approx(3)
    assert result.verdicts[1].text.startswith("short by 6")
    assert all(len(series.rounds) == 3 for series in result.series)
    assert result.shown("fast").median == pytest.approx(500), "two items per step of 4 ms"
    assert all(one.checksum == one.items / 4 for series in result.series for one in series.rounds)


def test_the_clock_is_the_wall_clock(settings: Settings) -> None:
    result = run(settings, Contender("sleeps", "doze", {"milliseconds": 4}), unit=IMAGES_PER_S)
    assert all(one.figure >= 0.002 for one in result.series[0].rounds), "two items per step of 4 ms"


def test_processor_time_is_counted(settings: Settings) -> None:
    one = Contender("sleeps", "doze", {"milliseconds": 4})
    result = run(settings, one, Contender("works", "spin", {"milliseconds": 4}), unit=IMAGES_PER_S)
    sleeps, works = (series.rounds for series in result.series)
    assert all(one.cpu_s is not None and one.cpu_s < 0.3 * 0.002 for one in sleeps)
    assert all(one.cpu_s is not None and one.cpu_s == pytest.approx(0.004, rel=0.2) for one in works)


def test_processor_times_are_compared_too() -> None:
    case = Case("a", "A", IMAGES_PER_S, tuple(Contender(name, "f") for name in "ab"))
    series = [Series(name, [Round(1.0, cpu, 1, 0.0, rested=True)]) for name, cpu in (("a", 0.5), ("b", 1.5))]
    assert judge(case, Bar("rate", "a", ("b",), at_least=1), series).cpu == 3.0


def test_copies_run_at_the_same_time_and_add_up(settings: Settings) -> None:
    one = Contender("one", "clocked", {"milliseconds": 4})
    two = replace(one, name="two", copies=2, options={"milliseconds": 4, "meeting": 3})
    result = run(settings, one, two, unit=IMAGES_PER_S)
    assert result.shown("two").median == pytest.approx(2 * result.shown("one").median)
    assert len(list(settings.data.glob("*.arrived"))) == 3, "one of the single contender, two of the copies"


def test_pinning(settings: Settings) -> None:
    result = run(settings, Contender("pinned", "count_cores", cores=1), Contender("free", "count_cores"))
    assert result.shown("pinned").median == 1
    assert result.shown("free").median == len(os.sched_getaffinity(0))


def test_a_failing_contender_is_reported_and_stops_no_other(settings: Settings) -> None:
    bars = (
        Bar("ratio", "fine", ("absent",), at_most=1),
        Bar("ratio", "fine", ("absent", "chatters"), at_most=1),
        Bar("figure", "fails", at_most=1),
    )
    result = run(
        settings,
        Contender("absent", "import_missing_library"),
        Contender("fails", "fail_later"),
        Contender("dies", "die"),
        Contender("elsewhere", "count_cores", environment="peers"),
        Contender("chatters", "chatter"),
        Contender("fine", "count_cores"),
        bars=bars,
    )
    trouble = {series.name: series.trouble for series in result.series}
    assert "a_missing_library" in trouble["absent"]
    assert "StopIteration" in trouble["fails"]
    assert "last output" in trouble["dies"]
    assert "no environment" in trouble["elsewhere"]
    assert trouble["fine"] == trouble["chatters"] == ""
    assert [verdict.text.startswith("not measured") for verdict in result.verdicts] == [True, False, True]
    assert result.verdicts[1].against == "chatters"


def rounds(*figures: float) -> list[Round]:
    return [Round(figure, None, 1, 0.0, rested=True) for figure in figures]


def test_ratios_compare_medians_with_the_best_and_show_the_spread_of_rounds() -> None:
    case = Case("a", "A", MS_PER_IMAGE, tuple(Contender(name, "f") for name in "abc"))
    series = [Series("a", rounds(1, 2, 9)), Series("b", rounds(4, 5, 6)), Series("c", rounds(1, 4, 5))]
    verdict = judge(case, Bar("ratio", "a", ("b", "c"), at_most=0.4), series)
    assert verdict.against == "c"
    assert verdict.figure is not None
    assert (verdict.figure.median, verdict.figure.low, verdict.figure.high) == (0.5, 0.5, 1.8)
    assert verdict.text == "short by 25 %"


@pytest.mark.parametrize(
    ("bar", "figure", "text"),
    [
        (Bar("t", "a", at_least=2, goal=3), 3.0, "PASS, goal reached"),
        (Bar("t", "a", at_least=2, goal=3), 2.0, "PASS"),
        (Bar("t", "a", at_least=2), 1.5, "short by 25 %"),
        (Bar("t", "a", at_most=20), 25.0, "short by 25 %"),
        (Bar("t", "a", at_most=20, goal=10), 10.0, "PASS, goal reached"),
        (Bar("t", "a", at_most=0), 7.0, "7 above 0"),
        (Bar("t", "a", at_most=0), 0.0, "PASS"),
    ],
)
def test_verdicts(bar: Bar, figure: float, text: str) -> None:
    case = Case("a", "A", MIB, (Contender("a", "f"),))
    assert judge(case, bar, [Series("a", rounds(figure))]).text == text


def test_declarations_are_checked() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Bar("t", "a")
    with pytest.raises(ValueError, match="bars name others"):
        Case("a", "A", MIB, (Contender("a", "f"),), (Bar("t", "b", at_most=1),))
    with pytest.raises(ValueError, match="not unique"):
        Case("a", "A", MIB, (Contender("a", "f"), Contender("a", "g")))


class Clock:
    """Proxy for `time` in a process that is busy for a while."""

    def __init__(self, busy_s: float) -> None:
        self.now, self.busy_s = 0.0, busy_s

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return min(self.now, self.busy_s)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_round_consumes_prefetched_items_first_and_ends_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    loop = Loop(lambda: (steps.append("step") or 1, 0.0), warm=4)
    assert measure_loop(loop, seconds=0.0)["items"] == 1
    assert len(steps) == 5
    clock = Clock(busy_s=0.2)
    monkeypatch.setattr(worker, "time", clock)
    assert rest()
    assert 0.2 < clock.now < 0.3, "it waits for the busy thread"
    monkeypatch.setattr(worker, "time", Clock(busy_s=1000.0))
    assert not rest(), "not for ever"


class Disturbed:
    """Proxy for a contender that other programs disturb."""

    def __init__(self, *others: float) -> None:
        self.rounds = [Round(float(number), None, 1, 0.0, rested=True, others=o) for number, o in enumerate(others)]
        self.played = 0

    def run(self, seconds: float) -> Round:
        self.played += 1
        return self.rounds[self.played - 1]


@pytest.mark.parametrize(
    ("others", "played", "expected"),
    [((0.0, 9.0), 1, 0), ((0.9, 0.1, 0.0), 2, 1), ((0.9, 0.5, 0.7, 0.0), 3, 1)],
)
def test_a_disturbed_round_is_run_again(others: tuple[float, ...], played: int, expected: int) -> None:
    runner, series = Disturbed(*others), Series("a")
    run_round(runner, series, 0.0)  # type: ignore[arg-type]
    assert (runner.played, series.rounds) == (played, [runner.rounds[expected]])


def test_copies_are_combined() -> None:
    answers = [
        {"items": 10, "wall_s": 1.0, "cpu_s": 1.0, "checksum": 1.0, "rested": True},
        {"items": 30, "wall_s": 1.0, "cpu_s": 3.0, "checksum": 2.0, "rested": False},
    ]
    assert combine(answers) == Round(1 / 40, 0.1, 40, 3.0, rested=False)


def test_windows_are_those_of_a_random_resized_crop() -> None:
    rng = random.Random(0)
    windows = [random_window(rng, 500, 375) for _ in range(3000)]
    assert all(0 <= x0 < x1 <= 500 and 0 <= y0 < y1 <= 375 for x0, y0, x1, y1 in windows)
    areas = [(x1 - x0) * (y1 - y0) / (500 * 375) for x0, y0, x1, y1 in windows]
    assert 0.07 < min(areas) < 0.1
    assert sum(areas) / len(areas) == pytest.approx(mean_window()[0] * mean_window()[1] / (500 * 375), rel=0.05)


def test_data_is_found_nested_and_sorted(tmp_path: Path) -> None:
    for name in ("b/2.JPEG", "a/1.jpg", "note.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    data = Data(tmp_path)
    assert [os.path.relpath(path, tmp_path) for path in data.files] == ["a/1.jpg", "b/2.JPEG"]
    assert (data.labels, data.read()) == ([0, 1], [b"x", b"x"])
    with pytest.raises(FileNotFoundError, match="no JPEG files"):
        _ = Data(tmp_path / "nowhere").files


def test_large_allocations_are_counted(tmp_path: Path) -> None:
    library = allocations.build(tmp_path)
    if library is None:
        pytest.skip("no C compiler, which builds the library that the test preloads")
    code = (
        "from benchmarks.allocations import counted\n"
        "import ctypes\n"
        "take = ctypes.CDLL(None).malloc\n"
        "counted(); before = counted()\n"
        "for _ in range(10): take(ctypes.c_size_t(4096)); take(ctypes.c_size_t(4095))\n"
        "print(counted() - before)\n"
    )
    environ = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert int(done.stdout) == 10


def test_reports_hold_every_figure(settings: Settings) -> None:
    bars = (Bar("cores", "fine", at_least=1), Bar("ratio", "fine", ("absent",), at_most=1))
    contenders = (Contender("fine", "count_cores"), Contender("absent", "import_missing_library"))
    result = run(settings, *contenders, bars=bars)
    page = report.markdown([result], {"processor": "a fine one"}, "The rules.")
    for text in ("a fine one", "The rules.", "A case", "fine", "PASS", "a_missing_library"):
        assert text in page
    loaded = json.loads(report.as_json([result], {"processor": "a fine one"}))
    assert [len(one["rounds"]) for one in loaded["cases"][0]["contenders"]] == [3, 0]
    assert loaded["cases"][0]["bars"][0]["verdict"] == "PASS"
    lines = [line for line in report.lines(result) if not line.startswith("  !")]
    assert len(lines) == 1 + len(contenders) + len(bars)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.04567, "0.046"), (1.234, "1.23"), (12.34, "12.3"), (22100.4, "22,100")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert report.number(value) == text


def test_cases_are_collected_and_name_real_functions() -> None:
    every = cases.collect()
    assert len({case.name for case in every}) == len(every) >= 12
    for case in every:
        module = sys.modules[case.module]
        assert all(callable(getattr(module, contender.function)) for contender in case.contenders)
