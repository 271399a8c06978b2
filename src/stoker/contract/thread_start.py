# SPDX-License-Identifier: Apache-2.0
"""Start of Python threads under a limit of the system."""

from __future__ import annotations

import threading

from .errors import ResourceError


def start_thread(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        ResourceError: the operating system refuses the thread.
    """
    try:
        thread.start()
    except RuntimeError as error:  # Python's text is "can't start new thread"
        raise ResourceError(
            f"expected to start the thread `{thread.name}`, got {error} from the operating system. Lower "
            "`num_threads`, or raise the limit: of processes and threads (`ulimit -u`, a container's pids limit) or of "
            "memory (`ulimit -v`)"
        ) from error
