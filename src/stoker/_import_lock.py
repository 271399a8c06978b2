# SPDX-License-Identifier: Apache-2.0
"""Locks that `os.fork` takes too: for imports on first use, and for tables that all threads share.

A forked process has one thread. If another thread was importing a module at that moment, the module's lock stays held
in the child for ever, and the child hangs when it imports the module. So imports that a thread may run at any time are
made under :data:`IMPORT_LOCK`, and a fork waits until none runs. :data:`TABLE_LOCK` is for short changes of tables.
A change takes no other lock and imports nothing.
"""

from __future__ import annotations

import logging  # noqa: F401 - for its hook, see below
import os
import threading

# Hooks that run before a fork run in reverse order of their registration. `logging` has such a hook for its own lock,
# which many modules take while they are imported. Its hook must run after the one of this module: a fork that held
# logging's lock and waited for an import that needs it would wait for ever.
#
# For the same reason the lock of tables, which an import may need, is registered before that of imports: a fork takes
# it after that one. Locks within which threads import are made later.
#
# The locks are reentrant: an import may import more, and a thread that imports may fork.


def lock_around_fork() -> threading.RLock:
    """Return a reentrant lock that no other thread holds while this process forks, so that the child finds it free."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


TABLE_LOCK = lock_around_fork()
IMPORT_LOCK = lock_around_fork()
