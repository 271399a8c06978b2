# SPDX-License-Identifier: Apache-2.0
"""Pauses of recording for data sets whose samples contain nothing lazy, such as cached tensors.

Recording a fetch costs 0.1 to 0.5 ms, depending on the caches: the random states are saved, and other libraries are
changed and restored. After a few fetches without a lazy object, most fetches of the data set run as without Stoker.
Now and then one is recorded again, so that a data set that begins to read files becomes fast again.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any

_IDLE_AFTER = 4  # fetches without a lazy object; objects that a worker has kept longer are plain (`loader.py`)
_PERIOD = 64  # of the later fetches of an idle data set, one is recorded


class Activity:
    """State of a data set: the number of its latest fetches in which there was nothing lazy."""

    def __init__(self) -> None:
        self._fetches = 0
        self.is_scanned = True  # whether the type checks of the latest loader's functions are known

    @property
    def is_idle(self) -> bool:
        """Return whether most fetches run unrecorded."""
        return self._fetches >= _IDLE_AFTER

    def begin_fetch(self) -> bool:
        """Return whether the next fetch is recorded; :meth:`end_fetch` follows if it is."""
        if self._fetches < _IDLE_AFTER:
            return True
        self._fetches += 1
        return (self._fetches - _IDLE_AFTER) % _PERIOD == 0

    def end_fetch(self, *, has_lazy: bool) -> None:
        """Count a recorded fetch.

        Args:
            has_lazy: whether the fetch has created a lazy object, or its batch contains one.
        """
        if has_lazy:
            self._fetches = 0
        elif self._fetches < _IDLE_AFTER:
            self._fetches += 1


_known: dict[int, tuple[weakref.ref[Any], Activity]] = {}


def activity_of(dataset: Any) -> Activity:
    """Return the activity of a data set, which lasts as long as the data set."""
    reference, activity = _known.get(id(dataset), (None, None))
    if reference is not None and activity is not None and reference() is dataset:
        return activity
    activity = Activity()
    with contextlib.suppress(TypeError):  # a list has no weak references: each caller gets a new activity
        _known[id(dataset)] = weakref.ref(dataset, functools.partial(_forget, id(dataset))), activity
    return activity


def _forget(key: int, reference: weakref.ref[Any]) -> None:
    """Drop the activity of a data set that has gone, unless its address belongs to another one by now."""
    if key in _known and _known[key][0] is reference:
        del _known[key]


def activity_of_fetcher(fetcher: Any) -> Activity:
    """Return the activity of the data set from which a fetcher of torch's loaders reads."""
    activity = vars(fetcher).get("_stoker_activity")
    if type(activity) is not Activity:
        activity = fetcher._stoker_activity = activity_of(fetcher.dataset)
    return activity
