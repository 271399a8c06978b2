# SPDX-License-Identifier: Apache-2.0
"""Attribution of launches on the device to stages."""

from __future__ import annotations

from benchmarks.stages_gpu import IDLE, Launch, by_batch, by_stage


def batch(number: int, *launches: tuple[str, float]) -> list[Launch]:
    start, launched = 1e6 * 3 * IDLE * number, []
    for name, us in launches:
        launched.append(Launch(start, us, name))
        start += us + 40
    return launched


FULL = (("copy", 300.0), ("a", 10.0), ("b", 5.0), ("a", 20.0))
LACKS_THE_FIRST = (("copy", 300.0), ("b", 5.0), ("a", 21.0))


def test_launches_are_assigned_to_their_batches() -> None:
    batches = [batch(0, *FULL), batch(1, *LACKS_THE_FIRST), batch(2, *FULL)]
    assert by_batch(launch for one in reversed(batches) for launch in one) == batches


def test_a_long_copy_divides_no_batch() -> None:
    launches = batch(0, ("copy", 2e6 * IDLE), ("a", 10.0))
    assert by_batch(launches) == [launches]


def test_a_batch_without_one_of_the_stages_does_not_shift_the_others() -> None:
    times = by_stage([batch(0, *FULL), batch(1, *LACKS_THE_FIRST), batch(2, *FULL)])
    assert times == {
        "copy": [300.0, 300.0, 300.0],
        "a 1 of 2": [10.0, 10.0],
        "a 2 of 2": [20.0, 20.0],
        "a, all of 1": [21.0],
        "b": [5.0, 5.0, 5.0],
    }
