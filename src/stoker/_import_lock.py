# SPDX-License-Identifier: Apache-2.0
"""Lock for imports on first use, which `os.fork` takes too.

A forked process has one thread. If another thread was importing a module at that moment, the module's lock stays held
in the child for ever, and the child hangs when it imports the module. So imports that a thread may run at any time are
made under :data:`IMPORT_LOCK`, and a fork waits until none runs.
"""

from __future__ import annotations

import logging  # noqa: F401 - for its hook, see below
import os
import threading

# Hooks that run before a fork run in reverse order of their registration. `logging` has such a hook for its own lock,
# which many modules take while they are imported. Its hook must run after the one of this module: a fork that held
# logging's lock and waited for an import that needs it would wait for ever.
#
# The lock is reentrant: an import may import more, and a thread that imports may fork.
IMPORT_LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=IMPORT_LOCK.acquire, after_in_parent=IMPORT_LOCK.release, after_in_child=IMPORT_LOCK.release
    )
